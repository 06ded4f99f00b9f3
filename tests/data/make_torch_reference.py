"""Make torch_reference.npz: figures of PyTorch that the tests compare core with.

    python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch==2.13.0 numpy
    /tmp/torch/bin/python tests/data/make_torch_reference.py

PyTorch is needed for this alone; the tests read the file. All figures are float64, every draw is seeded by
the name of its case, and no line here is core's. Keys are "case/array". Matrices stand as core multiplies
them, x @ w, so PyTorch's weights are transposed. Shapes: n tokens, d model width, h heads, d_k = d/h; () is
a single number.

softmax.large     scores, weights
sdpa.CASE         queries (n_q, d_k), keys (n_k, d_k), values (n_k, d_v), output (n_q, d_v), and where the
                  case has one: allowed (n_q, n_k) booleans, bias (n_q, n_k), scale () in place of 1/√d_k.
                  CASE: plain, causal, padding, masked_row, bias, no_scaling (1), temperature (2.5), cross,
                  heads (three, as a leading axis)
entropy           weights (n, n), bits (n,)
mha.N_D_H         nn.MultiheadAttention, a batch of one: x (n, d), w_q w_k w_v w_o (d, d), b_q b_k b_v b_o
                  (d,), weights (h, n, n), output (n, d); mha.N_D_H_causal and mha.N_D_H_padding have
                  allowed (n, n) too
cross             nn.MultiheadAttention with one head, no biases and two sequences: x (n_q, d), memory
                  (n_k, d), w_q w_k w_v w_o, weights (n_q, n_k), output (n_q, d)
layer_norm.CASE   x (n, d), gain bias (d,), eps (), output (n, d). CASE: affine, lesson (gain 1, bias 0, eps
                  1e-6), one_hot (eps 1e-12)
batch_norm        x (n, d), eps (), output (n, d), over the tokens
gelu              x (n,), exact (n,), tanh (n,)
encoder.CASE      nn.TransformerEncoderLayer with all that it has: x (n, d), heads (), eps (), the
                  attention's arrays as above, w_1 (d, d_ff), b_1, w_2 (d_ff, d), b_2, gain_1, bias_1,
                  gain_2, bias_2, output (n, d). CASE: post_relu, pre_gelu
block.CASE        the same as the lesson has it: attention's biases 0, gains 1 and biases 0 of the norms,
                  eps 1e-6. CASE: post_relu, post_gelu, pre_relu, pre_gelu, post_relu_causal,
                  pre_gelu_causal
stack.CASE        three such blocks in a row: x, heads, outputs (3, n, d), and the arrays of block i as
                  i.w_q and so on. CASE: post_relu, pre_relu
rnn.N_D           nn.RNN (tanh) without biases: x (n, d), w_x w_h (d, d), states (n, d), and by automatic
                  differentiation jacobians (n, d, d): [t, i, j] = d h_T[i] / d x_t[j]
rope.N_D          x (n, d), positions (n,), output (n, d): a product of complex numbers
parameters        encoder_layer (k, 4): d_model, heads, d_ff, count; attention (k, 3): d_model, heads, count
"""

import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

FILE = Path(__file__).with_name("torch_reference.npz")
Case = dict[str, Tensor]


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape)


