"""What other policies would have lost: candidates played in worlds drawn from the fit, on the same random numbers.

The worlds pay rewards in the log's own units and at its level, and a candidate is exactly the policy that the page
prints. All candidates decide alike whatever the unit and the offset of the rewards are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import NamedTuple

import numpy as np

from larl._core.progress import Progress
from larl._core.validation import checked, numbers
from larl.diagnosis.brief import brief
from larl.diagnosis.estimates import Draw, Interval
from larl.diagnosis.kernels import Floats
from larl.policies import (
    LARL,
    UCB,
    AdaptiveLARL,
    Auto,
    DiscountedUCB,
    KalmanOracle,
    Policy,
    SharedLARL,
    SlidingWindowUCB,
)
from larl.simulation.compare import compare
from larl.worlds.latent_ar import LatentAR

WORLDS = 15
STEPS = 1000  # of a replay, at most
TRIALS, LEAST_TRIALS = 40, 4
BUDGET = 8000  # steps of a candidate in each world, for two arms
AUTO_STEPS = 6000  # in all: Auto takes some hundred times as long as the others
WIDEST = 101  # entries of LARL's context, at most
MANY_ARMS = 10  # beyond which AdaptiveLARL, SharedLARL and Auto take minutes
LOOKBACKS = (1, 2, 3, 5, 8, 12)  # values of s that are replayed
DISCOUNTS, WINDOWS = (0.9, 0.98), (10, 50)
KALMAN = "Kalman filter, true parameters"
CLEARLY = 0.9  # share of the worlds in which a policy must lose more to be clearly worse


@dataclass(frozen=True)
class Fitted(LatentAR):
    """A LatentAR whose arms have noises of their own: sd_a = `noises`[a]."""

    noises: Sequence[float] = checked(numbers(2), (1.0, 1.0))

    @property
    def sd(self) -> Floats:
        """The standard deviation of each arm's noise."""
        return np.array(self.noises)


def world_of(draw: Draw) -> Fitted:
    """The world of a draw in the log's units, from a stationary start; σ_z = 1, and the largest |β| is positive."""
    one = draw.setting
    beta = one.beta[0] * np.sqrt(one.shock[0])
    beta = beta * (np.sign(beta[np.abs(beta).argmax()]) or 1.0)
    return Fitted(
        gammas=one.gammas[0].tolist(),
        beta=beta.tolist(),
        mu=one.mu[0].tolist(),
        noise="common",
        noises=np.sqrt(one.variance[0]).tolist(),
    )


def code_of(spec: Policy) -> str:
    """The Python expression that makes a policy: its fields that have no default or another value than it."""
    given = [
        f"{field.name}={getattr(spec, field.name)!r}"
        for field in fields(spec)
        if field.default is MISSING or getattr(spec, field.name) != field.default
    ]
    return f"larl.{type(spec).__name__}({', '.join(given)})"


@dataclass(frozen=True, repr=False)
class Replay:
    """Regret a step of every candidate in every drawn world, in units of the reward. Keys are Python expressions."""

    regret: Mapping[str, Floats]  # (worlds,) each
    logged: Floats  # (worlds,) of the log's own choices, in the same worlds
    lookbacks: Mapping[int, str]  # s: the key of LARL with that s
    horizon: int
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return brief(self)

    @property
    def ranked(self) -> list[str]:
        """Candidates by mean regret, the least first: all but the filter that is told the truth."""
        return sorted((name for name in self.regret if name != KALMAN), key=lambda name: self.lost(name).value)

    @property
    def best(self) -> str:
        """The candidate of least mean regret."""
        return self.ranked[0]

    @property
    def as_good(self) -> list[str]:
        """Candidates that the best beats in fewer than 90% of the drawn worlds."""
        return [name for name in self.ranked[1:] if not self._worse(name, self.best)]

    @property
    def best_s(self) -> int | None:
        """The s with which LARL has the least mean regret; None where LARL was not replayed."""
        return min(self.lookbacks, key=lambda s: self.lost(self.lookbacks[s]).value, default=None)

    @property
    def good_s(self) -> list[int]:
        """All s with which LARL is not clearly worse than with the best."""
        if self.best_s is None:
            return []
        return [s for s, name in self.lookbacks.items() if not self._worse(name, self.lookbacks[self.best_s])]

    def _worse(self, name: str, other: str) -> bool:
        return name != other and bool(np.mean(self.regret[other] < self.regret[name]) >= CLEARLY)

    def saved(self, name: str) -> Interval:
        """What a candidate would have saved a step beside the log's own choices."""
        return over_worlds(self.logged - self.regret[name])

    def lost(self, name: str) -> Interval:
        """A candidate's regret a step."""
        return over_worlds(self.regret[name])


