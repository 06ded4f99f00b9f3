"""Make torch_gradients.npz: gradients of PyTorch that the tests compare core.gradients and core.adam with.

    python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch==2.13.0 numpy
    /tmp/torch/bin/python tests/data/make_torch_gradients.py

PyTorch is needed for this alone; the tests read the file. All figures are float64, every draw is seeded by the name
of its case, and no line here is core's. Keys are "case/array". Where a forward pass gives `output`, the loss is the
sum of output · d_output, so that d_output is the gradient that arrives; d_NAME is then PyTorch's gradient of NAME.
Matrices stand as core multiplies them, x @ w. Shapes: a batch of b sequences, n tokens, d model width, h heads.

linear            x (b, n, d_in), w (d_in, d_out), b (d_out,), output and the gradients
softmax           scores (b, n, n), output
attention.CASE    queries keys values (b, h, n, d_k), allowed (n, n) where the case has a mask, output.
                  CASE: plain, causal, cross (n_q 3, n_k 6)
mha.CASE          nn.MultiheadAttention without biases: x (b, n, d), heads (), w_qkv (d, 3d), w_o (d, d), allowed
                  where there is a mask, output. CASE: one, four, causal
layer_norm        x (b, n, d), gain bias (d,), eps (), output
layer_norm.plain  the same without gain and bias
relu, gelu        z (n,), output
embedding         table (v, d), indices (b, n), output
cross_entropy     logits (b, n, classes), answers (b, n) with -1 where nothing is asked, loss (), d_logits
block.CASE        nn.TransformerEncoderLayer as the lesson has it (no biases in attention, norms without gain and
                  bias, eps 1e-6): x (b, n, d), heads (), w_qkv, w_o, w_1 (d, d_ff), b_1, w_2 (d_ff, d), b_2, output.
                  CASE: post_relu, post_gelu, pre_relu, pre_gelu, post_relu_causal, pre_gelu_causal
flow.CASE         three such blocks, written out so that residual connections and norms can be left out: x (n, d),
                  heads (), for block i the weights as i.w_qkv and so on; d_output (n, d) is the gradient of the loss at
                  the output of the stack (in pre-norm after one more norm), d_inputs (3 + 1, n, d) PyTorch's gradients
                  at the input of each block and at the output of the last. CASE: ORDER_on or _off for residual, _on or
                  _off for norm: post_on_on, post_on_off, post_off_on, post_off_off, pre_on_on, pre_off_on
adam              parameters (steps + 1, k): before and after each step, gradients (steps, k), learning_rate ()
"""

import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

FILE = Path(__file__).with_name("torch_gradients.npz")
Case = dict[str, Tensor]


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape)


def gradients(inputs: Case, forward: Callable[..., Tensor]) -> Case:
    """The inputs, forward's output, a random gradient arriving there, and what arrives at each input that is real."""
    leaves = {name: value.clone().requires_grad_(value.is_floating_point()) for name, value in inputs.items()}
    output = forward(**leaves)
    d_output = normal(*output.shape)
    output.backward(d_output)
    arrived = {f"d_{name}": leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}
    return {**inputs, "output": output, "d_output": d_output, **arrived}


def causal(n: int) -> Tensor:
    return torch.ones(n, n).tril().bool()


def linear() -> Case:
    inputs = {"x": normal(3, 4, 5), "w": normal(5, 6), "b": normal(6)}
    return gradients(inputs, lambda x, w, b: F.linear(x, w.T, b))


def attention(n_q: int, n_k: int, allowed: Tensor | None = None) -> Case:
    inputs = {"queries": normal(2, 3, n_q, 4), "keys": normal(2, 3, n_k, 4), "values": normal(2, 3, n_k, 4)}
    case = gradients(
        inputs, lambda queries, keys, values: F.scaled_dot_product_attention(queries, keys, values, allowed)
    )
    return case if allowed is None else {**case, "allowed": allowed}


