"""Experiments: each button sets legal values that its page keeps, changes what is seen, and says what to look for."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core import attention, block, draws, gradients, multi_head, positional, recurrence, training
from tests import asking
from tests.pages.charts import control, open_page, specs, texts
from ui import page_controls, training_runs
from ui.control_kinds import Control, Settings
from ui.experiments import EXPERIMENTS, Experiment
from ui.navigation import ENTRIES

EACH = [
    pytest.param(page, place, id=f"{page} {experiment.name}")
    for page, experiments in EXPERIMENTS.items()
    for place, experiment in enumerate(experiments)
]


def notes(at: AppTest) -> list[str]:
    return [info.value for info in at.info]


def note_of(experiment: Experiment) -> str:
    return f"**{experiment.name}.** {experiment.look}"


def test_every_page_but_home_offers_three_to_five() -> None:
    assert list(EXPERIMENTS) == [entry.name for entry in ENTRIES[1:]]
    for experiments in EXPERIMENTS.values():
        assert 3 <= len(experiments) <= 5
        assert len({each.name for each in experiments}) == len(experiments)
        assert all(each.name[-1].isalnum() for each in experiments)  # a full stop follows it


@pytest.mark.parametrize("page", EXPERIMENTS)
def test_a_page_opens_without_an_experiment(page: str) -> None:
    assert notes(open_page(page)) == []


@pytest.mark.parametrize(("page", "place"), EACH)
def test_a_button_sets_the_controls_and_the_picture_and_says_what_to_look_for(page: str, place: int) -> None:
    experiment = EXPERIMENTS[page][place]
    at = open_page(page)
    before = specs(at)
    at.button(key=f"{page}_experiment_{place}").click().run()
    assert not at.exception
    assert notes(at) == [note_of(experiment)]
    for name, value in experiment.sets.items():
        shown = control(at, name).value if name not in at.session_state["memory"].drawn else None
        assert shown in (value, None), name
    assert specs(at) != before or page == "training_lab"  # there it is seen after training
    link = at.session_state["memory"].link
    assert {name: "".join(at.query_params[name]) for name in at.query_params} == link  # all that is set is in the link
    assert specs(open_page(page, **link)) == specs(at)


def test_a_link_to_an_experiment_says_what_to_look_for_and_another_value_ends_it() -> None:
    cold = EXPERIMENTS["self_attention"][2]
    at = open_page("self_attention", temperature="0.1")
    assert notes(at) == [note_of(cold)]
    at.slider(key="temperature").set_value(5.0).run()
    assert notes(at) == []


def settings_of(at: AppTest, page: str) -> dict[str, Any]:
    declared = [each for each in page_controls.CONTROLS[page] if isinstance(each, Control)]
    return at.session_state["memory"].settings(declared).values


@pytest.mark.parametrize("page", EXPERIMENTS)
def test_an_experiment_starts_from_the_lesson_example_whatever_was_before(page: str) -> None:
    at = open_page(page, seed="7", d_model="32", weight_scale="0.9", seq_len="9", learning_rate="1", steps="100")
    places = range(len(EXPERIMENTS[page]))
    for place in [*places, *reversed(places)]:
        experiment = EXPERIMENTS[page][place]
        at.button(key=f"{page}_experiment_{place}").click().run()
        assert not at.exception
        assert notes(at) == [note_of(experiment)]
        assert settings_of(at, page) == asking.of(page, **experiment.sets).values


def test_an_experiment_leaves_alone_what_a_link_has_locked() -> None:
    at = open_page("self_attention", lock="temperature", temperature="2", d_model="12")
    at.button(key="self_attention_experiment_0").click().run()  # the first that is offered
    ahead = next(each for each in EXPERIMENTS["self_attention"] if "temperature" not in each.sets)
    assert notes(at) == [note_of(ahead)]
    assert "Temperature: 2 (locked)" in texts(at)
    assert settings_of(at, "self_attention")["d_model"] == 6


def test_the_note_stays_while_its_reader_looks_around() -> None:
    letters = EXPERIMENTS["multi_head_attention"][3]
    at = open_page("multi_head_attention")
    at.button(key="multi_head_attention_experiment_3").click().run()
    at.slider(key="mark").set_value(2).run()
    assert notes(at) == [note_of(letters)]
    explodes = EXPERIMENTS["recurrence"][3]
    at = open_page("recurrence")
    at.button(key="recurrence_experiment_3").click().run()
    next(button for button in at.button if button.label == "New weights").click().run()
    assert notes(at) == [note_of(explodes)]


# --- what the notes promise, computed by core from where the experiment starts ---------------------------------------


def state(page: str, name: str, **more: Any) -> Settings:
    """The settings of an experiment; more: what its note says to move then."""
    experiment = next(each for each in EXPERIMENTS[page] if each.name == name)
    return asking.of(page, **{**experiment.sets, **more})


def remembered(s: Settings) -> tuple[np.ndarray, np.ndarray]:
    """The reach of each token in the RNN, and the last token's attention weights."""
    x, (w_x, w_h) = asking.tokens_of(s), draws.recurrent_weights(s.d_model, s.seed, s.gain)
    w = draws.attention_weights(s.d_model, s.seed, s.weight_scale)
    reach = recurrence.reach_of_tokens(recurrence.rnn(x, w_x, w_h), w_x, w_h)
    return reach, attention.self_attention(x, w.w_q, w.w_k, w.w_v).weights[-1]


