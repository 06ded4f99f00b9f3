"""Multi-head attention: several attentions side by side, random, built by hand or trained, and what each head does."""

import numpy as np
import streamlit as st

from core import attention, draws, multi_head, trained, training
from core.tasks import TASKS
from ui import (
    controls,
    experiments,
    figures,
    multi_head_figures,
    multi_head_words,
    page,
    predict,
    training_words,
    words,
)
from ui.page_controls import BUILT, CONTROLS, is_trained
from ui.questions import multi_head_attention as questions

TWO = training.Settings.task  # the task whose sequences have a mark

page.start(
    "multi_head_attention",
    "Instead of one attention, several can run side by side, each with its own projections: the heads. "
    "Each map below is one head: row by row, how much a token takes from every token.",
)
settings = controls.open_page("multi_head_attention", CONTROLS["multi_head_attention"])
experiments.offer("multi_head_attention", settings)
controls.teaching_buttons()

built, learned = settings.heads_from == BUILT, is_trained(settings)
n, d_model, seed = settings.n_tokens, settings.d_model, settings.seed
sentence = settings.tokens or (multi_head.example_sentence(n) if built else ())
tokens = figures.token_names(sentence, n)
if learned:
    model, parameters = trained.load(settings.model)
    judged, mark = training.examples(model), settings.mark - 1 if settings.model == TWO else None
    typed = training_words.letters_read(settings.letters, TASKS[model.task])
    trace = trained.trace(parameters, model, typed or judged.letters[settings.example - 1].tolist(), mark)
    layer, allowed = trace.layers[settings.layer - 1], trace.allowed
    n, d_model = layer.x.shape
    sentence = tuple(training_words.ALPHABET[letter] for letter in trace.letters)
    tokens = training_words.marked_names(figures.token_names(sentence, n), mark)
else:
    allowed = attention.causal_mask(n) if settings.causal else np.ones((n, n), dtype=bool)
    if built:
        layer = multi_head.built_heads(sentence, d_model, seed)
    else:
        x = draws.words(sentence, d_model, seed) if sentence else draws.tokens(n, d_model, seed)
        layer = multi_head.random_heads(
            x, draws.attention_weights(d_model, seed, settings.weight_scale), settings.heads
        )
result = multi_head.attend(layer, allowed)

weights, chosen = result.heads.weights, settings.head - 1
heads, d_k = len(weights), result.heads.queries.shape[-1]
off = sorted(head - 1 for head in settings.off)
labels = multi_head_words.head_labels(layer.names)
entropy = attention.entropy(weights)
found = multi_head.head_statistics(weights)
uniform = multi_head.head_statistics(multi_head.uniform_weights(allowed)[None])
mean = multi_head.mean_of_heads(weights)
limit = figures.colour_limit([weights], figures.SHARE)


def say_where_from(*, again: bool = True) -> None:
    """Beside every picture: random or built; in short where it was said before."""
    if built:
        whole = "Built by hand, not learned: the matrices were written down so that each head does one thing."
        st.caption("Heads built by hand." if again else whole)
    elif learned:
        whole = f"Trained: {model.steps} steps of learning, as on the page Training lab, made the heads what they are."
        st.caption("Trained heads." if again else whole)
    else:
        page.random_weights(again=again)


