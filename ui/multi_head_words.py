"""Sentences and tables of the page on multi-head attention, computed from its numbers. Plain text, as in `ui.words`.

Tables of a few rows are Arrow's, which is what Streamlit sends: by way of pandas they take five times as long.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import pandas as pd
import pyarrow as pa

from core.multi_head import Ablation, HeadSplit, HeadStatistics, Layer, MeanMap, MultiHead
from ui.multi_head_figures import UNIFORM
from ui.words import largest_at, rounded_alike, ties, token

Array = np.ndarray

_CLEAR = 0.9  # a built head with less of its weight where it belongs needs a word of explanation
_NOTHING = 1e-6
_COLUMNS = ("entropy (bits)", "distance (tokens)", "on itself", "on previous", "on first")


def head_labels(names: Sequence[str]) -> list[str]:
    """ "head 1", "head 2", … with what the head does in brackets, where it was made for something."""
    return [f"head {place} ({name})" if name else f"head {place}" for place, name in enumerate(names, start=1)]


def grid_titles(names: Sequence[str], off: Sequence[int]) -> list[str]:
    """What stands above each map: short, because a phone is narrow. Args: as in `head_labels`; places from 0."""
    titles = [str(place) if len(names) > 8 and place > 1 else f"head {place}" for place in range(1, len(names) + 1)]
    comma = " off" if len(names) > 8 else ", off"
    marked = [title + (comma if place in off else "") for place, title in enumerate(titles)]
    return [f"{title}<br>{name}" if name else title for title, name in zip(marked, names, strict=True)]


def largest_weight(weights: Array, labels: Sequence[str], tokens: Sequence[str]) -> str:
    """The largest weight of all maps (heads, n, n)."""
    head, query, key = (int(place) for place in np.unravel_index(weights.argmax(), weights.shape))
    largest = weights[head, query, key]
    where = f"the largest weight of {'all maps' if len(weights) > 1 else 'the map'}"
    found = f"{labels[head]}: token {token(tokens[query])} looks at token {token(tokens[key])}"
    alike = len(ties(weights))
    if alike > 1:
        return (
            f"{where.capitalize()}, {largest:.2f}, stands in {alike} cells{rounded_alike(weights)}. One is in {found}."
        )
    return f"{where.capitalize()} is in {found} with {largest:.2f}."


def built_findings(
    weights: Array, found: HeadStatistics, same_word: Array, sentence: Sequence[str], tokens: Sequence[str], d_k: int
) -> list[str]:
    """What the three heads built by hand do with this sentence: previous token, first token, same word."""
    if len(tokens) == 1:
        return ["With one token there is nothing else to look at: every head looks at the token itself."]
    previous, first, same = float(found.on_previous[0]), float(found.on_first[1]), float(same_word[2])
    at_first = "itself" if ties(weights[0, 0]).tolist() == [0] else largest_at(weights[0, 0], tokens)
    lines = [
        f"Head 1 puts {previous:.2f} of its weight on the previous token. "
        f"Token {token(tokens[0])} has none and looks most at {at_first}.",
        f"Head 2 puts {first:.2f} of its weight on the first token, {token(tokens[0])}.",
    ]
    word, times = Counter(sentence).most_common(1)[0]
    if times > 1:
        lines.append(
            f"Head 3 puts {same:.2f} of its weight on places with the token's own word; “{word}” stands {times} times."
        )
    else:
        lines.append(
            "No word comes twice here, so all that head 3 can find is the token itself: "
            f"{same:.2f} of its weight is there."
        )
    if min(previous, first) < _CLEAR:
        pairs = d_k // 2
        lines.append(
            f"At this width the position has only {pairs} sine-cosine pair{'s' * (pairs > 1)}, "
            "so some distant places look alike to heads 1 and 2."
        )
    if same < _CLEAR:
        lines.append(f"At this width a word has only {d_k} numbers, so some different words look alike to head 3.")
    return lines


def mean_finding(mean: MeanMap, labels: Sequence[str]) -> str:
    """Whether the mean of the heads is the map of any of them."""
    if len(labels) == 1:
        return "There is one head, so the mean is that head's own map."
    nearest, furthest = int(mean.distances.argmin()), int(mean.distances.argmax())
    if mean.distances[furthest] < _NOTHING:
        return "All heads have the same map here, so the mean is that map too."
    if mean.distances[nearest] < _NOTHING:
        return (
            f"Only by coincidence does a head have this map: {labels[nearest]}. "
            f"In {labels[furthest]}, {_to_be_moved(mean.distances[furthest])}."
        )
    whose = f"The nearest is {labels[nearest]}, and even there"
    if len(labels) == 2:
        whose = "It lies halfway between the two: in each"
    elif mean.distances[furthest] - mean.distances[nearest] < _NOTHING:
        whose = "All heads are equally far from it: in each"
    return f"No head has this map. {whose}, {_to_be_moved(mean.distances[nearest])}."


def _to_be_moved(share: float) -> str:
    """How far a head's map is from the mean of all. Args: one of `MeanMap.distances`."""
    moved = f"{share:.0%}" if share >= 0.01 else "less than 1%"
    return f"{moved} of a row's weight, on average, would have to move to other tokens to make it the mean"