def test_attention_pays_256_tokens_with_its_map() -> None:
    costs = recurrence.costs(state("recurrence", "256 tokens").n_tokens, 8)
    assert (costs.rnn_steps, costs.attention_steps, costs.weights) == (256, 1, 256**2)


def test_a_wide_model_pays_for_projections_until_the_text_is_long() -> None:
    s = state("recurrence", "A wide model, a short text")
    costs, crossing = recurrence.costs(s.n_tokens, s.d_model), recurrence.crossings(s.d_model).projections
    assert costs.projections > costs.mixing
    assert s.n_tokens < crossing <= 256  # within the chart


def test_a_short_memory_forgets_and_attention_does_not() -> None:
    reach, weights = remembered(state("recurrence", "A short memory"))
    assert reach[0] < 1e-9 * reach[-1]
    assert weights[0] > 0.1 * weights[-1]


@pytest.mark.parametrize("seed", range(6))
def test_a_memory_explodes(seed: int) -> None:
    reach, _ = remembered(state("recurrence", "A large gain", seed=seed))
    assert reach[0] > 1000 * reach[-1]


def weights_of(s: Settings) -> np.ndarray:
    x = asking.tokens_of(s)
    source = asking.second_of(s) if s.cross else x
    w = draws.attention_weights(s.d_model, s.seed, s.weight_scale)
    allowed = asking.allowed_of(s, len(x), len(source))
    more = dict(scaling=s.scaling, temperature=s.temperature)
    return attention.cross_attention(x, source, w.w_q, w.w_k, w.w_v, allowed, **more).weights


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("name", "then"), [("Without √d_k at d_model 64", {"scaling": True}), ("Cold, then hot", {"temperature": 5.0})]
)
def test_sharp_rows_become_more_even(name: str, then: dict[str, Any], seed: int) -> None:
    before = attention.entropy(weights_of(state("self_attention", name, seed=seed)))
    after = attention.entropy(weights_of(state("self_attention", name, seed=seed, **then)))
    assert before.mean() < 0.6 * np.log2(5)
    assert (after > before + 0.1).all()
    if name == "Cold, then hot":
        assert (after > 0.98 * np.log2(5)).all()  # “the rows become even”


def test_nobody_looks_ahead() -> None:
    weights = weights_of(state("self_attention", "Nobody looks ahead"))
    np.testing.assert_array_equal(weights > 0, np.tri(5, dtype=bool))


