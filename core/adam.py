"""Adam, the optimiser of the training lab (Kingma & Ba 2015, "Adam: A Method for Stochastic Optimization")."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from core.checks import Array, positive, same


@dataclass(frozen=True)
class Adam:
    """What Adam remembers: steps taken, and the running means of the gradient and of its square, shaped as it."""

    steps: int
    mean: Array
    square: Array


def start(parameters: Array) -> Adam:
    """Before the first step: both means are zero."""
    return Adam(0, np.zeros_like(parameters), np.zeros_like(parameters))


def step(
    parameters: Array,
    gradient: Array,
    state: Adam,
    learning_rate: float,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    eps: float = 1e-8,
) -> tuple[Array, Adam]:
    """One step of algorithm 1: the new parameters and what to remember; nothing given is changed.

    m = β₁ m + (1 - β₁) g, v = β₂ v + (1 - β₂) g²; both start at 0 and are too small at first, which the division
    by 1 - βᵗ mends; θ = θ - α m̂ / (√v̂ + ε).

    Args:
        parameters, gradient: any one shape; a whole model fits into one vector. learning_rate: α.

    Raises:
        ValueError: shapes that differ, a learning rate that is not above 0.
    """
    same("the gradient's shape", gradient.shape, "the parameters' shape", parameters.shape)
    same("the state's shape", state.mean.shape, "the parameters' shape", parameters.shape)
    steps = state.steps + 1
    mean = state.mean * beta_1
    mean += gradient * (1 - beta_1)
    square = gradient * gradient
    square *= 1 - beta_2
    square += state.square * beta_2

    change = np.sqrt(square)
    change *= 1 / sqrt(1 - beta_2**steps)
    change += eps
    np.divide(mean, change, out=change)
    change *= positive("learning_rate", learning_rate) / (1 - beta_1**steps)
    return parameters - change, Adam(steps, mean, square)