def heads_in_a_row(heads: int) -> str:
    """LaTeX: head_1, …, head_h."""
    names = [rf"\text{{head}}_{{{place}}}" for place in range(1, heads + 1)]
    return ", ".join(names if heads <= 3 else [names[0], r"\dots", names[-1]])


def off_finding(off: Sequence[int], labels: Sequence[str], ablation: Ablation, tokens: Sequence[str]) -> str:
    """How much the output changes without the heads in `off` (places from 0), at least one."""
    if len(off) == len(labels):
        return "All heads are off: nothing is left to project, and the output is 0 at every token."
    without = f"Without {_listed([labels[head] for head in off], len(labels))} the output changes"
    most = int(ablation.sizes.argmax())
    if len(tokens) > 1 and np.ptp(ablation.sizes) < _NOTHING * ablation.sizes[most]:
        return f"{without} at every token alike: the change has length {ablation.sizes[most]:.2f}."
    before, after = ablation.full_sizes[most], float(np.linalg.norm(ablation.output[most]))
    most_of_all = " most" if len(tokens) > 1 else ""
    return (
        f"{without}{most_of_all} at {largest_at(ablation.sizes, tokens)}: the change has length "
        f"{ablation.sizes[most]:.2f}. "
        f"The output of token {token(tokens[most])} had length {before:.2f} with all heads and has {after:.2f} now."
    )


def distance_finding(found: HeadStatistics, labels: Sequence[str]) -> str:
    """Which head looks nearest and which furthest."""
    near, far = int(found.distance.argmin()), int(found.distance.argmax())
    if found.distance[far] < _NOTHING:
        return "Every head looks only at the token itself: the mean distance is 0."
    if len(labels) == 1:
        return f"The head looks {found.distance[0]:.2f} tokens away on average."
    if round(found.distance[far], 2) == round(found.distance[near], 2):
        return f"All heads look as far, to two digits: {found.distance[0]:.2f} tokens away on average."
    how_near, how_far = ("nearer", "further") if len(labels) == 2 else ("nearest", "furthest")
    return (
        f"{labels[near].capitalize()} looks {how_near}, {found.distance[near]:.2f} tokens away on average, "
        f"and {labels[far]} {how_far}, {found.distance[far]:.2f} tokens."
    )


def statistics_table(found: HeadStatistics, uniform: HeadStatistics, labels: Sequence[str]) -> pd.DataFrame:
    """One row per head, and a last one for a uniform head."""
    columns = [
        np.append(getattr(found, field.name), getattr(uniform, field.name)[0]) for field in fields(HeadStatistics)
    ]
    return pd.DataFrame(dict(zip(_COLUMNS, columns, strict=True)), index=[*labels, UNIFORM])


def shape_table(layer: Layer, result: MultiHead) -> pa.Table:
    """Split, attend, concatenate, project: the shape of every array on the way."""
    d_model, width = layer.w_q.shape
    n, maps = len(layer.x), result.heads
    rows = [
        ("Input", "X", layer.x.shape, "tokens × d_model"),
        ("Project", f"Q, K, V: X times W_Q, W_K, W_V of {d_model} × {width}", (n, width), "tokens × width"),
        ("Split", "queries, keys, values of each head", maps.queries.shape, "heads × tokens × d_k"),
        ("Attend", "weights of each head", maps.weights.shape, "heads × queries × keys"),
        ("Attend", "output of each head", maps.output.shape, "heads × tokens × d_k"),
        ("Concatenate", "heads side by side", result.concatenated.shape, "tokens × width"),
        ("Project back", f"output: times W_O of {width} × {d_model}", result.output.shape, "tokens × d_model"),
    ]
    steps, what, shapes, axes = zip(*rows, strict=True)
    sizes = [" × ".join(map(str, shape)) for shape in shapes]
    return pa.table({"Step": steps, "What": what, "Shape": sizes, "Axes": axes})


def parameters_table(splits: Sequence[HeadSplit]) -> pa.Table:
    """One row per number of heads."""
    columns = {
        "heads": [split.heads for split in splits],
        "d_k, width of a head": [split.d_k for split in splits],
        "parameters of one head": [split.one_head for split in splits],
        "parameters of all heads": [split.total for split in splits],
    }
    return pa.table(columns)


def built_parameters(layer: Layer) -> str:
    """How many numbers the heads built by hand have, which are wider than d_model / heads."""
    matrices = (layer.w_q, layer.w_k, layer.w_v, layer.w_o)
    total = sum(matrix.size for matrix in matrices)
    return (
        f"The three heads built by hand are each d_model / 2 wide: their matrices have {total:,} parameters, "
        f"and the bias of the queries {np.size(layer.b_q)}."
    )


def _listed(names: Sequence[str], total: int) -> str:
    if len(names) > 4:
        return f"{len(names)} of the {total} heads"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
