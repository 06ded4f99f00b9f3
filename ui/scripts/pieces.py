"""The functions that the scripts to take away are put together from, as a learner reads them.

They compute what core computes, in its order of operations, without its checks of the input; tests run the scripts and
compare every array. A script takes the source of the functions it needs, so each one uses numpy, the modules imported
here and other pieces alone.
"""

import base64
import hashlib
from math import erf, pi, sqrt

import numpy as np

# --- random draws ----------------------------------------------------------------------------------------------------


def random_tokens(n, d_model, seed):
    """(n, d_model) standard normal rows: five from the lesson's own generator, further ones from another."""
    first = np.random.RandomState(seed).randn(5, d_model)
    further = np.random.default_rng([0, seed, d_model]).standard_normal((max(0, n - 5), d_model))
    return np.concatenate([first[:n], further])


def word_vectors(words, d_model, seed):
    """(n, d_model) standard normal rows: a word has the same row wherever it stands."""
    rows = []
    for word in words:
        digest = hashlib.sha256(word.encode(errors="surrogatepass")).digest()  # the same on every machine
        numbers = np.frombuffer(digest, dtype="<u4").tolist()
        rows.append(np.random.default_rng([1, seed, d_model, *numbers]).standard_normal(d_model))
    return np.stack(rows)


def second_tokens(n, d_model, seed):
    """(n, d_model) standard normal rows for the second sequence, which gives keys and values."""
    return np.random.default_rng([4, seed, d_model]).standard_normal((n, d_model))


def attention_weights(d_model, seed, scale):
    """W_Q, W_K, W_V and W_O, (d_model, d_model) each: standard normal, times scale."""
    stream = np.random.RandomState(seed)
    stream.randn(5, d_model)  # the lesson draws its five tokens first
    w_q, w_k, w_v = (stream.randn(d_model, d_model) * scale for _ in range(3))
    w_o = np.random.default_rng([2, seed, d_model]).standard_normal((d_model, d_model)) * scale
    return w_q, w_k, w_v, w_o


def output_projection(width, d_model, seed):
    """(width, d_model), normal with standard deviation 1/sqrt(width)."""
    return np.random.default_rng([2, seed, d_model, width]).standard_normal((width, d_model)) / np.sqrt(width)


def block_weights(d_model, d_ff, seed, scale, block):
    """The weights of one block, standard normal times scale; biases are zero. Each block has a stream of its own."""
    if block == 0:
        stream = np.random.RandomState(seed)
        stream.standard_normal((5, d_model))  # the lesson draws its five tokens first
        w_o = np.random.default_rng([2, seed, d_model]).standard_normal((d_model, d_model)) * scale
    else:
        stream = np.random.default_rng([3, seed, d_model, block])
        w_o = stream.standard_normal((d_model, d_model)) * scale
    w_q, w_k, w_v = (stream.standard_normal((d_model, d_model)) * scale for _ in range(3))
    w_1 = stream.standard_normal((d_model, d_ff)) * scale
    w_2 = stream.standard_normal((d_ff, d_model)) * scale
    return w_q, w_k, w_v, w_o, w_1, w_2


def position_table(n, d_model, seed):
    """(n, d_model) random rows, one per position, as a learned table looks before training."""
    return np.random.default_rng([5, seed, d_model]).standard_normal((n, d_model)) * np.sqrt(0.5)


def recurrent_weights(d_model, seed, gain):
    """W_x and W_h, (d_model, d_model) each: normal with standard deviation 1/sqrt(d_model), W_h times gain."""
    w_x, w_h = np.random.default_rng([6, seed, d_model]).standard_normal((2, d_model, d_model)) / np.sqrt(d_model)
    return w_x, w_h * gain


# --- recurrence ------------------------------------------------------------------------------------------------------


def rnn(x, w_x, w_h):
    """h_t = tanh(x_t W_x + h_(t-1) W_h): the states, (n, d). Each step needs the one before it."""
    states = np.zeros_like(x)
    state = np.zeros(len(w_h))
    for t, driven in enumerate(x @ w_x):
        state = np.tanh(driven + state @ w_h)  # (d,) @ (d, d) -> (d,)
        states[t] = state
    return states


def reach_of_tokens(states, w_x, w_h):
    """(n,) size of d h_T / d x_t: how much the last state changes when token t changes a little."""
    reach = np.zeros(len(states))
    slopes = 1 - states**2  # the derivative of tanh at each step, (n, d)
    through, exponent = np.diag(slopes[-1]), 0  # d h_T / d (what goes into the tanh of step t), (d, d)
    for t in reversed(range(len(states))):
        reach[t] = np.ldexp(np.linalg.norm(through @ w_x.T), exponent)
        if t > 0:
            through = (through @ w_h.T) * slopes[t - 1]  # one step further back
            size = int(np.frexp(np.abs(through).max())[1])  # powers of 2 are kept apart, or squares would vanish
            through, exponent = np.ldexp(through, -size), exponent + size
    return reach


