"""The script of the page on multi-head attention: random heads, heads built by hand, or trained ones."""

import base64
from collections.abc import Mapping
from textwrap import wrap

import numpy as np

from core import multi_head
from ui.control_kinds import Settings
from ui.scripts import pieces
from ui.scripts.writing import Piece, script, sequence, words

_ATTEND = """
# %% Every head attends
n, d_k = len(x), w_q.shape[1] // HEADS
queries = split_heads(@Q@, HEADS)  # (n, d_model) @ (d_model, heads * d_k) -> (heads, n, d_k)
keys = split_heads(x @ w_k, HEADS)
values = split_heads(x @ w_v, HEADS)
scores = queries @ keys.transpose(0, 2, 1)  # (heads, n, d_k) @ (heads, d_k, n) -> (heads, n, n)
scaled = scores / sqrt(d_k)
allowed = @ALLOWED@
masked = np.where(allowed, scaled, -np.inf)
weights = softmax(masked)  # (heads, n, n)
head_outputs = weights @ values  # (heads, n, d_k)
concatenated = merge_heads(head_outputs)  # (n, heads * d_k)
output = concatenated @ w_o  # (n, heads * d_k) @ (heads * d_k, d_model) -> (n, d_model)
row_entropy = entropy(weights)  # (heads, n) bits

show(weights=weights, output=output)

# %% The mean of the heads
mean_map = weights.mean(axis=0)  # (n, n)
from_mean = np.abs(weights - mean_map).sum(axis=-1).mean(axis=-1) / 2  # (heads,): how far each head is from it
show(mean_map=mean_map, from_mean=from_mean)

# %% Heads switched off
keep = np.array([head + 1 not in OFF for head in range(HEADS)])
output_left = merge_heads(head_outputs * keep[:, np.newaxis, np.newaxis]) @ w_o  # (n, d_model)
change = output_left - output
change_lengths, output_lengths = np.linalg.norm(change, axis=-1), np.linalg.norm(output, axis=-1)  # (n,) each
show(output_left=output_left, change=change, change_lengths=change_lengths, output_lengths=output_lengths)

# %% What each head looks at
statistics = look_at(weights)  # (heads, 5)
even = allowed / allowed.sum(axis=-1, keepdims=True)  # (n, n): the same weight on all that may be looked at
even_statistics = look_at(even[np.newaxis])  # (1, 5)
print("entropy, distance, on itself, on previous, on first")
show(statistics=statistics, even_statistics=even_statistics)
"""
_RANDOM = """
# %% Random weights
x = @X@  # (n, d_model)
w_q, w_k, w_v, w_o = attention_weights(D_MODEL, SEED, WEIGHT_SCALE)  # (d_model, d_model) each
"""
_BUILT = """
# %% Weights built by hand
x, w_q, w_k, w_v, w_o, b_q = built_heads(SENTENCE, D_MODEL, SEED)
"""
_TRAINED = """
# %% The trained weights
# What goes into this layer, and its weights, as training left them: 32-bit floats, packed as text.
# The parts of the model before and after this layer are left out, and so are its answers.
x = unpack(@X@, @N@, D_MODEL)

w_qkv = unpack(@QKV@, D_MODEL, 3 * D_MODEL)

w_o = unpack(@O@, D_MODEL, D_MODEL)
w_q, w_k, w_v = np.split(w_qkv, 3, axis=1)  # (d_model, d_model) each
"""
_HEADS = (pieces.softmax, pieces.entropy, pieces.split_heads, pieces.merge_heads, pieces.look_at)
_BUILDING = (pieces.word_vectors, pieces.output_projection, pieces.frequencies, pieces.waves, pieces.one_back)


def write(settings: Settings, arrays: Mapping[str, np.ndarray]) -> str:
    """The script at these settings of the page, whose arrays give it a trained layer: nothing draws that."""
    source, heads = settings.heads_from, len(arrays["weights"])
    functions: list[Piece] = []
    imports = ["from math import sqrt"]
    if source == "trained":
        constants = f"D_MODEL = {arrays['x'].shape[1]}"
        start, imports = _packed(arrays), ["import base64", *imports]
        functions = [pieces.unpack]
    elif source == "built by hand":
        sentence = settings.tokens or multi_head.example_sentence(settings.n_tokens)
        constants = f"SENTENCE = {words(sentence)}\nD_MODEL = {settings.d_model}\nSEED = {settings.seed}"
        start, functions = _BUILT, [*_BUILDING, pieces.built_heads]
    else:
        constants, draw, x = sequence(settings)
        constants += f"\nD_MODEL = {settings.d_model}\nWEIGHT_SCALE = {settings.weight_scale}\nSEED = {settings.seed}"
        start, functions = _RANDOM.replace("@X@", x), [*draw, pieces.attention_weights]
    constants += f"\nHEADS = {heads}\nOFF = {sorted(settings.off)}  # heads that are switched off, from 1"
    calls = start + _ATTEND.replace("@Q@", "x @ w_q + b_q" if source == "built by hand" else "x @ w_q").replace(
        "@ALLOWED@",
        "np.ones((n, n), dtype=bool)  # everyone sees everyone"
        if arrays["allowed"].all()
        else "np.tri(n, dtype=bool)  # causal: no token looks at a later one",
    )
    return script("Multi-head attention", constants, [*functions, *_HEADS], calls, imports=imports)


def _packed(arrays: Mapping[str, np.ndarray]) -> str:
    """The calls that unpack a trained layer."""
    w_qkv = np.concatenate([arrays[name] for name in ("w_q", "w_k", "w_v")], axis=1)
    marks = {"@X@": arrays["x"], "@QKV@": w_qkv, "@O@": arrays["w_o"]}
    text = _TRAINED.replace("@N@", str(len(arrays["x"])))
    for mark, array in marks.items():
        lines = "\n".join(wrap(base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode(), 110))
        text = text.replace(mark, f'"""\n{lines}\n"""')
    return text