# All heads at once
if page.section():
    if learned:
        st.markdown(training_words.ABOUT[model.task])
        if settings.letters and not typed:
            st.text(training_words.letters_needed(settings.letters, TASKS[model.task]))
        settings.draw("mark" if settings.model == TWO else "layer")
    titles = multi_head_words.grid_titles(layer.names, off)
    summary = multi_head_words.largest_weight(weights, labels, tokens)
    page.figure(
        multi_head_figures.head_grid(weights, titles, tokens, chosen=chosen, limit=limit),
        key="all_heads",
        alt=f"Attention maps of {heads} heads over {n} tokens, {settings.heads_from}. {summary}",
        tables=page.head_tables(weights, labels, tokens),
    )
    if built:
        same_word = multi_head.same_word_share(weights, sentence)
        page.findings(*multi_head_words.built_findings(weights, found, same_word, sentence, tokens, d_k))
    elif learned:
        readings = [reading for reading in trace.readings if reading.layer == settings.layer - 1]
        silenced = trained.without_heads(parameters, model, settings.layer - 1, off)
        answered = trained.trace(silenced, model, trace.letters, mark) if off else trace
        answers = training_words.answers_finding(answered, model, [labels[head] for head in off])
        page.findings(training_words.heads_finding(readings, model), answers)
        st.dataframe(training_words.answers_table(answered, model, tokens), alt="The model's answers")
    else:
        page.findings(summary)
    say_where_from(again=False)
    if built and not settings.tokens:
        st.caption("No sentence is typed, so this example is used:")
        st.text(" ".join(sentence))
    if built:
        st.markdown(
            f"How they are built: the first {d_k} numbers of a token are for its word, "
            f"the last {d_k} for its position.\n"
            "- **Previous token:** the query is the position before the token's own, the key is the position.\n"
            "- **First token:** the query is the position of the first token for everyone, the key is the position.\n"
            "- **Same word:** the query is the word, and so is the key."
        )

# One head
if page.section("One head, large"):
    settings.draw("head")
    one = words.strongest_link(weights[chosen], tokens, tokens)
    page.figure(
        figures.attention_map(weights[chosen], tokens, tokens, entropy[chosen], x_title="key token", limit=limit),
        key="one_head",
        alt=f"Attention weights of {labels[chosen]}, {n} query tokens on {n} key tokens. {one}",
    )
    page.findings(one, words.row_sums(weights[chosen]))
    say_where_from()

# The mean
if page.section("The mean of the heads"):
    st.markdown(
        "It is often shown as “the attention” of a layer, but the layer itself uses each head's own map. "
        "If one head looks only at token 2 and another only at token 3, "
        "their mean looks half at token 2 and half at token 3, which neither of them does."
    )
    nearest = multi_head_words.mean_finding(mean, labels)
    page.figure(
        figures.heatmap(
            mean.weights,
            x=tokens,
            y=tokens,
            x_title="key token",
            y_title="query token",
            unit="mean weight",
            limit=limit,
        ),
        key="mean_of_heads",
        alt=f"The mean of the maps of {heads} heads. {nearest}",
    )
    page.findings(nearest)
    say_where_from()

# From one width to heads and back
if page.section("Split, attend, concatenate, project"):
    st.markdown(
        f"The columns of Q, K and V are cut into {heads} slices, one per head, each {d_k} wide. "
        "The heads work without seeing each other; only W_O mixes what they found."
        if heads > 1
        else f"One head takes all {d_k} columns of Q, K and V, so there is nothing to cut. W_O projects what it found."
    )
    several = multi_head_words.heads_in_a_row(heads)
    joined = result.concatenated.shape[1]
    st.latex(
        rf"\begin{{gathered}} \text{{head}}_i = "
        rf"\text{{softmax}}\left(\frac{{Q_i K_i^\top}}{{\sqrt{{{d_k}}}}}\right) V_i \\"
        rf" {n} \times {d_k} \end{{gathered}}"
    )
    st.latex(rf"\begin{{gathered}} \text{{output}} = \\ \text{{concat}}({several})\, W_O \end{{gathered}}")
    st.latex(rf"({n} \times {joined}) \cdot ({joined} \times {d_model}) = {n} \times {d_model}")
    st.table(multi_head_words.shape_table(layer, result), hide_index=True)

# Heads switched off
if page.section("Switch heads off"):
    st.markdown(
        "A head that is off gives zeros to its slice before W_O. The map shows how the output changes, in every "
        "dimension: W_O has spread each head over all of them."
    )
    settings.draw("off")
    ablation = multi_head.switch_off(result, layer.w_o, [head not in off for head in range(heads)])
    effect = multi_head_words.off_finding(off, labels, ablation, tokens)
    change = figures.heatmap(
        ablation.change,
        x=[str(i) for i in range(1, d_model + 1)],
        y=tokens,
        x_title="dimension of the output",
        y_title="token",
        unit="change",
        kind=figures.SIGNED,
    )
    left, right = st.columns([5, 3])
    with left:
        page.figure(change, key="change_of_output", alt=f"How the output of {n} tokens changes. {effect}")
    with right:
        page.figure(
            multi_head_figures.change_bars(
                ablation.sizes, ablation.full_sizes, tokens, change.spec["layout"]["height"]
            ),
            key="change_lengths",
            alt=f"Length of the change and of the output with all heads, per token. {effect}",
        )
    page.findings(effect)
    if not learned:
        st.caption("W_O is random: how large a change is says nothing yet about how useful a head is.")

