"""The functions that the scripts to take away are put together from, as a learner reads them.

They compute what core computes, without its checks of the input; tests run the scripts and compare every array. A
script takes the source of the functions it needs, so each one uses numpy, `hashlib`, `erf` and other pieces alone.
"""

import hashlib
from math import erf

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