def over_worlds(sample: Floats) -> Interval:
    """The mean over worlds, by which candidates are ranked, and the middle 95%."""
    low, high = np.quantile(sample, [0.025, 0.975])
    return Interval(float(sample.mean()), float(low), float(high))


def candidates(arms: int, order: int) -> list[Policy]:
    """Policies to replay, none of which depends on offset and unit of rewards; LARL also with s = `order`."""
    found: list[Policy] = [UCB(standardise=True)]
    found += [DiscountedUCB(discount, standardise=True) for discount in DISCOUNTS]
    found += [SlidingWindowUCB(window, standardise=True) for window in WINDOWS]
    found += [LARL(s, standardise=True) for s in sorted({*LOOKBACKS, order} - {0}) if 2 * s * arms + 1 <= WIDEST]
    return [*found, AdaptiveLARL(), SharedLARL()] if arms <= MANY_ARMS else found


class Size(NamedTuple):
    """How much is replayed."""

    horizon: int
    trials: int
    auto_trials: int  # 0 where Auto is left out


def size_of(worlds: int, arms: int, rows: int) -> Size:
    """Steps and trials of a replay; fewer trials where there are many arms or steps."""
    horizon = int(min(max(rows, 2), STEPS))
    trials = int(np.clip(min(TRIALS, BUDGET // horizon) * 2 // arms, LEAST_TRIALS, TRIALS))
    auto = int(np.clip(2 * AUTO_STEPS // (arms * horizon * worlds), 1, trials))
    return Size(horizon, trials, auto if arms <= MANY_ARMS else 0)


def replay(draws: Sequence[Draw], order: int, rows: int, seed: int, threads: int | None, bar: Progress) -> Replay:
    """Every candidate in the worlds of the first draws, over the log's own number of steps."""
    worlds = {f"{i}": world_of(draw) for i, draw in enumerate(draws[:WORLDS])}
    arms = len(draws[0].setting.mu[0])
    horizon, trials, auto_trials = size_of(len(worlds), arms, rows)
    notes = [f"Replays are {horizon} steps long" + (", the median of the log's units." if rows == horizon else ".")]
    specs = candidates(arms, order)
    rounds: list[tuple[dict[str, Policy], int]] = [
        ({code_of(spec): spec for spec in specs} | {KALMAN: KalmanOracle()}, trials)
    ]
    if auto_trials:
        rounds.append(({code_of(Auto()): Auto()}, auto_trials))
        notes.append(
            f"Each candidate met {trials} trials in each of {len(worlds)} worlds. Auto, the slowest, met "
            f"{auto_trials}, corrected by what the filter lost on the same trials and on all."
        )
    else:
        notes.append(
            f"AdaptiveLARL, SharedLARL and Auto are left out: with more than {MANY_ARMS} arms they take minutes."
        )
    regret: dict[str, Floats] = {}
    reference = np.zeros((0, 0))  # (worlds, trials) of the filter
    for policies, count in rounds:
        result = compare(policies, worlds, horizon=horizon, trials=count, seed=seed, threads=threads, progress=bar)
        total = result.total().transpose("policy", "world", "trial") / horizon
        reference = total.sel(policy=KALMAN).values if KALMAN in policies else reference
        # The luck of a trial is the same for all, so the filter tells how lucky the first trials were.
        luck = reference[:, :count].mean(axis=1) - reference.mean(axis=1)
        regret |= {name: total.sel(policy=name).values.mean(axis=1) - luck for name in policies}
    regret[KALMAN] = regret.pop(KALMAN)  # last, as in every table
    lookbacks = {spec.s: code_of(spec) for spec in specs if isinstance(spec, LARL)}
    logged = np.array([draw.logged for draw in draws[:WORLDS]])
    return Replay(regret, logged, lookbacks, horizon, tuple(notes))


def steps_of(draws: int, arms: int, order: int, rows: int) -> int:
    """How many steps a replay plays, for a progress bar."""
    worlds = min(draws, WORLDS)
    horizon, trials, auto_trials = size_of(worlds, arms, rows)
    return worlds * horizon * ((len(candidates(arms, order)) + 1) * trials + auto_trials)
