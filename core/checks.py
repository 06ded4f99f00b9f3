"""What every function of core asks of its input. Each failure is a ValueError of one sentence with the values."""

from math import isfinite

import numpy as np

Array = np.ndarray

_SMALL = 10_000  # numbers: for more, np.vdot would wake threads, which on a busy machine takes long


def numbers(name: str, values: Array | float) -> Array:
    """Return `values` as an array of floats; raise a ValueError for text, complex numbers, objects, ragged lists."""
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"{name} is not an array of numbers.") from error
    if array.dtype.kind not in "biuf":  # numpy would convert or cut the others silently
        raise ValueError(f"{name} must hold real numbers, not {array.dtype}.")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def matrix(name: str, values: Array, axes: int | None = None) -> Array:
    """Return `values` as a float array if its last two axes are a non-empty matrix of finite numbers.

    Float32 and float64 keep their precision; everything else becomes float64.

    Args:
        axes: how many axes there must be; None allows any number of leading ones.

    Raises:
        ValueError: not real numbers, another number of axes, an empty axis, NaN or infinity.
    """
    array = numbers(name, values)
    if array.ndim < 2 or axes not in (None, array.ndim):
        raise ValueError(f"{name} needs {axes or 'at least 2'} axes and has shape {array.shape}.")
    if 0 in array.shape:
        raise ValueError(f"{name} is empty: its shape is {array.shape}.")
    return all_finite(name, array)


def all_finite(name: str, array: Array) -> Array:
    """Return `array`, of floats, if it holds neither NaN nor infinity; raise a ValueError otherwise."""
    # The sum of squares is quick to take, and finite if all are, save for huge ones.
    if array.size <= _SMALL and isfinite(np.vdot(array, array)):
        return array
    if not np.isfinite(array).all():
        count = np.count_nonzero(~np.isfinite(array))
        raise ValueError(f"{name} must hold finite numbers, but {count} of its {array.size} are not.")
    return array


def projection(name: str, values: Array, width: int) -> Array:
    """Return `values` as a float matrix that rows of `width` numbers can be multiplied with.

    Raises:
        ValueError: no matrix as in `matrix`, or not `width` rows.
    """
    array = matrix(name, values, axes=2)
    same(f"{name}'s number of rows", array.shape[0], "the input's width", width)
    return array


def vector(name: str, values: Array | float, width: int) -> Array | float:
    """Return `values`, as they are, if they are `width` finite numbers or one for all.

    Raises:
        ValueError: another shape, not real numbers, NaN or infinity.
    """
    if isinstance(values, float) and isfinite(values):
        return values
    array = all_finite(name, numbers(name, values))
    if array.shape not in ((), (width,)):
        raise ValueError(f"{name} has shape {array.shape} and needs {width} numbers.")
    return values


def stretched(name: str, values: Array, shape: tuple[int, ...]) -> Array:
    """Return `values` broadcast to `shape`; raise a ValueError where they do not fit."""
    array = np.asarray(values)
    try:
        return np.broadcast_to(array, shape)
    except ValueError as error:
        raise ValueError(f"{name} has shape {array.shape} and the scores have shape {shape}.") from error


def same(left_name: str, left: object, right_name: str, right: object) -> None:
    """Raise a ValueError unless the two sizes are equal."""
    if left != right:
        raise ValueError(f"{left_name} {left} does not match {right_name} {right}.")


def at_least(name: str, value: int, low: int) -> int:
    """Return `value` if it is a whole number not below `low`; raise a ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < low:
        raise ValueError(f"{name} must be a whole number of at least {low}, not {value}.")
    return int(value)


def finite(name: str, value: float) -> float:
    """Return `value` if it is a finite number; raise a ValueError otherwise."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or not isfinite(value):
        raise ValueError(f"{name} must be a finite number, not {value}.")
    return float(value)


def positive(name: str, value: float) -> float:
    """Return `value` if it is a finite number above zero; raise a ValueError otherwise."""
    if finite(name, value) <= 0:
        raise ValueError(f"{name} must be a finite number above 0, not {value}.")
    return float(value)


def divides(heads: int, d_model: int) -> int:
    """Return d_k = d_model / heads, the width of one head.

    Raises:
        ValueError: heads or d_model is no whole number of at least 1, or heads does not divide d_model.
    """
    at_least("the number of heads", heads, 1)
    if at_least("d_model", d_model, 1) % heads:
        raise ValueError(f"d_model {d_model} is not divisible by {heads} heads.")
    return d_model // heads
