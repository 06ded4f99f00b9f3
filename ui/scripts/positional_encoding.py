"""The script of the page on positional encoding: what it holds depends on the scheme."""

from collections.abc import Mapping

import numpy as np

from core.positional import changes_nothing, permutation
from ui.control_kinds import Settings
from ui.scripts import pieces
from ui.scripts.writing import Piece, script, sequence, words

LESSON_WORDS = ("dog", "bites", "man")
_ADDED = ("sinusoidal", "table")

_DRAWN = """
# %% The embeddings
x = EMBEDDING_SCALE * @X@  # (n, d_model)
w_q, w_k, w_v, _ = attention_weights(D_MODEL, SEED, 0.3)  # (d_model, d_model) each
show(x=x)
"""
_PATTERN = {
    "none": """
# %% No encoding
encoding = np.zeros((SEQ_LEN, D_MODEL))  # nothing is added
""",
    "sinusoidal": """
# %% The encoding
encoding = waves(np.arange(SEQ_LEN), D_MODEL)  # (n, d_model), added to the embeddings
show(encoding=encoding)
""",
    "table": """
# %% The encoding
encoding = position_table(SEQ_LEN, D_MODEL, SEED)  # (n, d_model), added to the embeddings
show(encoding=encoding)
""",
    "rope": """
# %% The angles
paired = D_MODEL - D_MODEL % 2  # dimensions that are turned
rotary_waves = waves(np.arange(SEQ_LEN), D_MODEL)[:, :paired]  # (n, paired): sine and cosine of each angle
show(rotary_waves=rotary_waves)
""",
    "alibi": """
# %% The bias
slopes = 2.0 ** -np.arange(1, 9)  # of 8 heads: 1/2, 1/4, ..., 1/256
SLOPE = slopes[ALIBI_HEAD - 1]
bias = alibi_bias(SEQ_LEN, SLOPE)  # (n, n), added to the scaled scores
show(slopes=slopes)
show(bias=bias)
""",
}
_WAVES = """
# %% The waves
wavelengths = np.repeat(2 * np.pi / frequencies(D_MODEL), 2)[:@WIDTH@]  # positions until a dimension repeats
between = np.linspace(0, SEQ_LEN - 1, 4 * (SEQ_LEN - 1) + 1)  # four steps from one position to the next
curves = waves(between, D_MODEL)  # (len(between), d_model): what the page draws as lines
show(wavelengths=wavelengths)
"""
_ALIKE = """
# %% Near and far
similarity = encoding @ encoding.T  # (n, n) dot products
offset_mean, offset_low, offset_high = by_offset(similarity)  # (2n - 1,) each
encoding_lengths = np.linalg.norm(encoding, axis=-1)  # (n,)
embedding_lengths = np.linalg.norm(x, axis=-1)  # (n,)
show(similarity=similarity, offset_mean=offset_mean)
show(encoding_lengths=encoding_lengths, embedding_lengths=embedding_lengths)
"""
_TURNED = """
# %% Near and far
queries, keys = x @ w_q, x @ w_k  # (n, d_model) each
placed_queries = rotate(np.repeat(queries[:1], SEQ_LEN, axis=0))  # the first token's query at every position
placed_keys = rotate(np.repeat(keys[-1:], SEQ_LEN, axis=0))  # the last token's key at every position
placed_scores = placed_queries @ placed_keys.T  # (n, n): equal along each diagonal
offset_mean, offset_low, offset_high = by_offset(placed_scores)  # (2n - 1,) each
query_lengths = np.linalg.norm(queries, axis=-1)  # (n,)
turned_lengths = np.linalg.norm(rotate(queries), axis=-1)  # (n,): the same, for turning keeps lengths
show(placed_scores=placed_scores, offset_mean=offset_mean)
show(query_lengths=query_lengths, turned_lengths=turned_lengths)
"""
_ATTEND = '''
# %% Shuffle the words
def attend(x, told, causal):
    """Self-attention of x, (n, d_model); told: whether the scheme tells the positions."""
@ADD@    queries, keys, values = x @ w_q, x @ w_k, x @ w_v  # (n, d_model) each
@TURN@    scores = queries @ keys.T / np.sqrt(D_MODEL)  # (n, n)
@BIAS@    if causal:
        scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
    return softmax(scores) @ values


def shuffled(told, causal):
    """The outputs before, the outputs after, and what the new order changed in each token's output."""
    before, after = attend(rows, told, causal), attend(rows[order], told, causal)
    return before, after, after - before[order]


rows = EMBEDDING_SCALE * word_vectors(WORDS, D_MODEL, SEED)  # (words, d_model)
# the old place of the word at each new place
order = @ORDER@
before_plain, after_plain, change_plain = shuffled(told=False, causal=False)
@CHOSEN@before_causal, after_causal, change_causal = shuffled(told=False, causal=True)
print("the words in their new order:", order + 1)
print("the largest change of each word's output, by its new place")
@CHANGES@
'''
_RULES = {
    "sinusoidal": ("@ADD@", "x = x + waves(np.arange(len(x)), D_MODEL)"),
    "table": ("@ADD@", "x = x + position_table(len(x), D_MODEL, SEED)"),
    "rope": ("@TURN@", "queries, keys = rotate(queries), rotate(keys)"),
    "alibi": ("@BIAS@", "scores = scores + alibi_bias(len(x), SLOPE)"),
}
_ORDERS = {
    "reversed": "np.arange(len(WORDS))[::-1]",
    "first two swapped": "np.array([1, 0, *range(2, len(WORDS))])",
    "rotated": "np.roll(np.arange(len(WORDS)), 1)",
    "shuffled": """np.random.default_rng(SEED).permutation(len(WORDS))
if np.array_equal(order, np.arange(len(WORDS))):  # a draw that leaves everything in place
    order = np.roll(order, 1)""",
}
_WHERE = """
# %% Where am I?
guessed = nearest_encoding(x, encoding)  # (n,)
widths = np.array(sorted({2, 4, 8, 16, 32, 64, 128, D_MODEL}))
shares_sinusoidal, shares_table = np.zeros(len(widths)), np.zeros(len(widths))  # of tokens that are found
for place, d_model in enumerate(widths.tolist()):
    embedded = EMBEDDING_SCALE * @EMBEDDED@
    right = np.arange(SEQ_LEN)
    shares_sinusoidal[place] = np.mean(nearest_encoding(embedded, waves(right, d_model)) == right)
    shares_table[place] = np.mean(nearest_encoding(embedded, position_table(SEQ_LEN, d_model, SEED)) == right)
show(guessed=guessed, widths=widths, shares_sinusoidal=shares_sinusoidal, shares_table=shares_table)
"""


