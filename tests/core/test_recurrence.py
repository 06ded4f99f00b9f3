"""The recurrent network beside attention: its states, how far they reach, what both cost and how they are timed."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from core import draws, recurrence
from core.recurrence import Timing, costs, costs_by_length, jacobians, reach_of_tokens, rnn, time_both

Refusal = Callable[[Callable[[], object]], str]

N, D = 6, 4
X = draws.tokens(N, D, 0)
W_X, W_H = draws.recurrent_weights(D, 0, 1.0)


def test_states_step_by_step() -> None:
    states = rnn(X, W_X, W_H)
    before = np.zeros(D)
    for token, state in zip(X, states, strict=True):
        np.testing.assert_allclose(state, np.tanh(token @ W_X + before @ W_H), rtol=1e-12)
        before = state


def test_a_state_knows_nothing_of_later_tokens() -> None:
    changed = X.copy()
    changed[4:] += 1
    np.testing.assert_array_equal(rnn(changed, W_X, W_H)[:4], rnn(X, W_X, W_H)[:4])
    np.testing.assert_array_equal(rnn(X[:3], W_X, W_H), rnn(X, W_X, W_H)[:3])


def test_jacobians_against_central_differences() -> None:
    """Input and state have different widths here, so that a transposed matrix cannot hide."""
    random = np.random.default_rng(0)
    x, w_x = random.standard_normal((N, 3)), random.standard_normal((3, D))
    found = list(jacobians(rnn(x, w_x, W_H), w_x, W_H))
    assert len(found) == N
    step = 1e-6
    for t, jacobian in zip(reversed(range(N)), found, strict=True):
        for j in range(3):
            up, down = x.copy(), x.copy()
            up[t, j] += step
            down[t, j] -= step
            slope = (rnn(up, w_x, W_H)[-1] - rnn(down, w_x, W_H)[-1]) / (2 * step)
            np.testing.assert_allclose(jacobian[:, j], slope, atol=1e-8)


def test_reach_is_the_frobenius_norm_with_the_first_token_first() -> None:
    states = rnn(X, W_X, W_H)
    reach = reach_of_tokens(states, W_X, W_H)
    expected = [np.sqrt((jacobian**2).sum()) for jacobian in jacobians(states, W_X, W_H)]
    np.testing.assert_allclose(reach[::-1], expected, rtol=1e-12)


def test_a_small_gain_makes_the_first_token_fade() -> None:
    x = draws.tokens(40, 16, 0)
    reaches = []
    for gain in (0.2, 0.5, 0.9):
        w_x, w_h = draws.recurrent_weights(16, 0, gain)
        reaches.append(reach_of_tokens(rnn(x, w_x, w_h), w_x, w_h))
        assert (np.diff(np.log(reaches[-1])) > 0).mean() > 0.9
    assert reaches[0][0] < reaches[1][0] < reaches[2][0] < reaches[2][-1]


@pytest.mark.parametrize("gain", [0.0, 0.01, 1.0, 100.0])
def test_long_sequences_underflow_to_zero_without_a_sound(gain: float) -> None:
    w_x, w_h = draws.recurrent_weights(8, 0, gain)
    reach = reach_of_tokens(rnn(draws.tokens(256, 8, 0), w_x, w_h), w_x, w_h)
    assert reach.shape == (256,)
    assert np.isfinite(reach).all()


def test_one_token() -> None:
    states = rnn(X[:1], W_X, W_H)
    np.testing.assert_allclose(states, np.tanh(X[:1] @ W_X))
    assert reach_of_tokens(states, W_X, W_H).shape == (1,)


# --- costs -----------------------------------------------------------------------------------------------------------


def test_costs_of_a_small_case_by_hand() -> None:
    found = costs(3, 2)
    assert found.rnn == 3 * (4 + 4)  # three tokens, two products of a vector with a 2 × 2 matrix
    assert found.projections == 4 * 3 * 4  # four products of a 3 × 2 with a 2 × 2 matrix
    assert found.mixing == 2 * 3 * 3 * 2  # (3 × 2)(2 × 3) and (3 × 3)(3 × 2)
    assert found.attention == 48 + 36
    assert (found.rnn_steps, found.attention_steps) == (3, 1)
    assert (found.rnn_path, found.attention_path) == (2, 1)
    assert found.weights == 9


@pytest.mark.parametrize("d_model", [2, 4, 64, 128])
def test_mixing_costs_as_much_as_the_projections_at_twice_the_width(d_model: int) -> None:
    at = costs(2 * d_model, d_model)
    assert at.mixing == at.projections
    assert costs(2 * d_model - 1, d_model).mixing < costs(2 * d_model - 1, d_model).projections
    assert costs(2 * d_model + 1, d_model).mixing > costs(2 * d_model + 1, d_model).projections


def test_how_costs_grow() -> None:
    one, two = costs(50, 32), costs(100, 32)
    assert two.rnn == 2 * one.rnn
    assert two.projections == 2 * one.projections
    assert two.mixing == 4 * one.mixing
    assert costs(50, 64).rnn == 4 * one.rnn  # n·d², not n·d
    assert costs(1, 4).rnn_path == costs(1, 4).attention_path == 0
    assert type(costs(np.int64(50), np.int64(32)).rnn) is int  # type: ignore[arg-type]


def test_costs_of_many_lengths_are_those_of_each() -> None:
    found = costs_by_length(1, 50, 32)
    for seq_len in range(1, 51):
        assert {name: counts[seq_len - 1] for name, counts in found.items()} == vars(costs(seq_len, 32))


# --- timing ----------------------------------------------------------------------------------------------------------


class FakeClock:
    """Lets each timed run last as long as the next of the durations."""

    def __init__(self, *durations: float) -> None:
        self.times = self._times(durations)
        self.calls = 0

    @staticmethod
    def _times(durations: tuple[float, ...]) -> Iterator[float]:
        now = 0.0
        for duration in durations:
            yield now
            now += duration
            yield now

    def __call__(self) -> float:
        self.calls += 1
        return next(self.times)


def test_times_are_medians_with_their_range_length_by_length() -> None:
    clock = FakeClock(*[1, 100, 3], *[7, 5, 6], *[2, 2, 900], *[10, 30, 20])
    times = time_both([4, 8], 6, 0, repeats=3, clock=clock)
    assert next(times) == Timing(4, rnn=3, attention=6, rnn_range=(1, 100), attention_range=(5, 7))
    assert clock.calls == 2 * 2 * 3  # the second length has not been run yet
    assert next(times) == Timing(8, rnn=2, attention=20, rnn_range=(2, 900), attention_range=(10, 30))
    with pytest.raises(StopIteration):
        next(times)


def test_times_are_measured() -> None:
    for timing in time_both([2, 16], 8, 0, repeats=1):
        assert 0 < timing.rnn < 5
        assert 0 < timing.attention < 5


def test_both_are_timed_in_float32_after_a_run_that_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention once computed in float64 beside a network in float32."""
    runs: list[str] = []
    kinds: set[np.dtype] = set()
    for name in ("rnn", "_attend"):
        original = getattr(recurrence, name)

        def seen(*arrays: np.ndarray, name: str = name, original: Callable[..., np.ndarray] = original) -> np.ndarray:
            result = original(*arrays)
            runs.append(name)
            kinds.update(array.dtype for array in (*arrays, result))
            return result

        monkeypatch.setattr(recurrence, name, seen)
    list(time_both([4], 6, 0, repeats=1))
    assert runs == ["rnn", "rnn", "_attend", "_attend"]
    assert kinds == {np.dtype(np.float32)}


