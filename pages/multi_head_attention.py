"""Multi-head attention: several attentions side by side, random, built by hand or trained, and what each head does."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import streamlit as st

from core import attention, draws, multi_head, trained, training
from core.tasks import TASKS
from ui import (
    controls,
    figures,
    multi_head_figures,
    multi_head_words,
    page,
    predict,
    training_words,
    words,
)
from ui.control_kinds import Settings
from ui.page_controls import BUILT, CONTROLS, is_trained
from ui.questions import multi_head_attention as questions

TWO = training.Settings.task  # the task whose sequences have a mark


class Reading(NamedTuple):
    """A trained model and what it makes of the letters.

    layer: the one that is shown, from 0. mark: from 0, or None. typed: the reader wrote the letters.
    """

    model: training.Settings
    parameters: training.Parameters
    trace: trained.Trace
    layer: int
    mark: int | None
    typed: bool


@dataclass(frozen=True)
class Shown:
    """What the page shows. sentence: the words of the tokens, if any. off: heads from 0. read: by a trained model."""

    layer: multi_head.Layer
    allowed: np.ndarray
    result: multi_head.MultiHead
    sentence: Sequence[str]
    tokens: list[str]
    labels: list[str]
    limit: float
    off: list[int]
    read: Reading | None = None

    @property
    def weights(self) -> np.ndarray:
        """(heads, n, n)."""
        return self.result.heads.weights

    @property
    def d_k(self) -> int:
        """The width of a head."""
        return self.result.heads.queries.shape[-1]

    @cached_property
    def found(self) -> multi_head.HeadStatistics:
        """What each head looks at."""
        return multi_head.head_statistics(self.weights)

    @cached_property
    def uniform(self) -> multi_head.HeadStatistics:
        """What a head looks at that looks everywhere alike."""
        return multi_head.head_statistics(multi_head.uniform_weights(self.allowed)[None])

    @cached_property
    def mean(self) -> multi_head.MeanMap:
        """The mean of the heads."""
        return multi_head.mean_of_heads(self.weights)

    @cached_property
    def ablation(self) -> multi_head.Ablation:
        """The output without the heads that are off."""
        keep = [head not in self.off for head in range(len(self.weights))]
        return multi_head.switch_off(self.result, self.layer.w_o, keep)

    @property
    def answered(self) -> str:
        """How many answers of a trained model are right without the heads that are off."""
        assert self.read
        return training_words.answers_finding(self.trace, self.read.model, [self.labels[head] for head in self.off])

    @cached_property
    def trace(self) -> trained.Trace:
        """What a trained model makes of the letters without the heads that are off."""
        assert self.read
        if not self.off:
            return self.read.trace
        silenced = trained.without_heads(self.read.parameters, self.read.model, self.read.layer, self.off)
        return trained.trace(silenced, self.read.model, self.read.trace.letters, self.read.mark)


def compute(settings: Settings) -> Shown:
    """The heads of the settings, and their attention."""
    read = read_letters(settings) if is_trained(settings) else None
    if read:
        layer, allowed = read.trace.layers[read.layer], read.trace.allowed
        sentence: Sequence[str] = [training_words.ALPHABET[letter] for letter in read.trace.letters]
    else:
        n, built = settings.n_tokens, settings.heads_from == BUILT
        sentence = settings.tokens or (multi_head.example_sentence(n) if built else ())
        layer = draw_layer(settings, sentence)
        allowed = attention.causal_mask(n) if settings.causal else np.ones((n, n), dtype=bool)
    result = multi_head.attend(layer, allowed)
    return Shown(
        layer,
        allowed,
        result,
        sentence,
        training_words.marked_names(figures.token_names(sentence, len(layer.x)), read.mark if read else None),
        multi_head_words.head_labels(layer.names),
        figures.colour_limit([result.heads.weights], figures.SHARE),
        sorted(head - 1 for head in settings.off),
        read,
    )


def read_letters(settings: Settings) -> Reading:
    """The trained model, reading the letters that were typed, or an example."""
    model, parameters = trained.load(settings.model)
    mark = settings.mark - 1 if settings.model == TWO else None
    typed = training_words.letters_read(settings.letters, TASKS[model.task])
    letters = typed or training.examples(model).letters[settings.example - 1].tolist()
    trace = trained.trace(parameters, model, letters, mark)
    return Reading(model, parameters, trace, settings.layer - 1, mark, bool(typed))


def draw_layer(settings: Settings, sentence: Sequence[str]) -> multi_head.Layer:
    """Heads built by hand, or random ones."""
    d_model, seed = settings.d_model, settings.seed
    if settings.heads_from == BUILT:
        return multi_head.built_heads(sentence, d_model, seed)
    x = draws.words(sentence, d_model, seed) if sentence else draws.tokens(settings.n_tokens, d_model, seed)
    weights = draws.attention_weights(d_model, seed, settings.weight_scale)
    return multi_head.random_heads(x, weights, settings.heads)


def say_where_from(settings: Settings, shown: Shown, *, again: bool = True) -> None:
    """Beside every picture: random or built; in short where it was said before."""
    if settings.heads_from == BUILT:
        whole = "Built by hand, not learned: the matrices were written down so that each head does one thing."
        st.caption("Heads built by hand." if again else whole)
    elif shown.read:
        steps = shown.read.model.steps
        whole = f"Trained: {steps} steps of learning, as on the page Training lab, made the heads what they are."
        st.caption("Trained heads." if again else whole)
    else:
        page.random_weights(again=again)


def all_heads(settings: Settings, shown: Shown) -> None:
    """All heads at once."""
    if not page.section():
        return
    if shown.read:
        say_what_is_read(settings, shown.read)
    weights, labels, tokens = shown.weights, shown.labels, shown.tokens
    titles = multi_head_words.grid_titles(shown.layer.names, shown.off)
    summary = multi_head_words.largest_weight(weights, labels, tokens)
    page.figure(
        multi_head_figures.head_grid(weights, titles, tokens, chosen=settings.head - 1, limit=shown.limit),
        key="all_heads",
        alt=f"Attention maps of {len(labels)} heads over {len(tokens)} tokens, {settings.heads_from}. {summary}",
        tables=page.head_tables(weights, labels, tokens),
    )
    framed = [f"The framed map, {labels[settings.head - 1]}, is shown large below."] * (len(labels) > 1)
    if settings.heads_from == BUILT:
        same_word = multi_head.same_word_share(weights, shown.sentence)
        built = multi_head_words.built_findings(weights, shown.found, same_word, shown.sentence, tokens, shown.d_k)
        page.findings(*built, *framed)
    elif shown.read:
        say_what_is_answered(shown, shown.read, framed)
    else:
        page.findings(summary, *framed)
    say_where_from(settings, shown, again=False)
    if settings.heads_from == BUILT:
        say_how_they_are_built(settings, shown)


def say_what_is_read(settings: Settings, read: Reading) -> None:
    """What a trained model was trained for, and where its letters come from."""
    task = read.model.task
    st.markdown(training_words.ABOUT[task])
    if settings.letters and not read.typed:
        st.text(training_words.letters_needed(settings.letters, TASKS[task]))
    settings.draw("mark" if task == TWO else "layer")


def say_what_is_answered(shown: Shown, read: Reading, framed: Sequence[str]) -> None:
    """What the heads of a trained model look at, and its answers without those that are off."""
    of_layer = [reading for reading in read.trace.readings if reading.layer == read.layer]
    page.findings(training_words.heads_finding(of_layer, read.model), *framed, shown.answered)
    st.dataframe(training_words.answers_table(shown.trace, read.model, shown.tokens), alt="The model's answers")


def say_how_they_are_built(settings: Settings, shown: Shown) -> None:
    """The sentence of the heads built by hand, and what each of them does."""
    d_k = shown.d_k
    if not settings.tokens:
        st.caption("No sentence is typed, so this example is used:")
        st.text(" ".join(shown.sentence))
    st.markdown(
        f"How they are built: the first {d_k} numbers of a token are for its word, "
        f"the last {d_k} for its position.\n"
        "- **Previous token:** the query is the position before the token's own, the key is the position.\n"
        "- **First token:** the query is the position of the first token for everyone, the key is the position.\n"
        "- **Same word:** the query is the word, and so is the key."
    )


def one_head(settings: Settings, shown: Shown) -> None:
    """The map of one head."""
    if not page.section("One head, large"):
        return
    settings.draw("head")
    tokens, chosen = shown.tokens, settings.head - 1
    weights = shown.weights[chosen]
    strongest = words.strongest_link(weights, tokens, tokens)
    page.figure(
        figures.attention_map(
            weights, tokens, tokens, attention.entropy(weights), x_title="key token", limit=shown.limit
        ),
        key="one_head",
        alt=f"Attention weights of {shown.labels[chosen]}, {len(tokens)} query tokens on {len(tokens)} key tokens. "
        f"{strongest}",
    )
    page.findings(strongest, words.row_sums(weights))
    st.caption(words.BITS)
    say_where_from(settings, shown)


def mean_of_heads(settings: Settings, shown: Shown) -> None:
    """The mean of the maps, which is none of them."""
    if not page.section("The mean of the heads"):
        return
    st.markdown(
        "It is often shown as “the attention” of a layer, but the layer itself uses each head's own map. "
        "If one head looks only at token 2 and another only at token 3, "
        "their mean looks half at token 2 and half at token 3, which neither of them does."
    )
    nearest = multi_head_words.mean_finding(shown.mean, shown.labels)
    page.figure(
        figures.heatmap(
            shown.mean.weights,
            x=shown.tokens,
            y=shown.tokens,
            x_title="key token",
            y_title="query token",
            unit="mean weight",
            limit=shown.limit,
        ),
        key="mean_of_heads",
        alt=f"The mean of the maps of {len(shown.labels)} heads. {nearest}",
    )
    page.findings(nearest)
    say_where_from(settings, shown)


def split_and_join(settings: Settings, shown: Shown) -> None:
    """From one width to heads and back."""
    if not page.section("Split, attend, concatenate, project"):
        return
    heads, d_k, (n, d_model) = len(shown.labels), shown.d_k, shown.layer.x.shape
    st.markdown(
        f"The columns of Q, K and V are cut into {heads} slices, one per head, each {d_k} wide. "
        "The heads work without seeing each other; only W_O mixes what they found."
        if heads > 1
        else f"One head takes all {d_k} columns of Q, K and V, so there is nothing to cut. W_O projects what it found."
    )
    several = multi_head_words.heads_in_a_row(heads)
    joined = shown.result.concatenated.shape[1]
    st.latex(
        rf"\begin{{gathered}} \text{{head}}_i = "
        rf"\text{{softmax}}\left(\frac{{Q_i K_i^\top}}{{\sqrt{{{d_k}}}}}\right) V_i \\"
        rf" {n} \times {d_k} \end{{gathered}}"
    )
    st.latex(rf"\begin{{gathered}} \text{{output}} = \\ \text{{concat}}({several})\, W_O \end{{gathered}}")
    st.latex(rf"({n} \times {joined}) \cdot ({joined} \times {d_model}) = {n} \times {d_model}")
    st.table(multi_head_words.shape_table(shown.layer, shown.result), hide_index=True)


def heads_off(settings: Settings, shown: Shown) -> None:
    """How the output changes without some of the heads."""
    if not page.section("Switch heads off"):
        return
    st.markdown(
        "A head that is off gives zeros to its slice before W_O. Then the output changes in every dimension: W_O has "
        "spread each head over all of them."
    )
    settings.draw("off")
    answered = [shown.answered] if shown.read else []
    if not shown.off:
        page.findings("All heads are on, so nothing changes. Switch one off above.", *answered)
        return
    ablation, tokens = shown.ablation, shown.tokens
    effect = multi_head_words.off_finding(shown.off, shown.labels, ablation, tokens)
    change = figures.heatmap(
        ablation.change,
        x=dimension_names(shown),
        y=tokens,
        x_title="dimension of the output",
        y_title="token",
        unit="change",
        kind=figures.SIGNED,
        share=5 / 8,
    )
    left, right = st.columns([5, 3])
    with left:
        page.figure(change, key="change_of_output", alt=f"How the output of {len(tokens)} tokens changes. {effect}")
    with right:
        page.figure(
            multi_head_figures.change_bars(
                ablation.sizes, ablation.full_sizes, tokens, change.spec["layout"]["height"]
            ),
            key="change_lengths",
            alt=f"Length of the change and of the output with all heads, per token. {effect}",
        )
    page.findings(effect, *answered)
    if not shown.read:
        st.caption("W_O is random: how large a change is says nothing yet about how useful a head is.")


def dimension_names(shown: Shown) -> list[str]:
    """1 to d_model."""
    return [str(i) for i in range(1, shown.layer.x.shape[1] + 1)]


def what_heads_look_at(settings: Settings, shown: Shown) -> None:
    """Statistics of every head."""
    if not page.section("What each head looks at"):
        return
    st.markdown(
        "Means over the query tokens; for the weight on the previous token, over those that have one. "
        "Entropy says how widely a head looks: 0 bits for all weight on one token. "
        "The dashed line is a uniform head: one that gives the same weight to every token it may look at."
    )
    labels, found = shown.labels, shown.found
    statistics = multi_head_words.statistics_table(found, shown.uniform, labels)
    distances = multi_head_words.distance_finding(found, labels)
    page.figure(
        multi_head_figures.statistics_chart(found, shown.uniform, labels),
        key="head_statistics",
        alt=f"Five statistics of {len(labels)} heads. {distances}",
        tables=lambda: {"Statistics of every head": statistics},
    )
    page.findings(distances)
    page.table(statistics, alt="Statistics of every head")
    say_where_from(settings, shown)


def parameters(settings: Settings, shown: Shown) -> None:
    """How many numbers there are to train."""
    if not page.section("More heads, the same number of parameters"):
        return
    d_model = shown.layer.x.shape[1]
    st.latex(rf"4 \cdot d_\text{{model}}^2 = 4 \cdot {d_model}^2 = {4 * d_model**2:,}".replace(",", "{,}"))
    st.markdown(
        "Parameters are the numbers in the matrices, which training sets. In the original paper W_Q, W_K, W_V and W_O "
        "are square and without biases; many libraries add biases. More heads cut them into thinner slices."
    )
    square = np.zeros((d_model, d_model))
    st.dataframe(
        multi_head_words.parameters_table(multi_head.splits(draws.AttentionWeights(square, square, square, square))),
        hide_index=True,
        alt="Parameters by number of heads",
    )
    if settings.heads_from == BUILT:
        page.findings(multi_head_words.built_parameters(shown.layer))


def below(settings: Settings, shown: Shown) -> None:
    """Questions, what to notice, and all numbers."""
    predict.offer(lambda: questions.ask(settings, shown.layer, shown.result, shown.tokens))
    page.notice(
        "A row of one head sums to 1, so more weight on one token is less on another. A second head has a sum of its "
        "own.",
        "Random heads differ by chance alone. The heads built by hand show what specialising means. "
        "In a trained model it comes from training: choose *trained*, or watch it happen on the page Training lab.",
        "Cut the same matrices into twice as many heads and each is half as wide: the number of parameters stays the "
        "same.",
    )
    if page.presenting():
        return
    page.numbers(partial(tables, settings, shown))
    page.take_away(settings, partial(arrays, settings, shown), partial(tables, settings, shown))
    page.source(
        multi_head.multi_head_attention,
        multi_head.split_heads,
        multi_head.switch_off,
        *([multi_head.built_heads] if settings.heads_from == BUILT else []),
        *([trained.trace] if shown.read else []),
    )


def tables(settings: Settings, shown: Shown) -> dict[str, page.Table]:
    """The numbers behind the pictures."""
    tokens, head = shown.tokens, settings.head - 1
    return {
        f"Weights of {shown.labels[head]}": page.frame(shown.weights[head], tokens, tokens),
        "Mean of the heads": page.frame(shown.mean.weights, tokens, tokens),
        "Output with the heads that are on": page.frame(shown.ablation.output, tokens, dimension_names(shown)),
    }


def arrays(settings: Settings, shown: Shown) -> dict[str, np.ndarray]:
    """All arrays of the page, under the names that they have in its script."""
    layer, result, ablation = shown.layer, shown.result, shown.ablation
    made = {"x": layer.x, "w_q": layer.w_q, "w_k": layer.w_k, "w_v": layer.w_v, "w_o": layer.w_o}
    if settings.heads_from == BUILT:
        made["b_q"] = np.asarray(layer.b_q)
    stages = ("queries", "keys", "values", "scores", "scaled", "masked")
    return (
        made
        | {name: getattr(result.heads, name) for name in stages}
        | {
            "allowed": shown.allowed,
            "weights": shown.weights,
            "row_entropy": attention.entropy(shown.weights),
            "head_outputs": result.heads.output,
            "concatenated": result.concatenated,
            "output": result.output,
            "mean_map": shown.mean.weights,
            "from_mean": shown.mean.distances,
            "output_left": ablation.output,
            "change": ablation.change,
            "change_lengths": ablation.sizes,
            "output_lengths": ablation.full_sizes,
            "statistics": np.stack(list(vars(shown.found).values()), axis=1),
            "even_statistics": np.stack(list(vars(shown.uniform).values()), axis=1),
        }
    )


page.start(
    "multi_head_attention",
    "Instead of one attention, several can run side by side, each with its own projections: the heads. "
    "Each map below is one head: row by row, how much a token takes from every token.",
)
controls.open_page("multi_head_attention", CONTROLS["multi_head_attention"], in_parts=True)
page.parts(
    compute,
    all_heads,
    one_head,
    mean_of_heads,
    split_and_join,
    heads_off,
    what_heads_look_at,
    parameters,
    below=below,
    unmoved={
        mean_of_heads: {"head"},
        split_and_join: {"head", "weight_scale"},
        heads_off: {"head"},
        what_heads_look_at: {"head"},
        parameters: {"head", "heads", "seq_len", "weight_scale", "example", "mark", "layer"},
    },
)
page.foot("multi_head_attention")
