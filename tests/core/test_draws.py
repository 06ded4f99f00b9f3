"""Draws: the same seed gives the same numbers, and nothing changes that was not asked to."""

from collections.abc import Callable

import numpy as np
import pytest

from core import draws

Refusal = Callable[[Callable[[], object]], str]

SEEDS = (0, 1, 2026, 2**32 - 1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make", [draws.tokens, draws.memory_tokens, draws.position_table])
def test_a_longer_sequence_keeps_the_earlier_rows(make: Callable[[int, int, int], np.ndarray], seed: int) -> None:
    longest = make(64, 6, seed)
    for seq_len in (1, 4, 5, 6, 63):
        np.testing.assert_array_equal(make(seq_len, 6, seed), longest[:seq_len])


def test_tokens_and_weights_are_the_stream_of_the_lesson() -> None:
    """Five rows, then the matrices, one after the other, whatever the seed, the width and the length asked for."""
    stream = np.random.RandomState(7)
    np.testing.assert_array_equal(draws.tokens(9, 4, 7)[:5], stream.randn(5, 4))
    w = draws.attention_weights(4, 7, 0.5)
    for matrix in (w.w_q, w.w_k, w.w_v):
        np.testing.assert_array_equal(matrix, stream.randn(4, 4) * 0.5)


def test_a_block_continues_the_stream_with_the_feed_forward_layer() -> None:
    stream = np.random.RandomState(7)
    stream.randn(5 * 4 + 3 * 4 * 4)
    attention, feed = draws.block_weights(4, 6, 7, 0.2)
    np.testing.assert_array_equal(feed.w_1, stream.randn(4, 6) * 0.2)
    np.testing.assert_array_equal(feed.w_2, stream.randn(6, 4) * 0.2)
    np.testing.assert_array_equal(feed.b_1, np.zeros(6))
    np.testing.assert_array_equal(feed.b_2, np.zeros(4))
    alone = draws.attention_weights(4, 7, 0.2)
    for name in ("w_q", "w_k", "w_v", "w_o"):
        np.testing.assert_array_equal(getattr(attention, name), getattr(alone, name))


def test_a_word_has_one_vector_wherever_it_stands() -> None:
    rows = draws.words(["the", "dog", "bites", "the", "man"], 8, 3)
    np.testing.assert_array_equal(rows[0], rows[3])
    np.testing.assert_array_equal(draws.words(["man", "the"], 8, 3), rows[[4, 0]])
    assert len(np.unique(rows.round(12), axis=0)) == 4


def test_a_words_vector_depends_on_the_seed_and_on_every_letter() -> None:
    row = draws.words(["Dog"], 8, 3)
    for other in (draws.words(["dog"], 8, 3), draws.words(["Dog"], 8, 4), draws.words(["Dog "], 8, 3)):
        assert np.abs(row - other).max() > 0.1


def test_any_string_can_be_a_word() -> None:
    assert np.isfinite(draws.words(["", "<b>", "é", "\ud800", "犬", "👩\u200d👧"], 4, 0)).all()


def test_the_same_numbers_on_every_machine() -> None:
    """Links must show the same picture everywhere: these numbers may change only on purpose."""
    w_o = draws.attention_weights(2, 0, 1.0).w_o
    later_block = draws.block_weights(2, 2, 0, 1.0, 3)[1]
    for computed, pinned in (
        (draws.tokens(6, 2, 0)[5], [-3.8066885920569278, 0.15953457571384078]),
        (draws.words(["犬"], 2, 0)[0], [0.170057297105273, -1.255335870254102]),
        (w_o[0], [1.544631819995647, -1.4235568746845857]),
        (later_block.w_2[0], [0.747462559994997, 0.7108616319137403]),
    ):
        np.testing.assert_allclose(computed, pinned, rtol=1e-12)


def test_no_two_kinds_of_draw_share_numbers() -> None:
    seed, d = 5, 4
    later = [draws.block_weights(d, d, seed, 1.0, block) for block in range(3)]
    arrays = [
        draws.tokens(9, d, seed),
        draws.words(["a", "b"], d, seed),
        draws.memory_tokens(9, d, seed),
        draws.position_table(9, d, seed) / np.sqrt(0.5),
        *(w for block, _ in later for w in (block.w_q, block.w_k, block.w_v, block.w_o)),
        *(w for _, feed in later for w in (feed.w_1, feed.w_2)),
        draws.output_projection(d, d, seed) * np.sqrt(d),
        *(w * np.sqrt(d) for w in draws.recurrent_weights(d, seed, 1.0)),
    ]
    numbers = np.concatenate([array.ravel() for array in arrays]).round(9)
    assert len(np.unique(numbers)) == len(numbers)


def test_scales() -> None:
    d = 200
    assert draws.attention_weights(d, 0, 0.3).w_q.std() == pytest.approx(0.3, rel=0.02)
    assert draws.output_projection(50, d, 0).std() == pytest.approx(50**-0.5, rel=0.02)
    w_x, w_h = draws.recurrent_weights(d, 0, 1.5)
    assert w_x.std() == pytest.approx(d**-0.5, rel=0.02)
    assert w_h.std() == pytest.approx(1.5 * d**-0.5, rel=0.02)
    lengths = np.linalg.norm(draws.position_table(100, d, 0), axis=1)
    assert lengths.mean() == pytest.approx(np.sqrt(d / 2), rel=0.02)


def test_draws_leave_the_global_generator_alone() -> None:
    before = np.random.get_state()[1].copy()  # type: ignore[index]
    draws.tokens(9, 4, 0)
    draws.block_weights(4, 4, 0, 0.2)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # type: ignore[index]


MAKERS: dict[str, Callable[[int, int], object]] = {
    "tokens": lambda d_model, seed: draws.tokens(3, d_model, seed),
    "words": lambda d_model, seed: draws.words(["a"], d_model, seed),
    "memory_tokens": lambda d_model, seed: draws.memory_tokens(3, d_model, seed),
    "attention_weights": lambda d_model, seed: draws.attention_weights(d_model, seed, 1.0),
    "output_projection": lambda d_model, seed: draws.output_projection(3, d_model, seed),
    "block_weights": lambda d_model, seed: draws.block_weights(d_model, 3, seed, 1.0),
    "later_block": lambda d_model, seed: draws.block_weights(d_model, 3, seed, 1.0, 2),
    "position_table": lambda d_model, seed: draws.position_table(3, d_model, seed),
    "recurrent_weights": lambda d_model, seed: draws.recurrent_weights(d_model, seed, 1.0),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_every_draw_checks_width_and_seed(make: Callable[[int, int], object], refusal: Refusal) -> None:
    assert refusal(lambda: make(0, 0)) == "d_model must be a whole number of at least 1, not 0."
    assert refusal(lambda: make(4, -1)) == "the seed must be a whole number of at least 0, not -1."
    assert refusal(lambda: make(4, 2**32)) == "the seed must be at most 4294967295, not 4294967296."
    assert "the seed must be a whole number" in refusal(lambda: make(4, 1.0))  # type: ignore[arg-type]
    make(np.int64(4), np.int64(3))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: draws.tokens(0, 4, 0), "seq_len must be a whole number of at least 1, not 0"),
        (lambda: draws.tokens(5.0, 4, 0), "seq_len must be a whole number of at least 1, not 5.0"),  # type: ignore[arg-type]
        (lambda: draws.memory_tokens(0, 4, 0), "seq_len must be"),
        (lambda: draws.position_table(-3, 4, 0), "seq_len must be"),
        (lambda: draws.words([], 4, 0), "A sentence needs at least one word"),
        (lambda: draws.output_projection(0, 4, 0), "width must be"),
        (lambda: draws.block_weights(4, 0, 0, 1.0), "d_ff must be"),
        (lambda: draws.block_weights(4, 4, 0, 1.0, -1), "block must be"),
        (lambda: draws.block_weights(4, 4, 0, np.nan), "scale must be a finite number, not nan"),
        (lambda: draws.attention_weights(4, 0, np.inf), "scale must be a finite number, not inf"),
        (lambda: draws.recurrent_weights(4, 0, np.nan), "gain must be a finite number, not nan"),
    ],
)
def test_refuses(call: Callable[[], object], words: str, refusal: Refusal) -> None:
    assert words in refusal(call)
