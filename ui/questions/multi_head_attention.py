"""What the page Multi-head attention asks: one head more, the mean of two heads, a head that is switched off."""

from collections.abc import Sequence

import numpy as np

from core import draws, multi_head
from core.checks import Array
from core.multi_head import Layer, MultiHead
from ui import figures
from ui.control_kinds import MAX_SEED, Settings
from ui.predict import Cell, Choice, Number, Question, Solution, largest_cells, small_map
from ui.words import number, token

SMALL = 4  # rows and columns of the maps that belong to a question
ROUNDING = 1e-9
TRIES = 20  # seeds


def ask(settings: Settings, layer: Layer, result: MultiHead, tokens: Sequence[str]) -> list[Question]:
    """The three questions. Args: the page's layer and its attention; the tokens' names."""
    return [_one_more(layer, result), _mean(settings, layer, tokens), _off(layer, result, tokens)]


def _one_more(layer: Layer, result: MultiHead) -> Question:
    heads, _, d_k = result.heads.queries.shape
    d_model = layer.x.shape[1]

    def solve() -> Solution:
        parts = [w[:, :d_k].size for w in (layer.w_q, layer.w_k, layer.w_v)]
        total = sum(parts) + layer.w_o[:d_k].size
        return Solution(
            (total,),
            f"It needs {d_k} columns of {d_model} numbers each in W_Q, W_K and W_V, 3 · {parts[0]:,}, and {d_k} rows "
            f"of {d_model} numbers in W_O, {layer.w_o[:d_k].size:,}: together {total:,}. Usually heads "
            "are cut thinner when there are more of them, and their number of parameters stays the same.",
        )

    return Number(
        name="one_more",
        asks=f"One more head is added to {'the one' if heads == 1 else f'these {heads}'}, as wide as "
        f"{'it' if heads == 1 else 'each of them'} (d_k = {d_k}), while d_model stays {d_model}. How many parameters "
        "does that cost in W_Q, W_K, W_V and W_O together? (A whole number; biases are not counted)",
        solve=solve,
    )


def _two_heads(settings: Settings, x: Array) -> tuple[int, Array]:
    """The next seed with which the mean of two heads is not largest where a head is, and the heads' maps (2, n, n)."""
    for step in range(1, TRIES + 1):
        seed = (settings.seed + step) % (MAX_SEED + 1)
        weights = draws.attention_weights(x.shape[1], seed, settings.weight_scale)
        two = multi_head.attend(multi_head.random_heads(x, weights, 2)).heads.weights
        largest = largest_cells(two.mean(axis=0))
        if not any(cell in largest for head in two for cell in largest_cells(head)):
            break
    return seed, two


def _mean(settings: Settings, layer: Layer, tokens: Sequence[str]) -> Question:
    """Two random heads on the first tokens, whatever the heads of the page are."""
    n = min(SMALL, len(tokens))
    seed, two = _two_heads(settings, layer.x[:n])
    names = tokens[:n]

    def solve() -> Solution:
        mean = multi_head.mean_of_heads(two).weights
        right = largest_cells(mean)
        row, column = right[0]
        first, second = two[:, row, column]
        found = (
            f"Query token {token(names[row])} on key token {token(names[column])}: {first:.2f} in head 1 and "
            f"{second:.2f} in head 2, which makes {mean[row, column]:.2f}."
        )
        alike = f" {len(right)} cells have this mean, to two decimals, and each is right." * (len(right) > 1)
        own = [divmod(int(head.argmax()), n) for head in two]
        if own == [(row, column)] * 2:
            why = "Both heads have their largest weight there."
        else:
            largest = " and ".join(f"{head.max():.2f}" for head in two)
            neither = (row, column) not in own
            why = f"The heads' own largest weights are {largest}" + (
                ", elsewhere: the mean is largest where neither head is." if neither else "."
            )
        picture = small_map(mean, x=names, y=names, unit="mean weight", kind=figures.SHARE)
        return Solution(tuple(right), f"{found}{alike} {why}", picture, f"The mean of the two maps. {found}")

    cut = f", among the first {n} tokens alone" if n < len(tokens) else ""
    maps = {f"head {place}": head for place, head in enumerate(two, start=1)}
    return Cell(
        name="mean",
        asks=f"These are two heads with the random weights of seed {seed}{cut}, without a mask. Where is the largest "
        "weight of their mean?",
        solve=solve,
        rows=names,
        columns=names,
        row_title="query token",
        column_title="key token",
        given=figures.heatmap_grid(
            maps,
            x=names,
            y=names,
            x_title="key token",
            y_title="query token",
            unit="weight",
            text_up_to=SMALL,
            height=300 + 70 * n,  # room between the maps for labels and heading
        ),
        given_alt="Weights of two heads, row by row. "
        + " ".join(
            f"{name}: {'; '.join(', '.join(f'{weight:.2f}' for weight in row) for row in head)}."
            for name, head in maps.items()
        ),
    )


def _off(layer: Layer, result: MultiHead, tokens: Sequence[str]) -> Question:
    heads, _, d_k = result.heads.queries.shape
    d_model = layer.x.shape[1]

    def solve() -> Solution:
        change = multi_head.switch_off(result, layer.w_o, [head > 0 for head in range(heads)]).change[0]
        count = int(np.count_nonzero(np.abs(change) > ROUNDING * max(1.0, np.abs(result.output).max())))
        return Solution(
            (2 if count == d_model else 1 if count else 0,),
            f"Before W_O, head 1 fills the dimensions 1 to {d_k} of {heads * d_k}. But each dimension of "
            f"the output is a sum over all of these, with a column of W_O: {count} of {d_model} change, by up to "
            f"{number(float(np.abs(change).max()))}.",
        )

    return Choice(
        name="off",
        asks=f"Head 1 of {heads} is switched off: its slice, {d_k} of {heads * d_k} dimensions, becomes zeros "
        f"before W_O. In how many of its {d_model} dimensions does the output of token {token(tokens[0])} change?",
        solve=solve,
        options=("In none", "In some of them, but not in all", "In all of them"),
        shows={"off": (1,)},
    )