def randomise(module: nn.Module, scale: float = 0.3) -> nn.Module:
    """Every parameter drawn, those too that PyTorch starts at 0 or 1: a forgotten one would not show."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0, scale)
    return module.eval()


def causal(n: int) -> Tensor:
    return torch.ones(n, n).tril().bool()


def softmax_large() -> Case:
    scores = torch.tensor([[1000.0, 1001.0], [-1000.0, 0.0], [3.0, 3.0]])
    return {"scores": scores, "weights": torch.softmax(scores, dim=-1)}


def sdpa(
    n_q: int,
    n_k: int,
    d_k: int,
    d_v: int,
    *,
    heads: int | None = None,
    allowed: Tensor | None = None,
    with_bias: bool = False,
    scale: float | None = None,
) -> Case:
    lead = [] if heads is None else [heads]
    queries, keys, values = normal(*lead, n_q, d_k), normal(*lead, n_k, d_k), normal(*lead, n_k, d_v)
    case = {"queries": queries, "keys": keys, "values": values}
    if with_bias:
        case["bias"] = normal(n_q, n_k)
    if allowed is not None:
        case["allowed"] = allowed
    if scale is not None:
        case["scale"] = torch.tensor(scale)
    mask = case.get("bias", allowed)
    case["output"] = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, scale=scale)
    return case


def padding(n_q: int, n_k: int, fillers: int) -> Tensor:
    return (torch.arange(n_k) < n_k - fillers).expand(n_q, n_k)


def masked_row() -> Tensor:
    allowed = causal(5)
    allowed[2] = False
    return allowed


def entropy() -> Case:
    weights = torch.softmax(2 * normal(6, 6), dim=-1)
    return {"weights": weights, "bits": torch.distributions.Categorical(weights).entropy() / np.log(2)}


def attention_parts(layer: nn.MultiheadAttention) -> Case:
    d = layer.embed_dim
    parts = {"w_o": layer.out_proj.weight.T, "b_o": layer.out_proj.bias}
    for index, letter in enumerate("qkv"):
        rows = slice(index * d, (index + 1) * d)
        parts[f"w_{letter}"] = layer.in_proj_weight[rows].T
        parts[f"b_{letter}"] = layer.in_proj_bias[rows]
    return parts


def multi_head(n: int, d: int, heads: int, allowed: Tensor | None = None) -> Case:
    layer = randomise(nn.MultiheadAttention(d, heads, batch_first=True))
    x = normal(1, n, d)
    hidden = None if allowed is None else ~allowed  # PyTorch's mask is True where a query may not look
    output, weights = layer(x, x, x, attn_mask=hidden, average_attn_weights=False)
    case = {"x": x[0], **attention_parts(layer), "weights": weights[0], "output": output[0]}
    return case if allowed is None else {**case, "allowed": allowed}


def multi_head_padded(n: int, d: int, heads: int, fillers: int) -> Case:
    layer = randomise(nn.MultiheadAttention(d, heads, batch_first=True))
    x = normal(1, n, d)
    allowed = padding(n, n, fillers)
    output, weights = layer(x, x, x, key_padding_mask=~allowed[:1], average_attn_weights=False)
    parts = attention_parts(layer)
    return {"x": x[0], **parts, "allowed": allowed, "weights": weights[0], "output": output[0]}


def cross_attention(n_q: int, n_k: int, d: int) -> Case:
    layer = randomise(nn.MultiheadAttention(d, 1, bias=False, batch_first=True))
    x, memory = normal(1, n_q, d), normal(1, n_k, d)
    output, weights = layer(x, memory, memory)
    w_q, w_k, w_v = (rows.T for rows in layer.in_proj_weight.chunk(3))
    matrices = {"w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": layer.out_proj.weight.T}
    return {"x": x[0], "memory": memory[0], **matrices, "weights": weights[0], "output": output[0]}


def layer_norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Case:
    output = F.layer_norm(x, x.shape[-1:], gain, bias, eps)
    return {"x": x, "gain": gain, "bias": bias, "eps": torch.tensor(eps), "output": output}


def batch_norm() -> Case:
    x = 3 * normal(7, 6) + 1
    output = F.batch_norm(x, None, None, training=True, eps=1e-6)
    return {"x": x, "eps": torch.tensor(1e-6), "output": output}


def gelu() -> Case:
    x = torch.linspace(-6, 6, 121)
    return {"x": x, "exact": F.gelu(x), "tanh": F.gelu(x, approximate="tanh")}


def encoder_layer(d: int, heads: int, d_ff: int, order: str, activation: str, eps: float) -> nn.Module:
    layer = nn.TransformerEncoderLayer(
        d,
        heads,
        d_ff,
        dropout=0.0,
        activation=activation,
        layer_norm_eps=eps,
        batch_first=True,
        norm_first=order == "pre",
    )
    return randomise(layer)


def encoder_parts(layer: nn.TransformerEncoderLayer) -> Case:
    parts = attention_parts(layer.self_attn)
    for index, (norm, linear) in enumerate(((layer.norm1, layer.linear1), (layer.norm2, layer.linear2)), start=1):
        parts |= {f"gain_{index}": norm.weight, f"bias_{index}": norm.bias}
        parts |= {f"w_{index}": linear.weight.T, f"b_{index}": linear.bias}
    return parts


def as_in_the_lesson(layer: nn.TransformerEncoderLayer) -> nn.TransformerEncoderLayer:
    """Attention without biases, norms without gain and bias."""
    with torch.no_grad():
        layer.self_attn.in_proj_bias.zero_()
        layer.self_attn.out_proj.bias.zero_()
        for norm in (layer.norm1, layer.norm2):
            norm.weight.fill_(1)
            norm.bias.zero_()
    return layer


def encoder(order: str, activation: str) -> Case:
    n, d, heads, d_ff, eps = 5, 8, 2, 12, 1e-5
    layer = encoder_layer(d, heads, d_ff, order, activation, eps)
    x = normal(1, n, d)
    sizes = {"heads": torch.tensor(heads), "eps": torch.tensor(eps)}
    return {"x": x[0], **sizes, **encoder_parts(layer), "output": layer(x)[0]}


def block(order: str, activation: str, allowed: Tensor | None = None) -> Case:
    n, d, heads, d_ff = 6, 8, 4, 10
    layer = as_in_the_lesson(encoder_layer(d, heads, d_ff, order, activation, 1e-6))
    x = normal(1, n, d)
    output = layer(x, src_mask=None if allowed is None else ~allowed)
    return {"x": x[0], "heads": torch.tensor(heads), **encoder_parts(layer), "output": output[0]}


def stack(order: str) -> Case:
    n, d, heads, d_ff = 5, 8, 2, 10
    state = normal(1, n, d)
    case = {"x": state[0], "heads": torch.tensor(heads)}
    outputs = []
    for index in range(3):
        layer = as_in_the_lesson(encoder_layer(d, heads, d_ff, order, "relu", 1e-6))
        case |= {f"{index}.{name}": part for name, part in encoder_parts(layer).items()}
        state = layer(state)
        outputs.append(state[0])
    return {**case, "outputs": torch.stack(outputs)}


def rnn(n: int, d: int) -> Case:
    network = randomise(nn.RNN(d, d, nonlinearity="tanh", bias=False), scale=d**-0.5)
    x = normal(n, d)
    states, _ = network(x)
    jacobian = torch.autograd.functional.jacobian(lambda x: network(x)[0][-1], x)  # (i, t, j)
    weights = {"w_x": network.weight_ih_l0.T, "w_h": network.weight_hh_l0.T}
    return {"x": x, **weights, "states": states, "jacobians": jacobian.permute(1, 0, 2)}


def rope(n: int, d: int) -> Case:
    x = normal(n, d)
    positions = 3 * torch.arange(n) + 2
    angles = torch.outer(positions.double(), 10000.0 ** (-torch.arange(0, d, 2).double() / d))
    turned = torch.view_as_complex(x.reshape(n, d // 2, 2)) * torch.polar(torch.ones_like(angles), angles)
    return {"x": x, "positions": positions, "output": torch.view_as_real(turned).reshape(n, d)}


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def parameters() -> Case:
    layers = [(512, 8, 2048), (768, 12, 3072), (8, 1, 16), (64, 16, 100)]
    attentions = [(512, 8), (512, 1), (6, 3), (64, 64)]
    layer_counts = [[*sizes, count(nn.TransformerEncoderLayer(*sizes))] for sizes in layers]
    attention_counts = [[*sizes, count(nn.MultiheadAttention(*sizes))] for sizes in attentions]
    return {"encoder_layer": torch.tensor(layer_counts), "attention": torch.tensor(attention_counts)}


CASES: dict[str, Callable[[], Case]] = {
    "softmax.large": softmax_large,
    "sdpa.plain": lambda: sdpa(5, 5, 6, 6),
    "sdpa.causal": lambda: sdpa(5, 5, 6, 6, allowed=causal(5)),
    "sdpa.padding": lambda: sdpa(5, 5, 4, 3, allowed=padding(5, 5, 2)),
    "sdpa.masked_row": lambda: sdpa(5, 5, 4, 4, allowed=masked_row()),
    "sdpa.bias": lambda: sdpa(5, 5, 4, 4, with_bias=True),
    "sdpa.no_scaling": lambda: sdpa(5, 5, 16, 4, scale=1.0),
    "sdpa.temperature": lambda: sdpa(5, 5, 9, 4, scale=1 / (3 * 2.5)),
    "sdpa.cross": lambda: sdpa(3, 7, 6, 4),
    "sdpa.heads": lambda: sdpa(4, 4, 3, 3, heads=3, allowed=causal(4)),
    "entropy": entropy,
    "mha.5_8_1": lambda: multi_head(5, 8, 1),
    "mha.5_8_4": lambda: multi_head(5, 8, 4),
    "mha.7_12_3": lambda: multi_head(7, 12, 3),
    "mha.1_6_6": lambda: multi_head(1, 6, 6),
    "mha.6_8_2_causal": lambda: multi_head(6, 8, 2, causal(6)),
    "mha.6_8_2_padding": lambda: multi_head_padded(6, 8, 2, fillers=2),
    "cross": lambda: cross_attention(3, 7, 6),
    "layer_norm.affine": lambda: layer_norm(2 * normal(4, 8) + 3, normal(8), normal(8), 1e-5),
    "layer_norm.lesson": lambda: layer_norm(normal(5, 8), torch.ones(8), torch.zeros(8), 1e-6),
    "layer_norm.one_hot": lambda: layer_norm(torch.eye(4), torch.ones(4), torch.zeros(4), 1e-12),
    "batch_norm": batch_norm,
    "gelu": gelu,
    "encoder.post_relu": lambda: encoder("post", "relu"),
    "encoder.pre_gelu": lambda: encoder("pre", "gelu"),
    "block.post_relu": lambda: block("post", "relu"),
    "block.post_gelu": lambda: block("post", "gelu"),
    "block.pre_relu": lambda: block("pre", "relu"),
    "block.pre_gelu": lambda: block("pre", "gelu"),
    "block.post_relu_causal": lambda: block("post", "relu", causal(6)),
    "block.pre_gelu_causal": lambda: block("pre", "gelu", causal(6)),
    "stack.post_relu": lambda: stack("post"),
    "stack.pre_relu": lambda: stack("pre"),
    "rnn.8_4": lambda: rnn(8, 4),
    "rnn.1_4": lambda: rnn(1, 4),
    "rnn.30_6": lambda: rnn(30, 6),
    "rope.6_8": lambda: rope(6, 8),
    "rope.5_2": lambda: rope(5, 2),
    "parameters": parameters,
}


def main() -> None:
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
