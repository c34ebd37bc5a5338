"""Memory layout of a block of particles: an array (rows, LANES) with one column per particle.

Each row holds one number of every particle in the block (structure of arrays). The layout depends only on the number
of arms and the largest order; populations of a smaller order leave rows unused.
"""

from typing import NamedTuple

import numpy as np

from larl._core.compile import inline

AR_STATE, INDEPENDENT_AR1, DAMPED_ROTATION = 0, 1, 2  # the forms that a model can have: see particle_kalman.py


class FieldOffsets(NamedTuple):
    """The first row of each field in a block."""

    arms: int
    order: int  # the largest p
    theta: int  # coordinates, defined in moves.py
    sign: int  # (arms) ±1, the sign of β
    phi: int  # (order) AR coefficients, or ρ cos ω and ρ sin ω
    beta: int  # (arms) loading on the state
    kappa: int  # (arms) loading on the second coordinate of a DAMPED_ROTATION
    noise_variance: int  # (arms) of the rewards
    start_variance: int  # of the state at the start
    level_variance: int  # of the arms' levels
    persistence: int  # one-step autocorrelation of the levels (INDEPENDENT_AR1)
    mean: int  # (arms + order) of the belief
    cov: int  # (triangle of arms + order) of the belief, packed
    log_det: int  # Σ log S over the observed rewards, S the variance of the prediction error
    squared_error: int  # Σ e²/S, e the prediction error
    window_start: int  # copy of mean … squared_error at the first step that can be replayed
    next_window_start: int  # the same at the first step of the next window
    log_lik_before: int  # log-likelihood without the last reward
    log_lik: int  # log-likelihood with it
    log_weight: int
    product: int  # product of the last few S; from here on all rows are scratch
    tmp1: int
    tmp2: int
    tmp3: int
    work: int  # (arms + order)
    end: int


def field_offsets(arms: int, order: int) -> FieldOffsets:
    """Return the layout for particles of any order up to `order`."""
    size = arms + order
    filtered = size + size * (size + 1) // 2 + 2
    heights = {
        "theta": arms + 4 + max(order, arms + 2),
        "sign": arms,
        "phi": order,
        "beta": arms,
        "kappa": arms,
        "noise_variance": arms,
        "start_variance": 1,
        "level_variance": 1,
        "persistence": 1,
        "mean": size,
        "cov": size * (size + 1) // 2,
        "log_det": 1,
        "squared_error": 1,
        "window_start": filtered,
        "next_window_start": filtered,
        "log_lik_before": 1,
        "log_lik": 1,
        "log_weight": 1,
        "product": 1,
        "tmp1": 1,
        "tmp2": 1,
        "tmp3": 1,
        "work": size,
    }
    starts = np.concatenate([[0], np.cumsum(list(heights.values()))]).tolist()
    return FieldOffsets(arms, order, *starts)


class ModelKind(NamedTuple):
    """The model that all particles of a population share."""

    p: int  # AR order; 1 for INDEPENDENT_AR1, 2 for DAMPED_ROTATION
    form: int  # AR_STATE, INDEPENDENT_AR1 or DAMPED_ROTATION


@inline
def cov_index(i: int, j: int) -> int:
    """Return the row, counted from `cov`, of element (i, j) of a packed symmetric matrix."""
    high, low = max(i, j), min(i, j)
    return (high * (high + 1) >> 1) + low
