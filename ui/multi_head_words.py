"""Sentences of the page on multi-head attention, computed from its numbers. Plain text, as in `ui.words`."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from core.multi_head import Ablation, HeadStatistics, MeanMap

Array = np.ndarray

_CLEAR = 0.9  # a built head with less of its weight where it belongs needs a word of explanation
_NOTHING = 1e-6


def head_labels(names: Sequence[str]) -> list[str]:
    """ "head 1", "head 2", … with what the head does in brackets, where it was made for something."""
    return [f"head {place} ({name})" if name else f"head {place}" for place, name in enumerate(names, start=1)]


def largest_weight(weights: Array, labels: Sequence[str], tokens: Sequence[str]) -> str:
    """The largest weight of all maps (heads, n, n)."""
    head, query, key = np.unravel_index(weights.argmax(), weights.shape)
    return (
        f"The largest weight of {'all maps' if len(weights) > 1 else 'the map'} is in {labels[head]}: "
        f"token {tokens[query]} looks at token {tokens[key]} with {weights[head, query, key]:.2f}."
    )


def built_findings(
    weights: Array, found: HeadStatistics, same_word: Array, sentence: Sequence[str], tokens: Sequence[str], d_k: int
) -> list[str]:
    """What the three heads built by hand do with this sentence: previous token, first token, same word."""
    if len(tokens) == 1:
        return ["With one token there is nothing else to look at: every head looks at the token itself."]
    previous, first, same = float(found.on_previous[0]), float(found.on_first[1]), float(same_word[2])
    lines = [
        f"Head 1 puts {previous:.2f} of its weight on the previous token. "
        f"Token {tokens[0]} has none and looks most at token {tokens[int(weights[0, 0].argmax())]}.",
        f"Head 2 puts {first:.2f} of its weight on the first token, {tokens[0]}.",
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
            f"Only by coincidence does a head have this map: {labels[nearest]}. In {labels[furthest]}, "
            f"{mean.distances[furthest]:.2g} of an average row's weight lies on other tokens."
        )
    return (
        f"This map is no head's. Even in {labels[nearest]}, the nearest to it, "
        f"{mean.distances[nearest]:.2g} of an average row's weight lies on other tokens than here."
    )


def off_finding(off: Sequence[int], labels: Sequence[str], ablation: Ablation, tokens: Sequence[str]) -> str:
    """How much the output changes without the heads in `off` (places from 0)."""
    if not off:
        return "All heads are on, so nothing changes. Switch one off above."
    if len(off) == len(labels):
        return "All heads are off: nothing is left to project, and the output is 0 at every token."
    most = int(ablation.sizes.argmax())
    before, after = ablation.full_sizes[most], float(np.linalg.norm(ablation.output[most]))
    return (
        f"Without {_listed([labels[head] for head in off], len(labels))} the output changes most at token "
        f"{tokens[most]}: the change is {ablation.sizes[most]:.2f} long. "
        f"Its output was {before:.2f} long with all heads and is {after:.2f} long now."
    )


def distance_finding(found: HeadStatistics, labels: Sequence[str]) -> str:
    """Which head looks nearest and which furthest."""
    near, far = int(found.distance.argmin()), int(found.distance.argmax())
    if found.distance[far] < _NOTHING:
        return "Every head looks only at the token itself: the mean distance is 0."
    if len(labels) == 1:
        return f"The head looks {found.distance[0]:.2f} tokens away on average."
    return (
        f"{labels[near].capitalize()} looks nearest, {found.distance[near]:.2f} tokens away on average, "
        f"and {labels[far]} furthest, {found.distance[far]:.2f} tokens."
    )


def _listed(names: Sequence[str], total: int) -> str:
    if len(names) > 4:
        return f"{len(names)} of the {total} heads"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
