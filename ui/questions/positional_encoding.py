"""What the page Positional encoding asks: two tokens that change places, far positions, loud or quiet words."""

from collections.abc import Callable

import numpy as np

from core import draws, positional
from core.checks import Array
from core.draws import AttentionWeights
from ui.control_kinds import Settings
from ui.predict import Choice, Number, Question, Solution
from ui.words import counted, number

ADDED = ("sinusoidal", "table")
FAR, APART = 1000, 3
ROUNDING = 1e-9


def ask(settings: Settings, x: Array, encoding: Array, w: AttentionWeights, slope: float) -> list[Question]:
    """The three questions.

    Args:
        x: (n, d_model), the embeddings. encoding: (n, d_model), what the scheme adds. slope: of the chosen ALiBi head.
    """
    return [_swap(settings, x, w, slope), _far_away(settings, x, w, slope), _louder(settings, x, encoding)]


def _swap(settings: Settings, x: Array, w: AttentionWeights, slope: float) -> Question:
    n, scheme, causal = len(x), settings.scheme, settings.causal
    with_mask = "with a causal mask" if causal else "without a mask"

    def solve() -> Solution:
        order = np.arange(n)
        order[[0, -1]] = order[[-1, 0]]
        table = draws.position_table(n, settings.d_model, settings.seed)
        result = positional.shuffle(x, w.w_q, w.w_k, w.w_v, order, scheme, table, causal=causal, slope=slope)
        count = int(np.count_nonzero(result.differences > ROUNDING * max(1.0, np.abs(result.before).max())))
        by = f", by up to {number(float(result.differences.max()))}" if count else ""
        said = f"{count} of {n} tokens get{'s' * (n == 1)} another output{by}."
        return Solution((count,), f"{said} {_why(scheme, causal, n, count, positional.changes_nothing(x, order))}")

    return Number(
        name="swap",
        asks=f"The first and the last of {counted(n, 'token')} change places. Each token is followed to its new place, "
        f"with the scheme “{scheme}” and {with_mask}. How many tokens get another output than before? "
        "(A whole number; a change in rounding does not count)",
        solve=solve,
    )


def _why(scheme: str, causal: bool, n: int, count: int, nothing: bool) -> str:
    if n == 1:
        return "There is one token, which has nobody to change places with."
    if nothing:
        return "The two are the same word, so the text reads as before: each now gets what the other one got there."
    if scheme == "none" and not causal:
        return "Nothing tells attention where a token stands: the outputs move along with their tokens."
    if not count and scheme == "alibi" and not causal and n <= 3:
        return "Each token has the others just as far away as before, and the distance is all that ALiBi looks at."
    if not count:
        return "The weights are so sharp here that nothing is seen of the change."
    if causal:
        return "Under the mask a token sees those before it, and for some these are others now."
    if scheme == "alibi":
        return "The bias goes by the distance: a token whose distances to the two have changed weighs them anew."
    return "The scheme ties every token to its place, and two of them have other places now."


def _far_away(settings: Settings, x: Array, w: AttentionWeights, slope: float) -> Question:
    scheme = "sinusoidal" if settings.scheme == "none" else settings.scheme
    d, seed, near, far = settings.d_model, settings.seed, np.array([0, APART]), np.array([FAR, FAR + APART])
    read: Callable[[Array], float]
    match scheme:
        case "rope":
            what = "the score of the first token's query, placed at the one, with the last token's key at the other"

            def read(places: Array) -> float:
                pair = np.stack([x[0] @ w.w_q, x[-1] @ w.w_k])
                query, key = positional.rotate(pair, places)
                return float(query @ key)
        case "alibi":
            what = f"the bias of head {settings.alibi_head} for a query at the one position and a key at the other"

            def read(places: Array) -> float:
                return float(positional.alibi_bias(int(places[1]) + 1, slope)[tuple(places)])
        case "table":
            what = "the dot product of their encodings"

            def read(places: Array) -> float:
                first, second = draws.position_table(int(places[1]) + 1, d, seed)[places]
                return float(first @ second)
        case _:
            what = "the dot product of their encodings"

            def read(places: Array) -> float:
                first, second = positional.waves(places, d)
                return float(first @ second)

    now = read(near)

    def solve() -> Solution:
        if scheme == "table":
            return Solution(
                (3,),
                f"The table has a row for each of the {len(x)} positions, 0 to {len(x) - 1}, and none for {FAR}. "
                "It would have to be made longer, and the new rows learned. Sines go on for any length.",
            )
        then = read(far)
        change = then - now
        same = abs(change) <= 1e-6 * max(1.0, abs(now))
        why = {
            "sinusoidal": "Each pair of a sine and a cosine gives the cosine of the angle between the two positions, "
            "which depends on their distance alone."
            + f" With d_model {d} the last sine has no cosine beside it, and its part depends on the place."
            * (d % 2),
            "rope": "Query and key are turned by angles that grow with their positions: what counts is the difference "
            f"of the angles, and so the distance, {APART}.",
            "alibi": f"The bias is minus the slope, {slope:g}, times the distance, {APART}. Nothing else enters.",
        }[scheme]
        return Solution(
            (0 if same else 1 if change < 0 else 2,),
            f"It is {_four(now)} for 0 and {APART}, and {_four(then)} for {FAR} and {FAR + APART}. {why}",
        )

    is_now = f"For positions 0 and {APART} it is {_four(now)}. " if scheme != "table" or len(x) > APART else ""
    return Choice(
        name="far",
        asks=f"Take two positions and, with the scheme “{scheme}”, {what}. {is_now}What is it for positions {FAR} and "
        f"{FAR + APART}?",
        solve=solve,
        options=("The same, but for rounding", "Less", "More", "There is none: the encoding ends before"),
    )


def _four(value: float) -> str:
    return f"{value:.4f}".replace("-", "−")


def _louder(settings: Settings, x: Array, encoding: Array) -> Question:
    kind, now = settings.scheme if settings.scheme in ADDED else "sinusoidal", settings.embedding_scale
    then = 5.0 if now <= 1 else 0.1
    n = len(x)

    def solve() -> Solution:
        added = encoding if settings.scheme in ADDED else positional.sinusoidal(n, settings.d_model)
        found = [positional.recover_positions(x * (scale / now), added) for scale in (now, then)]
        hits = [round(each.share_right * n) for each in found]
        word = float(positional.norms(x).mean()) * then / now
        place = float(positional.norms(added).mean())
        return Solution(
            (2 if hits[1] > hits[0] else 0 if hits[1] < hits[0] else 1,),
            f"{hits[0]} of {n} find their position now, and {hits[1]} then. An embedding has a length of "
            f"{number(word)} then, on average, an encoding {number(place)}: the longer the words beside it, the harder "
            "it is to read.",
        )

    return Choice(
        name="louder",
        asks=f"The size of the embeddings is changed from {now:g} to {then:g}; what the scheme “{kind}” adds to "
        f"them stays as it is. Of {counted(n, 'token')}, how many find their position again, by the nearest encoding?",
        solve=solve,
        options=("Fewer than now", "As many as now", "More than now"),
        shows={"embedding_scale": then} if settings.scheme in ADDED else {"embedding_scale": then, "scheme": kind},
    )
