"""A forecaster that sees the rewards of all arms: ridge regression on their last rewards, in plain NumPy.

It is no bandit: a bandit sees only the reward of the arm that it plays. It shows how much of the next step the past of
the same window predicts by a linear model.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SMALLEST = 1e-300  # variance of a context that is not constant


def forecast_arms(windows: Floats, lags: int, ridge: float) -> NDArray[np.int64]:
    """Return the arm with the largest forecast at every step, (windows, steps).

    The context of a step is the last `lags` rewards of all arms. For every arm, a ridge regression on the earlier steps
    of the window forecasts its reward. It has an intercept without penalty; the penalty of the slopes is `ridge` times
    the mean variance of the context, so neither the location nor the unit of the rewards matters. A missing reward is
    replaced by the arm's mean so far. Before two contexts are known, the forecast is the arm's mean so far. An arm
    without a reward so far is not played; of equal forecasts the first arm is.

    Parameters
    ----------
    windows : array (windows, steps, arms)
        The rewards; nan where missing.
    lags : int, >= 1
        Number of past steps in the context.
    ridge : float, > 0
        Penalty, in steps: with as many steps, slopes are shrunk by about one half.
    """
    count, steps, arms = windows.shape
    origin = _first_rewards(windows)
    state = _Sums(count, lags * arms, arms)
    seen, totals = np.zeros((count, arms)), np.zeros((count, arms))
    past = np.zeros((count, lags, arms))  # the last rewards, newest first
    chosen = np.zeros((count, steps), np.int64)
    for t in range(steps):
        context = past.reshape(count, -1)
        forecast = state.forecast(context, ridge) if t >= lags + 2 else totals / np.maximum(seen, 1.0)
        chosen[:, t] = np.where(seen > 0, forecast, -np.inf).argmax(axis=1)
        rewards = windows[:, t] - origin
        observed = np.isfinite(rewards)
        seen += observed
        totals += np.where(observed, rewards, 0.0)
        filled = np.where(observed, rewards, totals / np.maximum(seen, 1.0))
        if t >= lags:
            state.add(context, filled)
        past = np.concatenate([filled[:, None], past[:, :-1]], axis=1)
    return chosen


def _first_rewards(windows: Floats) -> Floats:
    """Return the first known reward of each window, (windows, 1): sums of differences to it cancel less."""
    flat = windows.reshape(len(windows), -1)
    first: Floats = np.nan_to_num(flat[np.arange(len(flat)), np.isfinite(flat).argmax(axis=1)])
    return first[:, None]


class _Sums:
    """Sums over past steps: of contexts, rewards and their products."""

    def __init__(self, count: int, size: int, arms: int) -> None:
        self.steps = 0
        self.x, self.y = np.zeros((count, size)), np.zeros((count, arms))
        self.xx, self.xy = np.zeros((count, size, size)), np.zeros((count, size, arms))

    def add(self, context: Floats, rewards: Floats) -> None:
        """Add one step."""
        self.steps += 1
        self.x += context
        self.y += rewards
        self.xx += context[:, :, None] * context[:, None, :]
        self.xy += context[:, :, None] * rewards[:, None, :]

    def forecast(self, context: Floats, ridge: float) -> Floats:
        """Return the forecast of every arm, (windows, arms)."""
        n, x, y = self.steps, self.x / self.steps, self.y / self.steps
        centred = self.xx - n * x[:, :, None] * x[:, None, :]
        variance = np.trace(centred, axis1=1, axis2=2) / (n * x.shape[1])
        penalty = np.where(variance > SMALLEST, ridge * variance, 1.0)
        system = centred + penalty[:, None, None] * np.eye(x.shape[1])
        slopes = np.linalg.solve(system, self.xy - n * x[:, :, None] * y[:, None, :])
        forecast: Floats = y + np.einsum("ws,wsa->wa", context - x, slopes)
        return forecast