def multi_head(heads: int, allowed: Tensor | None = None) -> Case:
    b, n, d = 3, 5, 8

    def forward(x: Tensor, w_qkv: Tensor, w_o: Tensor) -> Tensor:
        layer = nn.MultiheadAttention(d, heads, bias=False, batch_first=True)
        parameters = {"in_proj_weight": w_qkv.T, "out_proj.weight": w_o.T}
        options = {"attn_mask": None if allowed is None else ~allowed, "need_weights": False}
        return torch.func.functional_call(layer, parameters, (x, x, x), options)[0]

    case = gradients({"x": normal(b, n, d), "w_qkv": normal(d, 3 * d) * 0.5, "w_o": normal(d, d)}, forward)
    case["heads"] = torch.tensor(heads)
    return case if allowed is None else {**case, "allowed": allowed}


def layer_norm() -> Case:
    inputs = {"x": 2 * normal(3, 4, 8) + 3, "gain": normal(8), "bias": normal(8)}
    case = gradients(inputs, lambda x, gain, bias: F.layer_norm(x, (8,), gain, bias, 1e-5))
    return {**case, "eps": torch.tensor(1e-5)}


def layer_norm_plain() -> Case:
    case = gradients({"x": 2 * normal(3, 4, 8) + 3}, lambda x: F.layer_norm(x, (8,), eps=1e-6))
    return {**case, "eps": torch.tensor(1e-6)}


def embedding() -> Case:
    return gradients(
        {"table": normal(7, 4), "indices": torch.randint(6, (3, 5))}, lambda table, indices: F.embedding(indices, table)
    )


def cross_entropy() -> Case:
    logits, answers = (4 * normal(3, 5, 6)).requires_grad_(), torch.randint(-1, 6, (3, 5))
    loss = F.cross_entropy(logits.flatten(0, 1), answers.flatten(), ignore_index=-1)
    loss.backward()
    assert logits.grad is not None
    return {"logits": logits, "answers": answers, "loss": loss, "d_logits": logits.grad}


def block(order: str, activation: str, allowed: Tensor | None = None) -> Case:
    b, n, d, heads, d_ff = 3, 6, 8, 4, 10

    def forward(x: Tensor, w_qkv: Tensor, w_o: Tensor, w_1: Tensor, b_1: Tensor, w_2: Tensor, b_2: Tensor) -> Tensor:
        layer = nn.TransformerEncoderLayer(
            d, heads, d_ff, dropout=0.0, activation=activation, layer_norm_eps=1e-6, batch_first=True,
            norm_first=order == "pre",
        )  # fmt: skip
        parameters = {
            "self_attn.in_proj_weight": w_qkv.T,
            "self_attn.in_proj_bias": torch.zeros(3 * d),
            "self_attn.out_proj.weight": w_o.T,
            "self_attn.out_proj.bias": torch.zeros(d),
            "linear1.weight": w_1.T,
            "linear1.bias": b_1,
            "linear2.weight": w_2.T,
            "linear2.bias": b_2,
        }
        options = {"src_mask": None if allowed is None else ~allowed}
        return torch.func.functional_call(layer, parameters, (x,), options)

    inputs = {
        "x": normal(b, n, d),
        "w_qkv": normal(d, 3 * d) * 0.5,
        "w_o": normal(d, d) * 0.5,
        "w_1": normal(d, d_ff) * 0.5,
        "b_1": normal(d_ff) * 0.5,
        "w_2": normal(d_ff, d) * 0.5,
        "b_2": normal(d) * 0.5,
    }
    return {**gradients(inputs, forward), "heads": torch.tensor(heads)}


