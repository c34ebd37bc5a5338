"""The regressions behind a certificate: rows, penalties and the predicted differences between arms, in chunks of steps.

Rewards are divided by the noise scale R_a of their arm, so the noise of every regression has sd 1. Lags before the
first step are 0, which is exact from a steady start. docs/theory.md, section 15, derives the three models.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Arms = NDArray[np.int64]
CHUNK = 1 << 15  # steps whose features are in memory at once


class Assumptions(NamedTuple):
    """What a certificate assumes to be known about the world, besides the model."""

    noise: Floats  # (arms,) R_a, or a guess of it if the noise is unknown
    weight: float  # bound on Σ_j g_j² decay^{−2j}, above 0
    level: float  # bound on |m_a|/R_a, where m_a is the long-run mean reward of arm a
    bias: float  # bound on the norm of the biases of all steps, divided by R_a
    beta: Floats  # (arms,) used by the model "known" only
    centre: Floats  # (arms,) m_a, used by the model "known" only


class Settings(NamedTuple):
    """Number of lags and the penalties; every choice is valid."""

    s: int
    ridge: float
    decay: float


class Regression:
    """Base class: one or more ridge regressions whose parameters give the differences between predicted rewards.

    r̃_t(a) − r̃_t(a_t) = value(a) − value(a_t) + constant, where value(a) is linear in the parameters of regression
    `owner[a]`.
    """

    owner: list[int]  # the regression of each arm's value
    penalty: Floats  # diagonal of Λ
    squared_size: float  # bound on ‖θ‖²_Λ

    def __init__(self, arms: Arms, rewards: Floats, known: Assumptions, settings: Settings) -> None:
        self.arms, self.rewards, self.known, self.settings = arms, rewards, known, settings
        self.count = known.noise.size
        lags = np.arange(settings.s, dtype=np.float64)
        self._lag_penalty = np.asarray(settings.ridge / known.weight * settings.decay ** (-2.0 * lags), np.float64)
        self._level_penalty = settings.ridge / known.level**2

    def chunks(self) -> Iterator[slice]:
        """Yield consecutive slices of all steps."""
        for low in range(0, self.arms.size, CHUNK):
            yield slice(low, min(low + CHUNK, self.arms.size))

    def features(self, steps: slice) -> Floats:
        """Return the features of a chunk that all arms share."""
        raise NotImplementedError

    def rows(self, regression: int, steps: slice, features: Floats) -> tuple[Floats, Floats]:
        """Return the rows of a regression in a chunk, and their targets."""
        raise NotImplementedError

    def gradient(self, arm: int, steps: slice, features: Floats) -> Floats:
        """Return the gradient of value(arm) at each step of a chunk."""
        raise NotImplementedError

    def constant(self, steps: slice) -> Floats:
        """Return the known part of r̃_t(a) − r̃_t(a_t), (steps, arms)."""
        return np.zeros((steps.stop - steps.start, self.count))

    def _lagged(self, values: Floats, steps: slice) -> Floats:
        """Return the last s rows of `values` before each step, latest first, (steps, s·columns)."""
        s, size = self.settings.s, steps.stop - steps.start
        block = np.zeros((size, s, values.shape[1]))
        for j in range(s):
            first = max(j + 1 - steps.start, 0)
            if first < size:
                block[first:, j] = values[steps.start + first - 1 - j : steps.stop - 1 - j]
        return block.reshape(size, -1)


class Separate(Regression):
    """One regression for each arm, as in LARL: rewards and indicators of the last s steps, and an intercept."""

    def __init__(self, arms: Arms, rewards: Floats, known: Assumptions, settings: Settings) -> None:
        super().__init__(arms, rewards, known, settings)
        self.owner = list(range(self.count))
        per_arm = np.repeat(self._lag_penalty, self.count)
        self.penalty = np.concatenate([per_arm, per_arm / known.level**2, [self._level_penalty]])
        self.squared_size = settings.ridge * (2.0 * self.count + 1.0)
        self._indicators = np.eye(self.count)[arms]
        self._rewards = self._indicators * (rewards / known.noise[arms])[:, None]

    def features(self, steps: slice) -> Floats:
        ones = np.ones((steps.stop - steps.start, 1))
        return np.hstack([self._lagged(self._rewards, steps), self._lagged(self._indicators, steps), ones])

    def rows(self, regression: int, steps: slice, features: Floats) -> tuple[Floats, Floats]:
        played = self.arms[steps] == regression
        return features[played], self.rewards[steps][played] / self.known.noise[regression]

    def gradient(self, arm: int, steps: slice, features: Floats) -> Floats:  # noqa: ARG002
        gradient: Floats = self.known.noise[arm] * features
        return gradient


class Shared(Regression):
    """One regression for all arms, for given signs of β: scaled rewards of the last s steps, indicators, intercepts."""

    def __init__(
        self, arms: Arms, rewards: Floats, known: Assumptions, settings: Settings, signs: tuple[float, ...]
    ) -> None:
        super().__init__(arms, rewards, known, settings)
        self.owner = [0] * self.count
        per_arm = np.repeat(self._lag_penalty, self.count) / known.level**2
        self.penalty = np.concatenate([self._lag_penalty, per_arm, np.full(self.count, self._level_penalty)])
        self.squared_size = settings.ridge * (1.0 + 2.0 * self.count)
        self.signs, self._scale = signs, np.array(signs) * known.noise
        self._indicators = np.eye(self.count)[arms]
        self._scaled = (rewards / self._scale[arms])[:, None]

    def features(self, steps: slice) -> Floats:
        return np.hstack([self._lagged(self._scaled, steps), self._lagged(self._indicators, steps)])

    def rows(self, regression: int, steps: slice, features: Floats) -> tuple[Floats, Floats]:  # noqa: ARG002
        return np.hstack([features, self._indicators[steps]]), self._scaled[steps, 0]

    def gradient(self, arm: int, steps: slice, features: Floats) -> Floats:
        played = self._scale[self.arms[steps]]
        intercepts = -played[:, None] * self._indicators[steps]
        intercepts[:, arm] += self._scale[arm]
        return np.hstack([(self._scale[arm] - played)[:, None] * features, intercepts])


class Known(Regression):
    """One regression for all arms if β and the long-run mean rewards are known: y of the last s steps."""

    def __init__(self, arms: Arms, rewards: Floats, known: Assumptions, settings: Settings) -> None:
        super().__init__(arms, rewards, known, settings)
        self.owner, self.penalty = [0] * self.count, self._lag_penalty
        self.squared_size = settings.ridge
        self._scale = np.sign(known.beta) * known.noise
        self._scaled = ((rewards - known.centre[arms]) / self._scale[arms])[:, None]

    def features(self, steps: slice) -> Floats:
        return self._lagged(self._scaled, steps)

    def rows(self, regression: int, steps: slice, features: Floats) -> tuple[Floats, Floats]:  # noqa: ARG002
        return features, self._scaled[steps, 0]

    def gradient(self, arm: int, steps: slice, features: Floats) -> Floats:
        gradient: Floats = (self._scale[arm] - self._scale[self.arms[steps]])[:, None] * features
        return gradient

    def constant(self, steps: slice) -> Floats:
        return self.known.centre - self.known.centre[self.arms[steps]][:, None]


def candidates(model: str, arms: Arms, rewards: Floats, known: Assumptions, settings: Settings) -> list[Regression]:
    """Return the regressions of a model, one of which is true: "shared" has one for each choice of signs."""
    if model == "separate":
        return [Separate(arms, rewards, known, settings)]
    if model == "known":
        return [Known(arms, rewards, known, settings)]
    others = product((1.0, -1.0), repeat=known.noise.size - 1)
    return [Shared(arms, rewards, known, settings, (1.0, *signs)) for signs in others]