def test_the_same_word_has_the_same_row() -> None:
    weights = weights_of(state("self_attention", "The same word twice"))
    np.testing.assert_array_equal(weights[0], weights[3])
    assert not np.allclose(weights[0], weights[1])


def test_the_map_of_two_sentences_is_not_square() -> None:
    assert weights_of(state("self_attention", "A second sentence")).shape == (5, 6)


def shuffled(s: Settings, scheme: str, causal: bool = False) -> positional.Shuffle:
    words = s.tokens or ("dog", "bites", "man")
    rows, w = draws.words(words, s.d_model, s.seed), draws.attention_weights(s.d_model, s.seed, 0.3)
    order, table = positional.permutation(s.permutation, len(words), s.seed), np.zeros((len(words), s.d_model))
    return positional.shuffle(rows, w.w_q, w.w_k, w.w_v, order, scheme, table, causal=causal)


def test_two_words_that_change_places_are_told_apart_by_an_encoding_alone() -> None:
    s = state("positional_encoding", "Two words change places")
    assert shuffled(s, "none").differences.max() < 1e-12
    assert shuffled(s, s.scheme).differences.max() > 0.01


def test_without_an_encoding_order_shows_by_a_causal_mask() -> None:
    s = state("positional_encoding", "No encoding at all")
    assert shuffled(s, "none").differences.max() < 1e-12
    assert shuffled(s, "none", causal=True).differences.max() > 0.01


@pytest.mark.parametrize("seed", range(6))
def test_loud_words_drown_their_positions(seed: int) -> None:
    def right(**more: Any) -> int:
        s = state("positional_encoding", "Loud words", seed=seed, **more)
        x = s.embedding_scale * asking.tokens_of(s)
        found = positional.recover_positions(x, positional.sinusoidal(s.n_tokens, s.d_model)).positions
        return int((found == np.arange(s.n_tokens)).sum())

    assert right() < right(embedding_scale=0.5)


def test_turned_scores_depend_on_the_distance_alone() -> None:
    s = state("positional_encoding", "Turn instead of add")
    x, w = asking.tokens_of(s), draws.attention_weights(s.d_model, s.seed, 0.3)
    asked = attention.self_attention(x, w.w_q, w.w_k, w.w_v)
    read = positional.by_offset(positional.rotary_scores(asked.queries[0], asked.keys[-1], s.n_tokens))
    np.testing.assert_allclose(read.low, read.high, atol=1e-9)


def test_each_head_of_alibi_looks_further() -> None:
    assert state("positional_encoding", "Distance costs").alibi_head == 1
    assert (np.diff(positional.alibi_slopes(8)) < 0).all()


def attended(s: Settings) -> multi_head.MultiHead:
    layer, _, allowed = asking.layer_of(s)
    return multi_head.attend(layer, allowed)


def test_heads_with_a_job_have_three_jobs() -> None:
    s = state("multi_head_attention", "Heads with a job")
    words = multi_head.example_sentence(s.n_tokens)
    previous, first, same = attended(s).heads.weights
    assert (np.diagonal(previous, -1) > 0.9).all()
    assert (first[:, 0] > 0.9).all()
    equal = np.array([[one == other for other in words] for one in words])
    assert ((same * equal).sum(axis=1) > 0.9).all()


def test_a_head_that_is_off_changes_some_tokens_more_than_others() -> None:
    s = state("multi_head_attention", "One of them off")
    layer, result = asking.layer_of(s)[0], attended(s)
    without = multi_head.switch_off(result, layer.w_o, [head + 1 not in s.off for head in range(3)])
    assert without.sizes.max() > 1.2 * without.sizes.min()
    assert np.count_nonzero(without.sizes == without.sizes.max()) == 1


def test_eight_heads_are_eight_wide() -> None:
    assert attended(state("multi_head_attention", "Eight heads")).heads.queries.shape == (8, 6, 8)


