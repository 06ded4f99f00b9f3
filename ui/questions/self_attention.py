"""What the page Self-attention asks: no √d_k at twice the width, the largest weight, two tokens that change places."""

from collections.abc import Sequence

import numpy as np

from core import attention, draws
from core.attention import Attention
from core.checks import Array
from ui import figures
from ui.control_kinds import MAX_SEED, Settings
from ui.predict import Cell, Choice, Number, Question, Solution, largest_cells, small_map
from ui.words import counted, decimals, number, token

WIDEST = 64  # of the page's slider
SMALL = 6  # rows and columns of a map that belongs to a question
SAME_BITS = 0.01
ROUNDING = 1e-9
TRIES = 20  # seeds


def ask(
    settings: Settings, x: Array, source: Array, allowed: Array, queries: Sequence[str], keys: Sequence[str]
) -> list[Question]:
    """The three questions.

    Args:
        x: (n, d_model). source: (m, d_model), where keys and values come from. allowed: (n, m) booleans.
        queries, keys: the tokens' names.
    """
    return [
        _wider(settings, x, source, allowed),
        _largest_weight(settings, x, source, queries, keys),
        _swap(settings, x, source, allowed),
    ]


def _attend(settings: Settings, x: Array, source: Array, allowed: Array, **changed: int | bool) -> Attention:
    """The page's attention with something changed: seed (of the weights), scaling."""
    seed, scaling = changed.get("seed", settings.seed), bool(changed.get("scaling", settings.scaling))
    w = draws.attention_weights(x.shape[1], seed, settings.weight_scale)
    return attention.cross_attention(
        x, source, w.w_q, w.w_k, w.w_v, allowed, scaling=scaling, temperature=settings.temperature
    )


def _wider(settings: Settings, x: Array, source: Array, allowed: Array) -> Question:
    d, wide = settings.d_model, 2 * settings.d_model

    def draw(words: Sequence[str], count: int, second: bool) -> Array:
        if words:
            return draws.words(words, wide, settings.seed)
        return (draws.memory_tokens if second else draws.tokens)(count, wide, settings.seed)

    def solve() -> Solution:
        wide_x = draw(settings.tokens, len(x), second=False)
        words = settings.sentences["source"].tokens if settings.cross else ()
        wide_source = draw(words, len(source), second=True) if settings.cross else wide_x
        now = _attend(settings, x, source, allowed)
        then = _attend(settings, wide_x, wide_source, allowed, scaling=False)
        bits = [float(attention.entropy(each.weights).mean()) for each in (now, then)]
        spread = [float(each.scaled.std()) for each in (now, then)]
        change = bits[1] - bits[0]
        if not allowed.any():
            why = "All keys are hidden, so there is no weight to give, at any width."
        elif allowed.sum(axis=1).max() == 1:
            why = "A token that may look at one key alone gives it all its weight, at any width."
        else:
            why = (
                f"Scores then tend to be larger, for {'three' if settings.scaling else 'two'} reasons. A score adds up "
                f"d_k products, {d} now and {wide} then. Every number of a query or key is such a sum too, of d_model "
                "products, so the numbers that are multiplied are larger. "
                + f"And a score is no longer divided by √d_k, {number(np.sqrt(d))} now. "
                * settings.scaling
                + f"What goes into the softmax has a standard deviation of {number(spread[0])} now and "
                f"{number(spread[1])} then."
            )
        return Solution(
            (0 if change < -SAME_BITS else 2 if change > SAME_BITS else 1,),
            f"The rows have {bits[0]:.2f} bits of entropy now, on average, and {bits[1]:.2f} then. {why}",
        )

    return Choice(
        name="wider",
        asks=f"d_model is doubled, from {d} to {wide}, and the scores are not divided by √d_k. What are the rows of "
        "weights then, on average, compared with now?",
        solve=solve,
        options=(
            "Sharper: more weight on fewer keys",
            "The same, within 0.01 bits of entropy",
            "More even: the weight is spread over more keys",
        ),
        shows={"d_model": wide, "scaling": False} if wide <= WIDEST else None,
    )


def _with_other_weights(settings: Settings, x: Array, source: Array, may: Array) -> tuple[int, Attention]:
    """The next seed with which the largest score does not get the largest weight; the last tried where none is."""
    for step in range(1, TRIES + 1):
        seed = (settings.seed + step) % (MAX_SEED + 1)
        result = _attend(settings, x, source, may, seed=seed)
        if divmod(int(result.masked.argmax()), may.shape[1]) not in largest_cells(result.weights):
            break
    return seed, result