# What each head looks at
if page.section("What each head looks at"):
    st.markdown(
        "Means over the query tokens. Entropy says how widely a head looks: 0 bits for all weight on one token. "
        "The dashed line is a uniform head: one that gives the same weight to every token it may look at."
    )
    statistics = multi_head_words.statistics_table(found, uniform, labels)
    page.figure(
        multi_head_figures.statistics_chart(found, uniform, labels),
        key="head_statistics",
        alt=f"Five statistics of {heads} heads. {multi_head_words.distance_finding(found, labels)}",
        tables=lambda: {"Statistics of every head": statistics},
    )
    page.findings(multi_head_words.distance_finding(found, labels))
    page.table(statistics, alt="Statistics of every head")
    say_where_from()

# Parameters
if page.section("More heads, the same number of parameters"):
    st.latex(rf"4 \cdot d_\text{{model}}^2 = 4 \cdot {d_model}^2 = {4 * d_model**2:,}".replace(",", r"\,"))
    st.markdown(
        "Parameters are the numbers in the matrices, which training sets. In the usual form W_Q, W_K, W_V and W_O are "
        "square and without biases. More heads cut them into thinner slices."
    )
    st.dataframe(
        multi_head_words.parameters_table(multi_head.splits(draws.attention_weights(d_model, seed, 1.0))),
        hide_index=True,
        alt="Parameters by number of heads",
    )
    if built:
        page.findings(multi_head_words.built_parameters(layer))

predict.offer(lambda: questions.ask(settings, layer, result, tokens))

page.notice(
    "A row of one head sums to 1, so more weight on one token is less on another. A second head has a sum of its own.",
    "Random heads differ by chance alone. The heads built by hand show what specialising means. "
    "In a trained model it comes from training: choose *trained*, or watch it happen on the page Training lab.",
    "Cut the same matrices into twice as many heads and each is half as wide: the number of parameters stays the same.",
)
if not page.presenting():
    tables = {
        f"Weights of {labels[chosen]}": page.frame(weights[chosen], tokens, tokens),
        "Mean of the heads": page.frame(mean.weights, tokens, tokens),
        "Output with the heads that are on": page.frame(
            ablation.output, tokens, [str(i) for i in range(1, d_model + 1)]
        ),
    }
    page.numbers(tables)
    arrays = {"x": layer.x, "w_q": layer.w_q, "w_k": layer.w_k, "w_v": layer.w_v, "w_o": layer.w_o}
    page.take_away(
        settings,
        arrays
        | ({"b_q": np.asarray(layer.b_q)} if built else {})
        | {name: getattr(result.heads, name) for name in ("queries", "keys", "values", "scores", "scaled", "masked")}
        | {
            "allowed": allowed,
            "weights": weights,
            "row_entropy": entropy,
            "head_outputs": result.heads.output,
            "concatenated": result.concatenated,
            "output": result.output,
            "mean_map": mean.weights,
            "from_mean": mean.distances,
            "output_left": ablation.output,
            "change": ablation.change,
            "change_lengths": ablation.sizes,
            "output_lengths": ablation.full_sizes,
            "statistics": np.stack(list(vars(found).values()), axis=1),
            "even_statistics": np.stack(list(vars(uniform).values()), axis=1),
        },
        tables,
    )
    page.source(
        multi_head.multi_head_attention,
        multi_head.split_heads,
        multi_head.switch_off,
        *([multi_head.built_heads] if built else []),
        *([trained.trace] if learned else []),
    )
page.foot("multi_head_attention")