def write(settings: Settings, _: Mapping[str, np.ndarray]) -> str:
    """The script at these settings of the page."""
    scheme = settings.scheme
    constants, draw, x = sequence(settings)
    constants += f"""
D_MODEL = {settings.d_model}
EMBEDDING_SCALE = {settings.embedding_scale}
SEED = {settings.seed}
WORDS = {words(settings.tokens or LESSON_WORDS)}  # those that change places"""
    if scheme == "alibi":
        constants += f"\nALIBI_HEAD = {settings.alibi_head}  # of 8"
    calls = _DRAWN.replace("@X@", x) + _PATTERN[scheme]
    if scheme in ("sinusoidal", "rope"):
        calls += _WAVES.replace("@WIDTH@", "paired" if scheme == "rope" else "D_MODEL")
    calls += _ALIKE if scheme in _ADDED else _TURNED if scheme == "rope" else ""
    calls += _shuffle(settings)
    calls += _WHERE.replace("@EMBEDDED@", x.replace("D_MODEL", "d_model")) if scheme in _ADDED else ""
    return script("Positional encoding", constants, _functions(scheme, draw), calls)


def _functions(scheme: str, draw: list[Piece]) -> list[Piece]:
    drawn = [*dict.fromkeys([*draw, pieces.word_vectors]), pieces.attention_weights]
    told: dict[str, list[Piece]] = {
        "none": [],
        "sinusoidal": [pieces.position_table, pieces.frequencies, pieces.waves],
        "table": [pieces.position_table, pieces.frequencies, pieces.waves],
        "rope": [pieces.frequencies, pieces.waves, pieces.rotate],
        "alibi": [pieces.alibi_bias],
    }
    read: list[Piece] = [pieces.by_offset] if scheme in (*_ADDED, "rope") else []
    return [*drawn, *told[scheme], *read, *([pieces.nearest_encoding] if scheme in _ADDED else []), pieces.softmax]


def _shuffle(settings: Settings) -> str:
    """The experiment with the words in two orders; a remark where the order changes nothing."""
    typed = settings.tokens or LESSON_WORDS
    order = permutation(settings.permutation, len(typed), settings.seed)
    words_as_rows = np.array([[word == other for other in typed] for word in typed])
    if changes_nothing(words_as_rows, order):
        return "\n# %% Shuffle the words\nprint('Equal words stand at every place: the new order changes nothing.')\n"
    text = _ATTEND
    if settings.scheme in _RULES:
        mark, rule = _RULES[settings.scheme]
        text = text.replace(mark, f"    if told:\n        {rule}\n")
    for mark in ("@ADD@", "@TURN@", "@BIAS@"):
        text = text.replace(mark, "")
    chosen, changes = "", ["plain", "causal"]
    if settings.scheme != "none":
        chosen = f"before_chosen, after_chosen, change_chosen = shuffled(told=True, causal={settings.causal})\n"
        changes.insert(1, "chosen")
    listed = "\n".join(f"show({name}=np.abs(change_{name}).max(axis=-1))" for name in changes)
    return (
        text.replace("@ORDER@", _ORDERS[settings.permutation]).replace("@CHOSEN@", chosen).replace("@CHANGES@", listed)
    )