# --- attention -------------------------------------------------------------------------------------------------------


def softmax(scores):
    """(..., n) -> (..., n): each row becomes shares of one; a row of -inf alone becomes zeros."""
    highest = scores.max(axis=-1, keepdims=True)
    exponentials = np.exp(scores - np.where(highest > -np.inf, highest, 0))
    total = exponentials.sum(axis=-1, keepdims=True)
    return exponentials / np.where(total > 0, total, 1)


def entropy(weights):
    """(..., n) -> (...): how widely each row looks, in bits."""
    logarithms = np.log2(weights, out=np.zeros_like(weights), where=weights > 0)
    return np.abs(np.sum(weights * logarithms, axis=-1))


# --- positions -------------------------------------------------------------------------------------------------------


def frequencies(d_model):
    """(ceil(d/2),) angle by which each sine-cosine pair turns from one position to the next."""
    return np.exp(np.arange(0, d_model, 2) * -(np.log(10000.0) / d_model))


def waves(positions, d_model):
    """(m, d_model) sines and cosines at any positions (m,): PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos."""
    angles = positions[:, np.newaxis] * frequencies(d_model)  # (m, ceil(d/2))
    encoding = np.zeros((len(positions), d_model))
    encoding[:, 0::2] = np.sin(angles)
    encoding[:, 1::2] = np.cos(angles[:, : d_model // 2])
    return encoding


def rotate(x):
    """RoPE: turn dimensions (2i, 2i+1) of row p by the angle p * frequency_i. x: (..., n, d)."""
    n, width = x.shape[-2:]
    paired = width - width % 2  # the last of an odd width has no partner
    angles = np.arange(n)[:, np.newaxis] * frequencies(width)[: paired // 2]  # (n, pairs)
    even, odd = x[..., 0:paired:2], x[..., 1:paired:2]
    turned = x.copy()
    turned[..., 0:paired:2] = even * np.cos(angles) - odd * np.sin(angles)
    turned[..., 1:paired:2] = even * np.sin(angles) + odd * np.cos(angles)
    return turned


def alibi_bias(n, slope):
    """(n, n) ALiBi: added to the scaled scores, -slope times the distance."""
    places = np.arange(n)
    return -slope * np.abs(places[:, np.newaxis] - places)


def by_offset(values):
    """Mean, smallest and largest value on each diagonal of an (n, n) matrix, (2n - 1,) each."""
    diagonals = [values.diagonal(offset) for offset in range(1 - len(values), len(values))]
    return tuple(np.array([read(diagonal) for diagonal in diagonals]) for read in (np.mean, np.min, np.max))


def nearest_encoding(x, encoding):
    """(n,) which row of encoding lies nearest to each row of x + encoding: a guess of the token's position."""
    total = x + encoding
    squares = (total**2).sum(-1)[:, np.newaxis] - 2 * total @ encoding.T + (encoding**2).sum(-1)
    return np.sqrt(np.maximum(squares, 0)).argmin(axis=-1)


# --- many heads ------------------------------------------------------------------------------------------------------


def unpack(text, *shape):
    """An array from base64 text: 32-bit floats, row by row."""
    return np.frombuffer(base64.b64decode(text), dtype="<f4").reshape(shape)


def one_back(width):
    """(width, width) matrix R that turns each sine-cosine pair back by its angle: waves(p) R = waves(p - 1)."""
    even, angles = np.arange(0, width - 1, 2), frequencies(width - width % 2)
    turn = np.zeros((width, width))
    turn[even, even] = turn[even + 1, even + 1] = np.cos(angles)
    turn[even + 1, even] = -np.sin(angles)  # sin(p - 1) = sin p cos 1 - cos p sin 1
    turn[even, even + 1] = np.sin(angles)  # cos(p - 1) = cos p cos 1 + sin p sin 1
    return turn


def built_heads(sentence, d_model, seed):
    """Three heads that are written down, not learned: previous token, first token, same word.

    The first half of a token's numbers is its word, the second half its position.
    """
    n, d_k = len(sentence), d_model // 2
    words = word_vectors(sentence, d_k, seed)
    words *= np.sqrt(d_k) / np.linalg.norm(words, axis=-1, keepdims=True)
    paired = d_k - d_k % 2  # positions come in sine-cosine pairs
    places = np.zeros((n, d_k))
    places[:, :paired] = waves(np.arange(n), paired)
    x = np.concatenate([words, places], axis=-1)  # (n, d_model)

    word_part, place_part = np.split(np.eye(d_model), 2, axis=1)  # (d_model, d_k) each: which half is looked at
    perfect = 100 * np.sqrt(d_k)  # the score of a perfect match, before scaling
    by_place, by_word = perfect / (paired / 2), perfect / d_k
    nothing = np.zeros((d_model, d_k))
    w_q = np.concatenate([place_part @ one_back(d_k) * by_place, nothing, word_part * by_word], axis=-1)
    w_k = np.concatenate([place_part, place_part, word_part], axis=-1)
    w_v = np.concatenate([word_part, word_part, word_part], axis=-1)
    b_q = np.concatenate([np.zeros(d_k), places[0] * by_place, np.zeros(d_k)])  # everyone asks for position 0
    return x, w_q, w_k, w_v, output_projection(3 * d_k, d_model, seed), b_q


def split_heads(x, heads):
    """(n, heads * d_k) -> (heads, n, d_k): head h gets the h-th slice of the columns."""
    n, width = x.shape
    return x.reshape(n, heads, width // heads).transpose(1, 0, 2)


def merge_heads(x):
    """(heads, n, d_k) -> (n, heads * d_k): the slices side by side."""
    heads, n, d_k = x.shape
    return x.transpose(1, 0, 2).reshape(n, heads * d_k)


def look_at(weights):
    """(heads, 5) what each head looks at, means over the query tokens. weights: (heads, n, n).

    Entropy in bits, distance in tokens, weight on the token itself, on the previous one, on the first one.
    """
    heads, n, _ = weights.shape
    places = np.arange(n)
    distance = np.abs(places[:, np.newaxis] - places)  # (n, n)
    return np.stack(
        [
            entropy(weights).mean(axis=-1),
            (weights * distance).sum(axis=-1).mean(axis=-1),
            weights[:, places, places].mean(axis=-1),
            weights[:, places[1:], places[:-1]].mean(axis=-1) if n > 1 else np.zeros(heads),
            weights[:, :, 0].mean(axis=-1),
        ],
        axis=1,
    )


# --- the block -------------------------------------------------------------------------------------------------------


def layer_norm(x):
    """Each token's numbers (the last axis) brought to mean 0 and spread 1."""
    return (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-6)


def relu(z):
    """max(0, z)."""
    return np.maximum(0, z)


def relu_slope(z):
    """The derivative of relu."""
    return (z > 0).astype(float)


def gelu(z):
    """z times the normal distribution function of z, the exact form."""
    return z * 0.5 * (1 + np.vectorize(erf, otypes=[float])(z / sqrt(2)))


def gelu_slope(z):
    """The derivative of gelu."""
    return 0.5 * (1 + np.vectorize(erf, otypes=[float])(z / sqrt(2))) + z * np.exp(-0.5 * z * z) / sqrt(2 * pi)


def transformer_block(x, weights, kind):
    """One block with every stage by name. x: (n, d_model); weights: of `block_weights`."""
    w_q, w_k, w_v, w_o, w_1, w_2 = weights
    heads, d_k = kind["heads"], x.shape[1] // kind["heads"]
    norm_before = kind["norm"] and kind["order"] == "pre-norm"
    norm_after = kind["norm"] and kind["order"] == "post-norm"

    entered_1 = layer_norm(x) if norm_before else x
    queries, keys, values = (split_heads(entered_1 @ w, heads) for w in (w_q, w_k, w_v))  # (heads, n, d_k) each
    scaled = queries @ keys.transpose(0, 2, 1) / sqrt(d_k)  # (heads, n, n)
    masked = np.where(np.tri(len(x), dtype=bool), scaled, -np.inf) if kind["causal"] else scaled
    attention = softmax(masked)  # (heads, n, n)
    concatenated = merge_heads(attention @ values)  # (n, d_model)
    computed_1 = concatenated @ w_o if kind["output_projection"] else concatenated
    added_1 = x + computed_1 if kind["residual"] else computed_1
    left_1 = layer_norm(added_1) if norm_after else added_1

    entered_2 = layer_norm(left_1) if norm_before else left_1
    before_activation = entered_2 @ w_1  # (n, d_model) @ (d_model, d_ff) -> (n, d_ff)
    hidden = kind["activation"](before_activation)
    computed_2 = hidden @ w_2  # (n, d_ff) @ (d_ff, d_model) -> (n, d_model)
    added_2 = left_1 + computed_2 if kind["residual"] else computed_2
    output = layer_norm(added_2) if norm_after else added_2
    return {
        "x": x,
        "entered_1": entered_1,
        "queries": queries,
        "keys": keys,
        "values": values,
        "attention": attention,
        "computed_1": computed_1,
        "added_1": added_1,
        "left_1": left_1,
        "entered_2": entered_2,
        "before_activation": before_activation,
        "hidden": hidden,
        "computed_2": computed_2,
        "added_2": added_2,
        "output": output,
    }


def final_norm(x, kind):
    """What leaves the stack: in pre-norm one more norm follows the last block."""
    return layer_norm(x) if kind["norm"] and kind["order"] == "pre-norm" else x


def run_stack(x, all_weights, kind):
    """The stages of every block, each fed with the output of the one before."""
    blocks = []
    for weights in all_weights:
        blocks.append(transformer_block(x, weights, kind))
        x = blocks[-1]["output"]
    return blocks


def alikeness(x):
    """The cosine of the angle between two tokens, the mean over all pairs. x: (n, d_model)."""
    x = x / (np.abs(x).max() or 1)
    lengths = np.linalg.norm(x, axis=-1)
    towards = x[lengths > 0] / lengths[lengths > 0][:, np.newaxis]  # a token of zeros has no direction
    n = len(towards)
    return (np.sum(towards.sum(axis=0) ** 2) - n) / (n * (n - 1)) if n > 1 else np.nan


def depth(x, blocks):
    """Spread and alikeness of the tokens, (blocks + 1,) each: of the input and of each block's output."""
    states = [x, *(stages["output"] for stages in blocks)]
    spread = np.array([state.std(axis=-1).mean() for state in states])
    return spread, np.array([alikeness(state) for state in states])


# --- the way back ----------------------------------------------------------------------------------------------------


def layer_norm_backward(d_output, x):
    """The gradient at the input x of a layer norm, from that at its output."""
    normalised = layer_norm(x)
    along = (d_output * normalised).mean(axis=-1, keepdims=True)
    mean = d_output.mean(axis=-1, keepdims=True)
    return (d_output - mean - normalised * along) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-6)


def block_backward(d_output, stages, weights, kind):
    """The gradient at a block's input, from that at its output: the steps of the block in reverse. (n, d_model)."""
    w_q, w_k, w_v, w_o, w_1, w_2 = weights
    norm_before = kind["norm"] and kind["order"] == "pre-norm"
    norm_after = kind["norm"] and kind["order"] == "post-norm"

    d_added = layer_norm_backward(d_output, stages["added_2"]) if norm_after else d_output
    d_hidden = d_added @ w_2.T  # (n, d_ff)
    d_x = (d_hidden * kind["slope"](stages["before_activation"])) @ w_1.T  # (n, d_model)
    d_x = layer_norm_backward(d_x, stages["left_1"]) if norm_before else d_x
    d_x = d_added + d_x if kind["residual"] else d_x  # the residual connection hands the gradient on as it is

    d_added = layer_norm_backward(d_x, stages["added_1"]) if norm_after else d_x
    d_mixed = split_heads(d_added @ w_o.T if kind["output_projection"] else d_added, kind["heads"])  # (heads, n, d_k)
    queries, keys, values, attention = (stages[name] for name in ("queries", "keys", "values", "attention"))
    d_attention = d_mixed @ values.transpose(0, 2, 1)  # (heads, n, n)
    d_scores = attention * (d_attention - (d_attention * attention).sum(axis=-1, keepdims=True))
    d_scores = d_scores / sqrt(queries.shape[-1])
    d_x = merge_heads(d_scores @ keys) @ w_q.T
    d_x = d_x + merge_heads(d_scores.transpose(0, 2, 1) @ queries) @ w_k.T
    d_x = d_x + merge_heads(attention.transpose(0, 2, 1) @ d_mixed) @ w_v.T
    d_x = layer_norm_backward(d_x, stages["x"]) if norm_before else d_x
    return d_added + d_x if kind["residual"] else d_x


def lengths_on_the_way_back(x, all_weights, kind, d_output):
    """(blocks,) length of the gradient at the input of each block, going back from the stack's output."""
    blocks = run_stack(x, all_weights, kind)
    pre_norm = kind["norm"] and kind["order"] == "pre-norm"
    d_x = layer_norm_backward(d_output, blocks[-1]["output"]) if pre_norm else d_output
    lengths = []
    for stages, weights in zip(reversed(blocks), reversed(all_weights), strict=True):
        d_x = block_backward(d_x, stages, weights, kind)
        lengths.append(np.linalg.norm(d_x))
    return np.array(lengths[::-1])