@pytest.mark.parametrize("mark", range(1, 13))
def test_one_trained_head_follows_the_mark(mark: int) -> None:
    first, second = attended(state("multi_head_attention", "Heads that were trained", mark=mark)).heads.weights
    assert first[:, mark - 1].mean() > 0.9
    assert second[:, mark - 1].mean() < 0.2


def stacked(s: Settings, **more: Any) -> np.ndarray:
    """The spread from the input to the last block."""
    x, kind = asking.tokens_of(s), replace(asking.kind_of(s), **more)
    weights = [draws.block_weights(s.d_model, s.d_ff, s.seed, s.weight_scale, block=i) for i in range(s.blocks)]
    return block.depth([x, *(each.output for each in block.stack(x, weights, kind))]).spread


def gradient(s: Settings) -> np.ndarray:
    x, direction = asking.tokens_of(s), gradients.unit_direction(s.n_tokens, s.d_model, s.seed)
    drawn = [draws.block_weights(s.d_model, s.d_ff, s.seed, s.weight_scale, block=i) for i in range(s.blocks)]
    arranged = [gradients.block_weights(*each) for each in drawn]
    return gradients.gradient_lengths(x, arranged, asking.kind_of(s), direction)


def test_the_spread_grows_with_pre_norm_and_not_with_post_norm() -> None:
    s = state("transformer_block", "24 blocks, pre-norm")
    assert stacked(s)[-1] > 3 * stacked(s)[1]
    np.testing.assert_allclose(stacked(s, order="post-norm")[1:], 1, atol=0.01)


def test_without_a_norm_the_spread_does_not_stay_and_the_gradient_grows_on_its_way_back() -> None:
    s = state("transformer_block", "No norm")
    assert stacked(s)[-1] > 3 * stacked(s)[0]
    assert gradient(s)[0] > 2 * gradient(s)[-1]


def test_without_residual_connections_less_of_the_gradient_gets_back() -> None:
    s = state("transformer_block", "No residual connections")
    assert gradient(s)[0] < 0.2 * gradient(asking.of("transformer_block", blocks=12))[0]


def test_gelu_changes_the_output() -> None:
    s = state("transformer_block", "GELU")
    x, (w,) = asking.tokens_of(s), [draws.block_weights(s.d_model, s.d_ff, s.seed, s.weight_scale)]
    gelu, relu = (next(iter(block.stack(x, [w], replace(asking.kind_of(s), activation=a)))) for a in ("gelu", "relu"))
    assert np.abs(gelu.output - relu.output).max() > 0.01


def trained_as(name: str) -> list[training.Progress]:
    """The last step of the run of an experiment, and of the run beside it if there is one."""
    first = asking.model_of(state("training_lab", name))
    beside = state("training_lab", name).beside
    second = training_runs.with_change(first, beside, training.suggested(first.task).encoding, seeds=10)
    return [[*training.train(each, each.steps)][-1] for each in (first, second) if each]


@pytest.mark.parametrize("name", ["One head beside two", "Without positions"])
def test_the_run_beside_gives_up_one_of_two_questions(name: str) -> None:
    whole, less = trained_as(name)
    assert min(whole.accuracies or ()) > 0.95
    previous, marked = less.accuracies or ()
    assert previous < 0.5
    assert marked > 0.95


def test_the_first_head_finds_the_previous_letter_and_the_second_what_came_after() -> None:
    (run,) = trained_as("A head for a head")
    first, second = run.readings or ()
    assert first.on["previous"] > 0.9
    assert second.on["after the last time"] > 0.8
    assert min(run.accuracies or ()) > 0.95


def test_with_steps_too_large_the_loss_does_not_fall_as_it_does_at_a_rate_of_0_003() -> None:
    (large,), (usual, _) = trained_as("Steps too large"), trained_as("One head beside two")
    assert large.loss > 10 * usual.loss
