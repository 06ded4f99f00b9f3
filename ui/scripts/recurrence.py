"""The script of the page "Recurrence or all at once"."""

from collections.abc import Mapping

import numpy as np

from ui.control_kinds import Settings
from ui.scripts import pieces
from ui.scripts.writing import Piece, script, sequence

_CALLS = """
# %% What each costs
# Exact counts; activation functions and biases are left out.
lengths = np.arange(2, 257)  # of the curves
rnn_steps = lengths  # one after the other
rnn_path = lengths - 1  # longest path between two tokens
attention_steps = np.ones_like(lengths)  # all at once
map_entries = lengths**2
rnn_multiply_adds = 2 * lengths * D_MODEL**2  # x_t W_x and h W_h
projections = 4 * lengths * D_MODEL**2  # W_Q, W_K, W_V, W_O
mixing = 2 * lengths**2 * D_MODEL  # Q K^T and weights V
attention_multiply_adds = projections + mixing

n, d = SEQ_LEN, D_MODEL
print(f"RNN: {n} steps, {2 * n * d**2:,} multiply-adds")
print(f"self-attention: 1 step, {4 * n * d**2 + 2 * n**2 * d:,} multiply-adds, {n**2:,} map entries")

# %% What is remembered
x = @X@  # (n, d)
w_x, w_h = recurrent_weights(D_MODEL, SEED, GAIN)  # (d, d) each
states = rnn(x, w_x, w_h)  # (n, d)
reach = reach_of_tokens(states, w_x, w_h)  # (n,)

w_q, w_k, w_v, _ = attention_weights(D_MODEL, SEED, WEIGHT_SCALE)  # (d, d) each
queries, keys = x @ w_q, x @ w_k  # (n, d)
weights = softmax(queries @ keys.T / np.sqrt(D_MODEL))[-1]  # (n,): with which the last token looks at each

show(states=states)
print("token: norm of the Jacobian, attention weight")
for place in range(SEQ_LEN):
    print(f"{place + 1}: {reach[place]:.6g}, {weights[place]:.6g}")
"""


def write(settings: Settings, _: Mapping[str, np.ndarray]) -> str:
    """The script at these settings of the page."""
    constants, draw, x = sequence(settings)
    constants += f"""
D_MODEL = {settings.d_model}
GAIN = {settings.gain}  # of the recurrent weights
WEIGHT_SCALE = {settings.weight_scale}  # size of the attention weights
SEED = {settings.seed}"""
    functions: list[Piece] = [
        *draw,
        pieces.recurrent_weights,
        pieces.attention_weights,
        pieces.rnn,
        pieces.reach_of_tokens,
        pieces.softmax,
    ]
    return script("Recurrence or all at once", constants, functions, _CALLS.replace("@X@", x))
