"""The script of the page on self-attention."""

from collections.abc import Mapping

import numpy as np

from ui.control_kinds import Settings
from ui.scripts import pieces
from ui.scripts.writing import Piece, script, sequence, words

_CALLS = """
# %% From X to queries, keys and values
x = @X@  # (n, d_model)
@SOURCE@w_q, w_k, w_v, _ = attention_weights(D_MODEL, SEED, WEIGHT_SCALE)  # (d_model, d_model) each

queries = x @ w_q  # (n, d_model) @ (d_model, d_model) -> (n, d_model)
keys = @FROM@ @ w_k  # (m, d_model): m tokens can be looked at
values = @FROM@ @ w_v  # (m, d_model)

# %% Who may look at whom
n, m = len(queries), len(keys)
allowed = np.tile(np.arange(m) < m - PADDING, (n, 1))  # (n, m): nobody looks at the last PADDING tokens
@CAUSAL@
# %% From scores to weights to the output
scores = queries @ keys.T  # (n, d_model) @ (d_model, m) -> (n, m)
scaled = scores / (@DIVISOR@)
masked = np.where(allowed, scaled, -np.inf)
weights = softmax(masked)  # each row sums to 1, or to 0 where nothing may be looked at
output = weights @ values  # (n, m) @ (m, d_model) -> (n, d_model)
row_sums, row_entropy = weights.sum(axis=-1), entropy(weights)  # (n,) each

show(x=x, queries=queries, keys=keys, values=values)
show(scores=scores, scaled=scaled, masked=masked, weights=weights, output=output)
show(row_sums=row_sums, row_entropy=row_entropy)  # entropy in bits

# %% One row by hand
row = QUERY - 1
shares_of_values = weights[row][:, np.newaxis] * values  # (m, d_model): each weight times its row of values
print(f"query token {QUERY}: the sum of these rows is its output")
show(shares_of_values=shares_of_values, their_sum=shares_of_values.sum(axis=0))
"""


def write(settings: Settings, _: Mapping[str, np.ndarray]) -> str:
    """The script at these settings of the page."""
    constants, draw, x = sequence(settings)
    source = ""
    if settings.cross:
        typed = settings.sentences["source"].tokens
        if typed:
            constants += f"\nSECOND_SENTENCE = {words(typed)}"
            draw, drawn = [*draw, pieces.word_vectors], "word_vectors(SECOND_SENTENCE, D_MODEL, SEED)"
        else:
            constants += f"\nSOURCE_LEN = {settings.source_len}"
            draw, drawn = [*draw, pieces.second_tokens], "second_tokens(SOURCE_LEN, D_MODEL, SEED)"
        source = f"source = {drawn}  # (m, d_model): the second sequence\n"
    constants += f"""
D_MODEL = {settings.d_model}
PADDING = {settings.padding}  # the last tokens only fill up the length
TEMPERATURE = {settings.temperature}  # scores are divided by it
WEIGHT_SCALE = {settings.weight_scale}  # size of the random weights
SEED = {settings.seed}
QUERY = {settings.query}  # the token whose row is worked out at the end, from 1"""
    functions: list[Piece] = [*dict.fromkeys(draw), pieces.attention_weights, pieces.softmax, pieces.entropy]
    parts = {
        "@X@": x,
        "@SOURCE@": source,
        "@FROM@": "source" if source else "x",
        "@CAUSAL@": "allowed &= np.tri(n, dtype=bool)  # causal: no token looks at a later one\n"
        if settings.causal
        else "",
        "@DIVISOR@": "np.sqrt(D_MODEL) * TEMPERATURE" if settings.scaling else "TEMPERATURE",
    }
    calls = _CALLS
    for mark, text in parts.items():
        calls = calls.replace(mark, text)
    return script("Self-attention", constants, functions, calls)
