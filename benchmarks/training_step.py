"""How long one training step of the lab's model takes: core in numpy, and the same step in PyTorch on the CPU.

    python -m benchmarks.training_step --help

One step is all of it: draw a batch, forward, loss, backward, Adam, on the default settings of `core.training`. Both
take their steps in turns in one process, so that what else the machine does falls on both alike, and start from the
same weights; that their losses agree after the same batches is checked first. PyTorch gets the number of threads that
it chooses by itself, and one thread, each with the plain and the fused form of its Adam; the form that comes out best
for it counts. The run at the start also makes the C library keep freed memory, which helps both.

PyTorch is not needed to run the project. Where it is missing, core is timed alone. To have both:

    python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch==2.13.0 numpy
    /tmp/torch/bin/python -m benchmarks.training_step
"""

import argparse
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from core import adam
from core.positional import sinusoidal
from core.tasks import TASKS, Batch, draw
from core.training import Settings, by_name, initial, loss_and_gradient, train

SETTINGS = Settings()
TASK = TASKS[SETTINGS.task]

Step = Callable[[Batch], float]


def in_numpy() -> Step:
    """A step of core: takes a batch and returns the loss before the step."""
    vector = initial(SETTINGS)
    state = adam.start(vector)

    def step(batch: Batch) -> float:
        nonlocal vector, state
        loss, gradient = loss_and_gradient(vector, batch, SETTINGS)
        vector, state = adam.step(vector, gradient, state, SETTINGS.learning_rate)
        return loss

    return step


def in_torch(torch: Any, fused: bool) -> Step:
    """The same step in PyTorch: its own layers, automatic differentiation and Adam, the same weights to start with."""
    functional = torch.nn.functional
    n, d, heads = TASK.seq_len, SETTINGS.d_model, SETTINGS.heads
    weights = {name: torch.nn.Parameter(torch.tensor(w)) for name, w in by_name(initial(SETTINGS), SETTINGS).items()}
    for name in weights:
        if "w_" in name:
            weights[name] = torch.nn.Parameter(weights[name].detach().T.contiguous())  # as nn.Linear holds them
    encoding = torch.tensor(sinusoidal(n, d).astype(np.float32))
    optimiser = torch.optim.Adam(weights.values(), lr=SETTINGS.learning_rate, fused=fused)

    def forward(letters: Any, marks: Any) -> Any:
        x = functional.embedding(letters, weights["letters"]) + functional.embedding(marks, weights["marks"]) + encoding
        qkv = functional.linear(x, weights["0.w_qkv"]).view(-1, n, 3, heads, d // heads)
        queries, keys, values = qkv.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(queries, keys, values).transpose(1, 2).reshape(-1, n, d)
        x = functional.layer_norm(x + functional.linear(mixed, weights["0.w_o"]), (d,), eps=1e-6)
        hidden = functional.relu(functional.linear(x, weights["0.w_1"], weights["0.b_1"]))
        x = functional.layer_norm(x + functional.linear(hidden, weights["0.w_2"], weights["0.b_2"]), (d,), eps=1e-6)
        return functional.linear(x, weights["w_out"], weights["b_out"])

    def step(batch: Batch) -> float:
        scores = forward(torch.from_numpy(batch.letters), torch.from_numpy(batch.marks.astype(np.int64)))
        previous, marked = scores.view(-1, 2, TASK.letters).unbind(1)
        answers = torch.from_numpy(batch.answers).view(-1, 2)
        loss = functional.cross_entropy(previous, answers[:, 0], ignore_index=-1)
        loss = (loss + functional.cross_entropy(marked, answers[:, 1])) / 2
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss.item()

    return step


def batches() -> Iterator[Batch]:
    generator = np.random.default_rng(0)
    while True:
        yield draw(TASK, SETTINGS.batch, generator)


def milliseconds(steps: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Times of each, one after the other in every round; the first ten rounds do not count."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for each in range(rounds + 10):
        for name, step in steps.items():
            start = perf_counter()
            step()
            if each >= 10:
                times[name].append(1000 * (perf_counter() - start))
    return times


def check_agreement(numpy_step: Step, torch_step: Step) -> None:
    """Both must compute the same: the losses of ten steps on the same batches, within float32."""
    for _, batch in zip(range(10), batches(), strict=False):
        ours, theirs = numpy_step(batch), torch_step(batch)
        if abs(ours - theirs) > 1e-3 * abs(theirs):
            raise SystemExit(f"The steps differ: loss {ours} in numpy and {theirs} in PyTorch.")


def timed(step: Step) -> Callable[[], object]:
    """A whole step, the drawing of its batch included."""
    drawn = batches()
    return lambda: step(next(drawn))


def report(name: str, times: list[float]) -> None:
    low, high = np.percentile(times, [10, 90])
    print(f"{name:<34}{median(times):>9.2f}{low:>9.2f}{high:>9.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.training_step", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--rounds", type=int, default=400, help="timed steps of each (default 400)")
    rounds = parser.parse_args().rounds

    started = perf_counter()
    steps_taken = sum(1 for _ in train(SETTINGS)) - 1
    print(f"a whole run of {steps_taken} steps, with its readings: {perf_counter() - started:.2f} s\n")
    print(f"{'one step, milliseconds':<34}{'median':>9}{'10 %':>9}{'90 %':>9}")
    try:
        import torch
    except ImportError:
        report("numpy", milliseconds({"numpy": timed(in_numpy())}, rounds)["numpy"])
        print("\nPyTorch is not installed here: no comparison.")
        return

    check_agreement(in_numpy(), in_torch(torch, fused=False))
    ratios = []
    for threads in sorted({1, torch.get_num_threads()}):
        torch.set_num_threads(threads)
        steps = {"numpy": in_numpy(), "PyTorch": in_torch(torch, False), "PyTorch, fused Adam": in_torch(torch, True)}
        times = milliseconds({name: timed(step) for name, step in steps.items()}, rounds)
        for name, found in times.items():
            report(name if name == "numpy" else f"{name}, {threads} thread{'s' * (threads > 1)}", found)
        ratios += [median(times["numpy"]) / median(found) for name, found in times.items() if name != "numpy"]
    print(
        f"\nratio numpy / PyTorch, against the fastest of its forms: {max(ratios):.2f}   (PyTorch {torch.__version__})"
    )


if __name__ == "__main__":
    main()
