"""The script of the page on the transformer block."""

from collections.abc import Mapping

import numpy as np

from core.block import Block
from core.draws import AttentionWeights, FeedForwardWeights
from ui.control_kinds import Settings
from ui.scripts import pieces
from ui.scripts.writing import Piece, script, sequence

_BLOCKS = """
# %% All blocks
kind = {
    "heads": HEADS,
    "residual": RESIDUAL,
    "norm": NORM,
    "order": ORDER,
    "activation": @ACTIVATION@,
    "slope": @ACTIVATION@_slope,
    "output_projection": OUTPUT_PROJECTION,
    "causal": CAUSAL,
}
x = @X@  # (n, d_model)
all_weights = [block_weights(D_MODEL, D_FF, SEED, WEIGHT_SCALE, block) for block in range(BLOCKS)]
blocks = run_stack(x, all_weights, kind)
states = np.stack([x, *(stages["output"] for stages in blocks)])  # (blocks + 1, n, d_model)
stack_output = final_norm(states[-1], kind)  # (n, d_model)

# %% The block shown
w_q, w_k, w_v, w_o, w_1, w_2 = all_weights[BLOCK - 1]
stages = blocks[BLOCK - 1]
block_input = stages["x"]  # (n, d_model)
entered_1, computed_1, added_1, left_1 = (stages[f"{name}_1"] for name in ("entered", "computed", "added", "left"))
entered_2, computed_2, added_2 = (stages[f"{name}_2"] for name in ("entered", "computed", "added"))
attention, hidden, output = stages["attention"], stages["hidden"], stages["output"]
show(**stages)
show(stack_output=stack_output)

# %% What the norm does
norm_in = stages["@NORM_IN@"]  # (n, d_model)
mean_in, spread_in = norm_in.mean(axis=-1), norm_in.std(axis=-1)  # (n,) each
layer_normed = layer_norm(norm_in)  # each row by itself
batch_normed = layer_norm(norm_in.T).T  # each column by itself, as BatchNorm does
mean_out, spread_out = layer_normed.mean(axis=-1), layer_normed.std(axis=-1)
show(mean_in=mean_in, spread_in=spread_in, mean_out=mean_out, spread_out=spread_out)
show(layer_normed=layer_normed, batch_normed=batch_normed)

# %% Block upon block
spread, alike = depth(x, blocks)  # (blocks + 1,) each
show(spread=spread, alike=alike)
"""
_COMPARE = """
# Post-norm, pre-norm and no norm, with the same weights
others = [{"norm": True, "order": "post-norm"}, {"norm": True, "order": "pre-norm"}, {"norm": False}]
depths = [depth(x, run_stack(x, all_weights, kind | other)) for other in others]
compared_spread, compared_alike = (np.stack(each) for each in zip(*depths, strict=True))  # (3, blocks + 1) each
show(compared_spread=compared_spread, compared_alike=compared_alike)
"""
_BACK = """
# %% How the gradient gets back
# The loss is the sum of output * direction, so that the gradient starts with length 1. Where numbers have grown very
# large or tokens very alike, rounding decides the last digits, and sometimes more of them than are printed.
direction = np.random.default_rng([200, SEED]).standard_normal((SEQ_LEN, D_MODEL))
direction = direction / np.linalg.norm(direction)
switches = [(True, True), (True, False), (False, True), (False, False)]  # residual, norm
gradient_lengths = np.zeros((4, BLOCKS))
with np.errstate(all="ignore"):  # what outgrows floating point shows in the lengths
    for row, (residual, norm) in enumerate(switches):
        other = kind | {"residual": residual, "norm": norm}
        gradient_lengths[row] = lengths_on_the_way_back(x, all_weights, other, direction)
print("length of the gradient at the input of each block; rows:")
print("residual and norm; residual only; norm only; no residual, no norm")
for row in gradient_lengths:
    print("  ".join(f"{length:.4g}" for length in row))
"""


def arrays(shown: Block, attention: AttentionWeights, feed: FeedForwardWeights) -> dict[str, np.ndarray]:
    """The stages of one block and its weights, under the names that they have in the script."""
    first, second, heads = shown.attention, shown.feed_forward, shown.multi_head.heads
    return {
        "block_input": shown.x,
        "w_q": attention.w_q,
        "w_k": attention.w_k,
        "w_v": attention.w_v,
        "w_o": attention.w_o,
        "w_1": feed.w_1,
        "w_2": feed.w_2,
        "entered_1": first.entered,
        "attention": heads.weights,
        "computed_1": first.computed,
        "added_1": first.added,
        "left_1": first.left,
        "entered_2": second.entered,
        "hidden": shown.hidden,
        "computed_2": second.computed,
        "added_2": second.added,
        "output": shown.output,
    }


def write(settings: Settings, _: Mapping[str, np.ndarray]) -> str:
    """The script at these settings of the page."""
    constants, draw, x = sequence(settings)
    constants += f"""
D_MODEL = {settings.d_model}
D_FF = {settings.d_ff}
HEADS = {settings.heads}
RESIDUAL = {settings.residual}
NORM = {settings.norm}
ORDER = "{settings.order}"
OUTPUT_PROJECTION = {settings.output_projection}
CAUSAL = {settings.causal}
BLOCKS = {settings.blocks}
BLOCK = {settings.block}  # the one that is shown, from 1
WEIGHT_SCALE = {settings.weight_scale}
SEED = {settings.seed}"""
    gelu = settings.activation == "GELU"
    functions: list[Piece] = [
        *draw,
        pieces.block_weights,
        pieces.softmax,
        pieces.split_heads,
        pieces.merge_heads,
        pieces.layer_norm,
        *((pieces.gelu, pieces.gelu_slope) if gelu else (pieces.relu, pieces.relu_slope)),
        pieces.transformer_block,
        pieces.final_norm,
        pieces.run_stack,
        pieces.alikeness,
        pieces.depth,
    ]
    calls = _BLOCKS + _COMPARE * settings.compare
    if settings.blocks > 1:
        functions += [pieces.layer_norm_backward, pieces.block_backward, pieces.lengths_on_the_way_back]
        calls += _BACK
    marks = {"@X@": x, "@ACTIVATION@": "gelu" if gelu else "relu", "@NORM_IN@": _norm_in(settings)}
    for mark, text in marks.items():
        calls = calls.replace(mark, text)
    imports = ["from math import erf, pi, sqrt" if gelu else "from math import sqrt"]
    return script("Transformer block", constants, functions, calls, imports=imports)


def _norm_in(settings: Settings) -> str:
    """The stage that goes into the norm that is shown; what leaves the attention sublayer where there is none."""
    second = settings.layer_norm == "second"
    if settings.norm and settings.order == "pre-norm":
        return "left_1" if second else "x"
    return "added_2" if second and settings.norm else "added_1"
