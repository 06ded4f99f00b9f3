"""Multi-head attention of core against PyTorch's, on the CPU, over the sizes that the page's sliders reach.

    python -m benchmarks.core --help

PyTorch's is `nn.MultiheadAttention` as a learner would use it to see the same: the weights of every head
(need_weights=True, average_attn_weights=False), no biases, no gradients, in inference mode. Both compute in float64
with the same weights and must give the same weights and output, which is checked at every size. They are timed in
turns in one process, so that what else the machine does falls on both alike.

Before the first size, a large array is taken and given back. From then on the C library keeps freed memory; otherwise,
with 32 heads and more, it is chance which of the two has to ask the system for its pages again in every call.

Both run on one thread, because the app does: it serves many visitors, and a matrix of this size is not worth waking a
second one. Core does a little more: it refuses wrong input, and returns queries, keys, values and each head's output
too. Its scores are not counted: they are computed when somebody asks for them, and PyTorch has none to give.

PyTorch is not needed to run the project. Where it is missing, core is timed alone. To have both:

    python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch==2.13.0 numpy
    /tmp/torch/bin/python -m benchmarks.core
"""

import argparse
import os
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when numpy is loaded

import numpy as np

from core import draws
from core.multi_head import MultiHead, attend, random_heads

LENGTHS, WIDTHS = (2, 8, 16, 32, 64), (4, 8, 16, 32, 64)

Forward = Callable[[], Any]


def heads_of(d_model: int) -> list[int]:
    """One head, as many as a model of this width usually has, and as many as there can be."""
    return sorted({1, max(1, d_model // 8), d_model})


def in_numpy(n: int, d_model: int, heads: int) -> Callable[[], MultiHead]:
    x, weights = draws.tokens(n, d_model, 0), draws.attention_weights(d_model, 0, 0.3)
    layer = random_heads(x, weights, heads)
    return lambda: attend(layer)


def in_torch(torch: Any, n: int, d_model: int, heads: int) -> Callable[[], tuple[Any, Any]]:
    """The same layer of PyTorch with the same weights."""
    x = torch.tensor(draws.tokens(n, d_model, 0))[None]
    w = draws.attention_weights(d_model, 0, 0.3)
    layer = torch.nn.MultiheadAttention(d_model, heads, bias=False, batch_first=True, dtype=torch.float64).eval()
    layer.in_proj_weight.data = torch.tensor(np.concatenate([w.w_q, w.w_k, w.w_v], axis=1).T.copy())
    layer.out_proj.weight.data = torch.tensor(w.w_o.T.copy())

    def forward() -> tuple[Any, Any]:
        with torch.inference_mode():
            return layer(x, x, x, need_weights=True, average_attn_weights=False)

    return forward


def check_agreement(ours: MultiHead, theirs: tuple[Any, Any], size: str) -> None:
    output, weights = (tensor[0].numpy() for tensor in theirs)
    if not (np.allclose(ours.output, output, atol=1e-9) and np.allclose(ours.heads.weights, weights, atol=1e-9)):
        raise SystemExit(f"core and PyTorch differ at {size}.")


def microseconds(forwards: dict[str, Forward], rounds: int) -> dict[str, float]:
    """Median time of each, one after the other in every round; the first ten rounds do not count."""
    times: dict[str, list[float]] = {name: [] for name in forwards}
    for each in range(rounds + 10):
        for name, forward in forwards.items():
            start = perf_counter()
            forward()
            if each >= 10:
                times[name].append(1e6 * (perf_counter() - start))
    return {name: median(found) for name, found in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.core", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=100, help="timed calls of each at each size (default 100)")
    parser.add_argument("--check", action="store_true", help="exit with 1 where core takes 1.25 times as long")
    arguments = parser.parse_args()
    try:
        import torch

        torch.set_num_threads(1)
    except ImportError:
        torch = None
        print("PyTorch is not installed here: no comparison.")

    np.ones(4_000_000)  # 32 MB, the most after which glibc still keeps what is freed
    print(f"{'n':>4}{'d_model':>9}{'heads':>7}{'core µs':>10}{'PyTorch µs':>12}{'core / PyTorch':>16}")
    ratios = []
    for n, d_model in ((n, d_model) for n in LENGTHS for d_model in WIDTHS):
        for heads in heads_of(d_model):
            core = in_numpy(n, d_model, heads)
            line = f"{n:>4}{d_model:>9}{heads:>7}"
            if torch is None:
                print(line + f"{microseconds({'core': core}, arguments.rounds)['core']:>10.0f}", flush=True)
                continue
            theirs = in_torch(torch, n, d_model, heads)
            check_agreement(core(), theirs(), f"n {n}, d_model {d_model}, {heads} heads")
            times = microseconds({"core": core, "PyTorch": theirs}, arguments.rounds)
            ratios.append(times["core"] / times["PyTorch"])
            print(line + f"{times['core']:>10.0f}{times['PyTorch']:>12.0f}{ratios[-1]:>16.2f}", flush=True)
    if ratios:
        slower = sum(ratio > 1 for ratio in ratios)
        print(f"\nmedian ratio {median(ratios):.2f}, largest {max(ratios):.2f}")
        print(f"core is slower at {slower} of {len(ratios)} sizes")
        print(f"PyTorch {torch.__version__}")
    if arguments.check and ratios and max(ratios) > 1.25:  # machines are noisy
        sys.exit(1)


if __name__ == "__main__":
    main()