def _largest_weight(
    settings: Settings, x: Array, source: Array, queries: Sequence[str], keys: Sequence[str]
) -> Question:
    n, m = min(SMALL, len(x)), min(SMALL, len(source))
    rows, columns = ([name.removesuffix(" (pad)") for name in names] for names in (queries[:n], keys[:m]))
    may = attention.causal_mask(n) if settings.causal else np.ones((n, m), dtype=bool)
    seed, result = _with_other_weights(settings, x[:n], source[:m], may)
    masked = np.where(may, result.scaled, np.nan)
    cut = n < len(x) or m < len(source)
    few = f", for the first {n} query tokens and the first {m} key tokens alone" if cut else ""
    few += " and without padding" * (settings.padding > 0)

    def solve() -> Solution:
        right, shown = largest_cells(result.weights), result.weights.round(2)
        row, column = right[0]
        score_row, score_column = divmod(int(np.nanargmax(masked)), m)
        score = decimals(masked[score_row, score_column])
        asking, asked = token(rows[row]), token(columns[column])
        found = f"Query token {asking} gives key token {asked} a weight of {shown[row, column]:.2f}."
        if may[row].sum() == 1:
            why = "It may look at no other token, so that one gets all."
        elif (score_row, score_column) in right:
            why = f"Its score, {score}, is the largest of the map."
        else:
            why = (
                f"The largest score, {score}, stands elsewhere, but its weight is only "
                f"{shown[score_row, score_column]:.2f}: the softmax compares a score with those of its own row alone."
            )
        alike = f" {len(right)} cells have this weight, to two decimals, and each is right." * (len(right) > 1)
        weights = small_map(result.weights, x=columns, y=rows, unit="weight", kind=figures.SHARE)
        return Solution(tuple(right), f"{found} {why}{alike}", weights, f"The weights of the small map. {found}")

    return Cell(
        name="largest",
        asks=f"These are the scores that go into the softmax with the weights of seed {seed}{few}. Where will the "
        "largest weight stand?",
        solve=solve,
        rows=rows,
        columns=columns,
        row_title="query token",
        column_title="key token",
        given=small_map(masked, x=columns, y=rows, unit="scaled score"),
        given_alt=f"Scaled scores of {n} query tokens with {m} key tokens, row by row: {_read_out(masked)}.",
    )


def _read_out(values: Array) -> str:
    """The numbers of a small map, for the ear."""
    return "; ".join(", ".join("hidden" if np.isnan(v) else decimals(float(v)) for v in row) for row in values)


def _swap(settings: Settings, x: Array, source: Array, allowed: Array) -> Question:
    n = len(x)

    def rows_that_change() -> tuple[int, float]:
        order = np.arange(n)
        order[[0, -1]] = order[[-1, 0]]
        before = _attend(settings, x, source, allowed).output
        after = _attend(settings, x[order], source if settings.cross else x[order], allowed).output
        change = np.abs(after - before).max(axis=1)
        return int(np.count_nonzero(change > ROUNDING * max(1.0, np.abs(before).max()))), float(change.max())

    def solve() -> Solution:
        count, largest = rows_that_change()
        if n == 1:
            why = "There is one token, which has nobody to change places with."
        elif np.array_equal(x[0], x[-1]):
            why = "The first and the last token are the same word, so nothing was changed."
        elif not allowed.any():
            why = "All keys are hidden, so every row of the output is zeros before and after."
        elif settings.cross:
            why = (
                "Only queries change places, and their rows with them. Keys and values come from the second sequence, "
                "which stays as it is."
            )
        elif not allowed.all():
            why = (
                "A mask hides places, not tokens: a row that sees only one of the two places finds another token there."
            )
        elif count < 2:
            why = (
                "The two rows change places with their tokens, but here they are alike, so that nothing is seen of it."
            )
        else:
            why = (
                "The two rows change places with their tokens. Every other row mixes the same values with the same "
                "weights, only in another order: without a mask, attention does not ask where a token stands."
            )
        said = f"{count} of {n} rows change" if n > 1 else f"{count} rows change"
        by = f", by up to {number(largest)}" if count else ""
        return Solution((count,), f"{said}{by}. {why}")

    mask = " The masks stay where they are." if not allowed.all() else ""
    return Number(
        name="swap",
        asks=f"The first and the last of {counted(n, 'query token')} change places.{mask} How many rows of the output "
        "change? (A whole number; a row is a place, and a change in rounding does not count)",
        solve=solve,
    )