def flow(order: str, residual: bool, norm: bool) -> Case:
    n, d, heads, d_ff, blocks = 5, 8, 2, 12, 3

    def normed(x: Tensor, when: str) -> Tensor:
        return F.layer_norm(x, (d,), eps=1e-6) if norm and order == when else x

    def split(x: Tensor) -> Tensor:
        return x.view(n, heads, d // heads).transpose(0, 1)

    def attended(x: Tensor, w_qkv: Tensor, w_o: Tensor) -> Tensor:
        mixed = F.scaled_dot_product_attention(*(split(part) for part in (x @ w_qkv).chunk(3, dim=-1)))
        return mixed.transpose(0, 1).reshape(n, d) @ w_o

    def through(x: Tensor, i: int) -> Tensor:
        computed = attended(normed(x, "pre"), weights[f"{i}.w_qkv"], weights[f"{i}.w_o"])
        x = normed(residual * x + computed, "post")
        hidden = F.relu(normed(x, "pre") @ weights[f"{i}.w_1"] + weights[f"{i}.b_1"])
        return normed(residual * x + hidden @ weights[f"{i}.w_2"] + weights[f"{i}.b_2"], "post")

    sizes = {"w_qkv": (d, 3 * d), "w_o": (d, d), "w_1": (d, d_ff), "b_1": (d_ff,), "w_2": (d_ff, d), "b_2": (d,)}
    weights = {f"{i}.{name}": normal(*shape) * 0.4 for i in range(blocks) for name, shape in sizes.items()}
    states = [normal(n, d).requires_grad_()]
    for i in range(blocks):
        states.append(through(states[-1], i))
    d_output = normal(n, d)
    d_inputs = torch.autograd.grad(normed(states[-1], "pre"), states, d_output)
    return {
        **weights,
        "x": states[0],
        "heads": torch.tensor(heads),
        "d_output": d_output,
        "d_inputs": torch.stack(d_inputs),
    }


def adam() -> Case:
    parameter = normal(20).requires_grad_()
    optimiser = torch.optim.Adam([parameter], lr=0.05)
    steps, arrived = [parameter.detach().clone()], []
    for _ in range(6):
        parameter.grad = normal(20) * torch.logspace(-9, 3, 20)
        arrived.append(parameter.grad.clone())
        optimiser.step()
        steps.append(parameter.detach().clone())
    return {"parameters": torch.stack(steps), "gradients": torch.stack(arrived), "learning_rate": torch.tensor(0.05)}


CASES: dict[str, Callable[[], Case]] = {
    "linear": linear,
    "softmax": lambda: gradients({"scores": 3 * normal(2, 4, 5)}, lambda scores: scores.softmax(-1)),
    "attention.plain": lambda: attention(5, 5),
    "attention.causal": lambda: attention(5, 5, causal(5)),
    "attention.cross": lambda: attention(3, 6),
    "mha.one": lambda: multi_head(1),
    "mha.four": lambda: multi_head(4),
    "mha.causal": lambda: multi_head(2, causal(5)),
    "layer_norm": layer_norm,
    "layer_norm.plain": layer_norm_plain,
    "relu": lambda: gradients({"z": torch.cat([normal(20), torch.zeros(1)])}, lambda z: F.relu(z)),
    "gelu": lambda: gradients({"z": torch.linspace(-6, 6, 61)}, lambda z: F.gelu(z)),
    "embedding": embedding,
    "cross_entropy": cross_entropy,
    "block.post_relu": lambda: block("post", "relu"),
    "block.post_gelu": lambda: block("post", "gelu"),
    "block.pre_relu": lambda: block("pre", "relu"),
    "block.pre_gelu": lambda: block("pre", "gelu"),
    "block.post_relu_causal": lambda: block("post", "relu", causal(6)),
    "block.pre_gelu_causal": lambda: block("pre", "gelu", causal(6)),
    "flow.post_on_on": lambda: flow("post", True, True),
    "flow.post_on_off": lambda: flow("post", True, False),
    "flow.post_off_on": lambda: flow("post", False, True),
    "flow.post_off_off": lambda: flow("post", False, False),
    "flow.pre_on_on": lambda: flow("pre", True, True),
    "flow.pre_off_on": lambda: flow("pre", False, True),
    "adam": adam,
}


def main() -> None:
    torch.set_num_threads(1)  # sums in one order, the same bytes every time
    torch.set_default_dtype(torch.float64)
    torch.backends.mha.set_fastpath_enabled(False)  # the plain path: one formula, one order of sums
    arrays: dict[str, np.ndarray] = {}
    for name, make in CASES.items():
        torch.manual_seed(zlib.crc32(name.encode()))
        for key, value in make().items():
            arrays[f"{name}/{key}"] = value.detach().numpy().copy(order="C")
    np.savez_compressed(FILE, allow_pickle=False, **arrays)
    print(f"{FILE.name}: {len(arrays)} arrays, {FILE.stat().st_size:,} bytes, PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
