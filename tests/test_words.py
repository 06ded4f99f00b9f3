"""Sentences about an attention map are true of its numbers, at the edges too."""

import re
from decimal import Decimal

import numpy as np
import pytest

from core import attention, draws
from ui import words

ALL_KEYS, TWO_KEYS = np.ones(3, dtype=bool), np.array([True, True, False])
QUERIES, KEYS = ["1 a", "2 b"], ["1 a", "2 b", "3 c (pad)"]


def test_one_largest_weight_is_named_several_are_counted():
    one = np.array([[0.2, 0.8, 0.0], [0.7, 0.3, 0.0]])
    assert words.strongest_link(one, QUERIES, KEYS) == "The largest weight: token 1 “a” looks at token 2 “b” with 0.80."
    shown_alike = np.array([[0.999, 0.001, 0.0], [0.0, 1.0, 0.0]])  # both are 1.00 in the cells
    assert words.strongest_link(shown_alike, QUERIES, KEYS) == (
        "The largest weight: token 2 “b” looks at token 2 “b” with 1.00."
    )
    alike = np.array([[1.0 - 1e-12, 0.0, 0.0], [0.0, 1.0, 0.0]])  # apart by rounding errors alone
    assert words.strongest_link(alike, QUERIES, KEYS) == (
        "The largest weight, 1.00, stands in 2 cells. One of them: token 2 “b” looks at token 2 “b”."
    )
    three_are_seen = np.array([[0.999, 0.001, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])  # and two are the largest
    assert words.strongest_link(three_are_seen, [*QUERIES, "3 c"], KEYS).startswith(
        "The largest weight, 1.00, stands in 2 cells, and after rounding in 1 more. One of them:"
    )
    assert "may look at anything" in words.strongest_link(np.zeros((2, 3)), QUERIES, KEYS)


def test_row_finding_names_one_key_counts_ties_and_bounds_the_entropy():
    assert words.row_finding(np.array([0.25, 0.75, 0]), "1 a", KEYS, 0.8113, TWO_KEYS) == (
        "Token 1 “a” looks most at token 2 “b”: 0.75. "
        "The entropy says how widely it looks: 0.81 bits, between 0 (one key takes all) and 1.00 (all 2 alike)."
    )
    assert words.row_finding(np.array([0.4, 0.4, 0.2]), "1 a", KEYS, 1.5, ALL_KEYS).startswith(
        "Token 1 “a” looks most at 2 keys alike (1 “a”, 2 “b”), 0.40 each."
    )
    assert words.row_finding(np.full(3, 1 / 3), "1 a", KEYS, 1.585, ALL_KEYS).startswith(
        "Token 1 “a” gives the same weight, 0.33, to each of 3 keys."
    )
    assert words.row_finding(np.array([0, 1.0, 0]), "1 a", KEYS, 0, np.array([False, True, False])) == (
        "Token 1 “a” may look at token 2 “b” alone. Its entropy is 0 bits."
    )
    assert "may look at nothing" in words.row_finding(np.zeros(3), "1 a", KEYS, 0, ~ALL_KEYS)
    underflown = words.row_finding(np.array([0.0, 1.0, 0.0]), "1 a", KEYS, 0, ALL_KEYS)  # it may look at all three
    assert underflown.endswith("0.00 bits, between 0 (one key takes all) and 1.58 (all 3 alike).")


def test_numbers_are_spelled_in_one_way():
    spelled = {0: "0", 0.0123456: "0.0123", -34.56: "−34.6", 0.5: "0.5", 4.0: "4", 123.4: "123", 999.7: "1,000"}
    spelled |= {45549.3: "45,549", 1.234e-7: "1.23 × 10⁻⁷", 1e-20: "1.00 × 10⁻²⁰", -2.07e32: "−2.07 × 10³²"}
    assert {value: words.number(value) for value in spelled} == spelled


def test_measured_numbers_keep_their_zeros():
    spelled = {0.9999995: "1.00", 0.05: "0.0500", 12.0: "12.0", -0.5: "−0.500", 123.4: "123", 0: "0", 2.0: "2.00"}
    spelled |= {45549.3: "45,549", 1e-20: "1.00 × 10⁻²⁰"}
    assert {value: words.three_digits(value) for value in spelled} == spelled
    assert [words.decimals(value, 3) for value in (-0.0001, -1.2346, 2.0)] == ["0.000", "−1.235", "2.000"]


def test_a_very_long_word_is_cut_in_a_sentence():
    assert words.token("1 " + "x" * 1000) == f"1 “{'x' * 39}…”"
    assert words.token("3 cat (pad)") == "3 “cat” (pad)"


def test_all_tokens_with_the_largest_value_are_named():
    assert words.largest_at(np.array([0.2, 0.8, 0.0]), KEYS) == "token 2 “b”"
    assert words.largest_at(np.array([0.4, 0.2, 0.4]), KEYS) == "tokens 1 “a” and 3 “c” (pad) alike"
    assert words.largest_at(np.ones(5), ["1", "2", "3", "4", "5"]) == "5 tokens alike (1, 2, 3, …)"


def test_scaled_scores_still_grow_with_the_width_as_the_sentence_says():
    x = {width: draws.tokens(40, width, 0) for width in (16, 64)}
    spread, alone = {}, {}
    for width, rows in x.items():
        w = draws.attention_weights(width, 0, 0.3)
        spread[width] = attention.self_attention(rows, w.w_q, w.w_k, w.w_v).scaled.std()
        alone[width] = (rows[:20] @ rows[20:].T / np.sqrt(width)).std()  # numbers that are as large at every width

    assert alone[64] / alone[16] == pytest.approx(1, abs=0.1)
    assert spread[64] / spread[16] == pytest.approx(4, rel=0.2)  # queries and keys have doubled
    assert "queries and keys themselves grow with d_model" in words.scaling(True, 64, 1)


def test_scaling_says_what_was_done_to_the_scores():
    assert words.scaling(True, 16, 1).startswith("Divided by √d_k = √16 = 4.00. A sum of d_k random products")
    off = words.scaling(False, 16, 0.5)
    assert "Divided by √d_k" not in off
    assert off.endswith("Then divided by the temperature, 0.5, which makes the rows sharper.")
    assert words.scaling(True, 16, 2).endswith("makes the rows more even.")


def test_masked_counts_what_is_hidden():
    assert "Nothing is hidden" in words.masked(np.ones((2, 3), dtype=bool))
    assert words.masked(np.tri(3, dtype=bool)).startswith("3 of 9 cells are set to −∞")


def test_weighted_sum_is_written_out_up_to_six_terms():
    weights, values = np.array([0.25, 0.75]), np.array([2.0, -1.0])
    written = words.weighted_sum(weights, values, -0.25, query=2)
    assert r"\text{output}_{2,1}" in written
    assert r"0.250 \cdot (2.000) + 0.750 \cdot (-1.000)" in written
    assert r"= -0.250 " in written
    assert r"\dots" not in written
    long = words.weighted_sum(np.full(7, 1 / 7), np.ones(7), 1.0, query=1)
    assert long.count(r"\cdot") == 6
    assert r"\dots" in long


def by_hand(latex: str) -> str:
    """The sum of the products that are written out, to three decimals."""
    pairs = re.findall(r"(-?[\d.]+) \\cdot \((-?[\d.]+)\)", latex)
    total = round(float(sum(Decimal(weight) * Decimal(value) for weight, value in pairs)), 3) + 0.0
    return f"{total:.3f}".replace("-", "−")


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("size", [0.3, 30.0])
def test_a_sum_by_hand_gives_what_is_shown_or_what_is_said(seed, size):
    rng = np.random.default_rng(seed)
    weights, values = rng.dirichlet(np.ones(5)), size * rng.standard_normal(5)
    total = float(weights @ values)
    latex, said = words.weighted_sum(weights, values, total, 1), words.rounded_sum(weights, values, total)
    worked_out, shown = by_hand(latex), words.decimals(total, 3)
    assert f"= {shown.replace('−', '-')} " in latex
    assert (not said) == (worked_out == shown)
    assert not said or said == (
        f"Worked out with these rounded numbers it is {worked_out}. The page computes with all digits: {shown}."
    )


def test_a_sum_that_is_not_written_out_needs_no_check():
    rng = np.random.default_rng(0)
    assert not any(
        words.rounded_sum(weights, values, float(weights @ values))
        for weights, values in ((rng.dirichlet(np.ones(7)), rng.standard_normal(7)) for _ in range(50))
    )
