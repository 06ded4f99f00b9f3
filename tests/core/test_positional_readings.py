"""What the page on positional encoding reads off its encodings: nearest pairs, diagonals, new orders."""

import numpy as np
import pytest

from core import draws, positional


def test_waves_pass_through_the_encoding_at_whole_positions():
    between = positional.waves(np.arange(0, 10, 0.25), 7)

    np.testing.assert_array_equal(between[::4], positional.sinusoidal(10, 7))
    np.testing.assert_allclose(between[1, :2], [np.sin(0.25), np.cos(0.25)], rtol=1e-15)


@pytest.mark.parametrize("positions", [[np.nan], [], [[[1.0]]]])
def test_waves_refuse_what_is_no_position(positions):
    with pytest.raises(ValueError, match="positions"):
        positional.waves(np.array(positions), 4)


def test_the_closest_encodings_of_two_dimensions_are_44_apart():
    """44 is nearly seven times 2π."""
    assert positional.closest(positional.sinusoidal(128, 2)) == pytest.approx((0, 44, abs(44 - 14 * np.pi)), rel=1e-4)


def test_a_single_encoding_has_no_neighbour():
    assert positional.closest(np.ones((1, 4))) is None


def test_equal_encodings_are_no_distance_apart():
    assert positional.closest(np.array([[0.0, 1.0], [3.0, 0.1], [3.0, 0.1]])) == (1, 2, 0.0)


def test_by_offset_reads_diagonals():
    read = positional.by_offset(np.array([[1.0, 2.0, 9.0], [4.0, 3.0, 6.0], [7.0, 8.0, 5.0]]))

    assert read.offsets.tolist() == [-2, -1, 0, 1, 2]
    assert read.mean.tolist() == [7, 6, 3, 4, 9]
    assert read.low.tolist() == [7, 4, 1, 2, 9]
    assert read.high.tolist() == [7, 8, 5, 6, 9]
    assert read.spread == 4


def test_by_offset_refuses_a_matrix_that_is_not_square():
    with pytest.raises(ValueError, match="the number of rows 2 does not match the number of columns 3"):
        positional.by_offset(np.ones((2, 3)))


def test_similarity_depends_on_the_offset_alone_and_rises_again():
    read = positional.by_offset(positional.similarity(positional.sinusoidal(50, 32)))

    assert read.spread < 1e-12
    np.testing.assert_allclose(read.mean, read.mean[::-1], atol=1e-12)
    assert positional.rises_again(read.mean[49:]) == 5
    assert positional.rises_again(np.array([3.0, 2.0, 1.0])) is None


@pytest.mark.parametrize("d_model", [2, 3, 8, 9])
def test_rotary_waves_are_the_angles_that_turn(d_model):
    waves = positional.rotary_waves(6, d_model)
    ones = np.zeros((6, d_model))
    ones[:, 0 : waves.shape[1] : 2] = 1  # (1, 0) turned by an angle is (cosine, sine)

    turned = positional.rotate(ones)[:, : waves.shape[1]]
    np.testing.assert_allclose(waves[:, 0::2], turned[:, 1::2], atol=1e-15)
    np.testing.assert_allclose(waves[:, 1::2], turned[:, 0::2], atol=1e-15)


def test_rotary_scores_depend_on_the_difference_of_positions_alone():
    query, key = draws.tokens(2, 9, 0)
    scores = positional.rotary_scores(query, key, 12)

    assert scores[0, 0] == pytest.approx(query @ key)
    assert scores[3, 7] == pytest.approx(
        positional.rotate(query[None], np.array([3]))[0] @ positional.rotate(key[None], np.array([7]))[0]
    )
    assert positional.by_offset(scores).spread < 1e-12
    assert scores[0, 1] != pytest.approx(scores[1, 0])  # before and after differ


@pytest.mark.parametrize("kind", positional.PERMUTATIONS)
@pytest.mark.parametrize("n", [1, 2, 3, 64])
def test_a_permutation_orders_all_tokens_and_moves_some(kind, n):
    for seed in range(20):
        order = positional.permutation(kind, n, seed)
        assert sorted(order.tolist()) == list(range(n))
        assert n == 1 or order.tolist() != list(range(n))


def test_permutations_by_name():
    assert positional.permutation("reversed", 4, 0).tolist() == [3, 2, 1, 0]
    assert positional.permutation("first two swapped", 4, 0).tolist() == [1, 0, 2, 3]
    assert positional.permutation("rotated", 4, 0).tolist() == [3, 0, 1, 2]
    with pytest.raises(ValueError, match="sorted is none of the orders"):
        positional.permutation("sorted", 4, 0)


def test_equal_words_that_change_places_change_nothing():
    x = draws.words(["the", "cat", "the"], 4, 0)

    assert positional.changes_nothing(x, np.array([2, 1, 0]))
    assert not positional.changes_nothing(x, np.array([1, 0, 2]))


@pytest.mark.parametrize("heads", [1, 8])
def test_the_slope_of_alibi_can_be_chosen(heads):
    x, w = draws.tokens(6, 8, 0), draws.attention_weights(8, 0, 0.3)
    slope = float(positional.alibi_slopes(heads)[0])

    chosen = positional.attend_with_positions(x, w.w_q, w.w_k, w.w_v, "alibi", slope=slope)
    np.testing.assert_allclose(chosen.scaled - chosen.scores / np.sqrt(8), positional.alibi_bias(6, slope), atol=1e-13)


def test_shares_right_are_those_of_each_width():
    widths = (2, 16, 64)
    shares = positional.shares_right(widths, lambda d: draws.tokens(20, d, 0), lambda d: positional.sinusoidal(20, d))

    assert shares.tolist() == [
        positional.recover_positions(draws.tokens(20, d, 0), positional.sinusoidal(20, d)).share_right for d in widths
    ]
