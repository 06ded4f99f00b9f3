"""The questions that core asks of its input, and the sentences with which it refuses."""

from collections.abc import Callable

import numpy as np
import pytest

from core import checks

Refusal = Callable[[Callable[[], object]], str]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1.0, 2.0], "x needs at least 2 axes and has shape (2,)."),
        (7, "x needs at least 2 axes and has shape ()."),
        (np.empty((0, 3)), "x is empty: its shape is (0, 3)."),
        (np.empty((3, 0)), "x is empty: its shape is (3, 0)."),
        ([[np.nan, 1, np.inf]], "x must hold finite numbers, but 2 of its 3 are not."),
        ([[1, 2], [3]], "x is not an array of numbers."),
        ([["1", "2"]], "x must hold real numbers, not <U1."),
        ([[1j]], "x must hold real numbers, not complex128."),
        ([[10**400]], "x must hold real numbers, not object."),
        ([[None]], "x must hold real numbers, not object."),
        (None, "x must hold real numbers, not object."),
        ([[np.datetime64("2026-11-29")]], "x must hold real numbers, not datetime64[D]."),
    ],
)
def test_matrix_refuses(values: object, words: str, refusal: Refusal) -> None:
    assert refusal(lambda: checks.matrix("x", values)) == words  # type: ignore[arg-type]


def test_matrix_can_insist_on_the_number_of_axes(refusal: Refusal) -> None:
    assert refusal(lambda: checks.matrix("x", np.ones((2, 2, 2)), axes=2)) == "x needs 2 axes and has shape (2, 2, 2)."
    assert checks.matrix("x", np.ones((2, 2, 2)), axes=3).shape == (2, 2, 2)


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [(np.float64, np.float64), (np.float32, np.float32), (np.float16, np.float64), (np.int8, np.float64)],
)
def test_matrix_keeps_float32_and_float64(dtype: type, kept: type) -> None:
    assert checks.matrix("x", np.ones((1, 2), dtype=dtype)).dtype == kept


def test_matrix_does_not_copy_what_is_right_already() -> None:
    x = np.ones((2, 3))
    assert checks.matrix("x", x) is x


@pytest.mark.parametrize("value", [0, -1, 5.0, 1.5, True, "5", None, np.nan, np.float64(3), np.array([2])])
def test_at_least_takes_whole_numbers_only(value: object, refusal: Refusal) -> None:
    sentence = refusal(lambda: checks.at_least("seq_len", value, 1))  # type: ignore[arg-type]
    assert sentence == f"seq_len must be a whole number of at least 1, not {value}."


def test_at_least_takes_numpys_whole_numbers() -> None:
    found = checks.at_least("seq_len", np.int64(5), 1)  # type: ignore[arg-type]
    assert found == 5
    assert type(found) is int


@pytest.mark.parametrize("value", [0, 0.0, -2.5, np.nan, np.inf, -np.inf, "1", None, 1j, np.array([1.0])])
def test_positive_takes_finite_numbers_above_zero(value: object, refusal: Refusal) -> None:
    assert "the temperature must be a finite number" in refusal(
        lambda: checks.positive("the temperature", value)  # type: ignore[arg-type]
    )


def test_divides_names_both_numbers(refusal: Refusal) -> None:
    assert checks.divides(8, 512) == 64
    assert checks.divides(1, 5) == 5
    assert refusal(lambda: checks.divides(4, 10)) == "d_model 10 is not divisible by 4 heads."
    assert refusal(lambda: checks.divides(16, 8)) == "d_model 8 is not divisible by 16 heads."
    assert "the number of heads must be" in refusal(lambda: checks.divides(0, 8))
    assert "the number of heads must be" in refusal(lambda: checks.divides(2.0, 8))  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0], [[1.0, 2.0, 3.0]], [[1.0], [2.0], [3.0]]])
def test_vector_takes_one_number_per_column_or_one_for_all(values: list[float], refusal: Refusal) -> None:
    assert "b_q has shape" in refusal(lambda: checks.vector("b_q", np.array(values), 3))
    assert checks.vector("b_q", 0.5, 3) == 0.5