# --- refusals --------------------------------------------------------------------------------------------------------

STATES = rnn(X, W_X, W_H)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rnn(X[0], W_X, W_H), "x needs 2 axes and has shape (4,)"),
        (lambda: rnn(X[None], W_X, W_H), "x needs 2 axes"),
        (lambda: rnn(X[:0], W_X, W_H), "x is empty"),
        (lambda: rnn(X * np.nan, W_X, W_H), "x must hold finite numbers, but 24 of its 24 are not"),
        (lambda: rnn(X, W_X[:2], W_H), "w_x's number of rows 2 does not match the input's width 4"),
        (lambda: rnn(X, W_X, W_H[:2]), "w_h's number of rows 2 does not match"),
        (lambda: rnn(X, W_X, W_H[:, :2]), "w_h's number of columns 2 does not match its number of rows 4"),
        (lambda: rnn(X, W_X[0], W_H), "w_x needs 2 axes"),
        (lambda: rnn(X, 3.0, W_H), "w_x needs 2 axes"),  # type: ignore[arg-type]
        (lambda: reach_of_tokens(STATES[0], W_X, W_H), "states needs 2 axes"),
        (lambda: reach_of_tokens(STATES, W_X, W_H[:2]), "w_h's number of rows 2 does not match"),
        (lambda: reach_of_tokens(STATES, W_X, W_H[:, :2]), "w_h's number of columns 2 does not match"),
        (
            lambda: reach_of_tokens(STATES, W_X[:, :2], W_H),
            "w_x's number of columns 2 does not match the states' width 4",
        ),
        (lambda: list(jacobians(STATES * np.nan, W_X, W_H)), "states must hold finite numbers"),
        (lambda: costs(0, 4), "seq_len must be a whole number of at least 1, not 0"),
        (lambda: costs(4, 0), "d_model must be a whole number of at least 1, not 0"),
        (lambda: costs(4.0, 4), "seq_len must be a whole number of at least 1, not 4.0"),  # type: ignore[arg-type]
        (lambda: costs_by_length(0, 2, 4), "seq_len must be a whole number of at least 1, not 0"),
        (lambda: costs_by_length(2, 2, 0), "d_model must be a whole number of at least 1, not 0"),
        (lambda: list(time_both([4], 4, 0, repeats=0)), "repeats must be a whole number of at least 1, not 0"),
        (lambda: list(time_both([0], 4, 0)), "seq_len must be"),
        (lambda: list(time_both([4], 0, 0)), "d_model must be"),
    ],
)
def test_refuses(call: Callable[[], object], words: str, refusal: Refusal) -> None:
    assert words in refusal(call)
