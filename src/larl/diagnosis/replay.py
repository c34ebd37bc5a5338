"""Simulate candidate policies in worlds fitted to the log, all with the same random numbers.

Rewards of the fitted worlds have the log's unit and offset. A candidate is exactly the policy that the page prints. The
decisions of all candidates are invariant to unit and offset of the rewards.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import NamedTuple

import numpy as np

from larl._core.progress import Progress
from larl.diagnosis.estimates import Interval, PosteriorDraw
from larl.diagnosis.fitted_worlds import fitted_world, linear_world
from larl.diagnosis.kernels import Floats
from larl.diagnosis.short_repr import short_repr
from larl.policies import (
    LARL,
    UCB,
    AdaptiveLARL,
    Auto,
    DiscountedUCB,
    FilterOracle,
    KalmanOracle,
    Policy,
    SharedLARL,
    SlidingWindowUCB,
)
from larl.simulation.compare import compare
from larl.theory.lookback import predicted_regret

WORLDS = 15
PREDICTED_WORLDS = 3  # in which regret is predicted, to choose an s for the replays
MAX_HORIZON = 1000
MAX_TRIALS, MIN_TRIALS = 40, 4
STEP_BUDGET = 8000  # of a candidate in each world, for two arms
AUTO_STEP_BUDGET = 6000  # in all worlds; Auto takes about a hundred times as long as the others
MAX_CONTEXT = 101  # length of LARL's context
MAX_ARMS = 10  # with more, AdaptiveLARL, SharedLARL and Auto take minutes
LOOKBACKS = (1, 2, 3, 5, 8, 12)  # values of s
DISCOUNTS, WINDOWS = (0.9, 0.98), (10, 50)
KALMAN, PARTICLE = "Kalman filter, true parameters", "particle filter, true parameters"
ORACLES: dict[str, tuple[str, Policy]] = {  # by kind of rewards: name and policy
    "continuous": (KALMAN, KalmanOracle()),
    "binary": (PARTICLE, FilterOracle(particles=200)),
    "count": (PARTICLE, FilterOracle(particles=200)),
}
CLEARLY_WORSE_SHARE = 0.9  # of the worlds; a policy with more regret in this share is clearly worse


def policy_expression(spec: Policy) -> str:
    """Return the Python expression that creates a policy, without fields that have their default values."""
    given = [
        f"{field.name}={getattr(spec, field.name)!r}"
        for field in fields(spec)
        if field.default is MISSING or getattr(spec, field.name) != field.default
    ]
    return f"larl.{type(spec).__name__}({', '.join(given)})"


@dataclass(frozen=True, repr=False)
class ReplayResult:
    """Regret per step of every candidate in every fitted world, in units of the reward. Keys are Python expressions."""

    regret: Mapping[str, Floats]  # (worlds,) each
    log_regret: Floats  # (worlds,) of the log's own choices, in the same worlds
    lookbacks: Mapping[int, str]  # from s to the key of LARL(s)
    horizon: int
    notes: tuple[str, ...]
    oracle: str = KALMAN  # the key of the filter with true parameters

    def __repr__(self) -> str:
        return short_repr(self)

    @property
    def ranked(self) -> list[str]:
        """Candidates in order of mean regret, without the filter with true parameters."""
        names = (name for name in self.regret if name != self.oracle)
        return sorted(names, key=lambda name: self.regret_of(name).value)

    @property
    def best(self) -> str:
        """The candidate with the smallest mean regret."""
        return self.ranked[0]

    @property
    def not_clearly_worse(self) -> list[str]:
        """Candidates that the best beats in fewer than 90% of the fitted worlds."""
        return [name for name in self.ranked[1:] if not self._is_clearly_worse(name, self.best)]

    @property
    def best_s(self) -> int | None:
        """The s with which LARL has the smallest mean regret; None if LARL was not replayed."""
        return min(self.lookbacks, key=lambda s: self.regret_of(self.lookbacks[s]).value, default=None)

    @property
    def good_s(self) -> list[int]:
        """All s with which LARL is not clearly worse than with `best_s`."""
        if self.best_s is None:
            return []
        best = self.lookbacks[self.best_s]
        return [s for s, name in self.lookbacks.items() if not self._is_clearly_worse(name, best)]

    def _is_clearly_worse(self, name: str, other: str) -> bool:
        """Whether `other` has less regret than `name` in 90% of the worlds."""
        return name != other and bool(np.mean(self.regret[other] < self.regret[name]) >= CLEARLY_WORSE_SHARE)

    def saving_of(self, name: str) -> Interval:
        """Return the regret per step that a candidate saves compared with the log's own choices."""
        return world_interval(self.log_regret - self.regret[name])

    def regret_of(self, name: str) -> Interval:
        """Return a candidate's regret per step."""
        return world_interval(self.regret[name])


def world_interval(sample: Floats) -> Interval:
    """Return the mean over worlds, by which candidates are ranked, and the central 95%."""
    low, high = np.quantile(sample, [0.025, 0.975])
    return Interval(float(sample.mean()), float(low), float(high))


def predicted_lookback(draws: Sequence[PosteriorDraw], rows: int) -> int:
    """Return the s with the smallest predicted regret of LARL in the worlds of the first draws, made linear."""
    worlds = [linear_world(fitted_world(draw)) for draw in draws[:PREDICTED_WORLDS]]
    horizon = min(max(rows, 2), MAX_HORIZON)
    accepted = range(min((MAX_CONTEXT - 1) // (2 * worlds[0].arms), max(LOOKBACKS)) + 1)
    return min(accepted, key=lambda s: sum(predicted_regret(world, s, horizon) for world in worlds))


def candidates(arms: int, lookback: int) -> list[Policy]:
    """Return the policies to simulate, all invariant to unit and offset of rewards; LARL also with s = `lookback`."""
    policies: list[Policy] = [UCB(standardise=True)]
    policies += [DiscountedUCB(discount, standardise=True) for discount in DISCOUNTS]
    policies += [SlidingWindowUCB(window, standardise=True) for window in WINDOWS]
    lookbacks = sorted({*LOOKBACKS, lookback} - {0})
    policies += [LARL(s, standardise=True) for s in lookbacks if 2 * s * arms + 1 <= MAX_CONTEXT]
    return [*policies, AdaptiveLARL(), SharedLARL()] if arms <= MAX_ARMS else policies


class ReplaySize(NamedTuple):
    """Number of steps and trials of a replay."""

    horizon: int
    trials: int
    auto_trials: int  # 0 if Auto is left out


def replay_size(worlds: int, arms: int, rows: int) -> ReplaySize:
    """Return steps and trials of a replay; fewer trials for many arms or steps."""
    horizon = int(min(max(rows, 2), MAX_HORIZON))
    trials = int(np.clip(min(MAX_TRIALS, STEP_BUDGET // horizon) * 2 // arms, MIN_TRIALS, MAX_TRIALS))
    auto_trials = int(np.clip(2 * AUTO_STEP_BUDGET // (arms * horizon * worlds), 1, trials))
    return ReplaySize(horizon, trials, auto_trials if arms <= MAX_ARMS else 0)


def replay_policies(
    draws: Sequence[PosteriorDraw], lookback: int, rows: int, *, seed: int, threads: int | None, bar: Progress
) -> ReplayResult:
    """Simulate every candidate in the worlds of the first draws, for as many steps as the log has."""
    worlds = {f"{i}": fitted_world(draw) for i, draw in enumerate(draws[:WORLDS])}
    oracle, oracle_policy = ORACLES[draws[0].kind]
    arms = len(draws[0].parameters.mu[0])
    horizon, trials, auto_trials = replay_size(len(worlds), arms, rows)
    notes = [f"Replays are {horizon} steps long" + (", the median of the log's units." if rows == horizon else ".")]
    specs = candidates(arms, lookback)
    comparisons: list[tuple[dict[str, Policy], int]] = [
        ({policy_expression(spec): spec for spec in specs} | {oracle: oracle_policy}, trials)
    ]
    if auto_trials:
        comparisons.append(({policy_expression(Auto()): Auto()}, auto_trials))
        notes.append(
            f"Each candidate was simulated in {trials} trials in each of {len(worlds)} worlds. Auto, the slowest, was "
            f"simulated in {auto_trials}; its regret is corrected by the {oracle.split()[0]} filter's regret on the "
            "same trials."
        )
    else:
        notes.append(
            f"AdaptiveLARL, SharedLARL and Auto are left out: with more than {MAX_ARMS} arms they take minutes."
        )
    regret: dict[str, Floats] = {}
    reference = np.zeros((0, 0))  # (worlds, trials) regret of the filter with true parameters
    for policies, count in comparisons:
        result = compare(policies, worlds, horizon=horizon, trials=count, seed=seed, threads=threads, progress=bar)
        total = result.total().transpose("policy", "world", "trial") / horizon
        reference = total.sel(policy=oracle).values if oracle in policies else reference
        # Control variate: all policies share the random numbers of a trial, so the filter's regret on the first trials,
        # compared with all trials, shows how easy the first trials are.
        correction = reference[:, :count].mean(axis=1) - reference.mean(axis=1)
        regret |= {name: total.sel(policy=name).values.mean(axis=1) - correction for name in policies}
    regret[oracle] = regret.pop(oracle)  # last, as in every table
    lookbacks = {spec.s: policy_expression(spec) for spec in specs if isinstance(spec, LARL)}
    log_regret = np.array([draw.log_regret for draw in draws[:WORLDS]])
    return ReplayResult(regret, log_regret, lookbacks, horizon, tuple(notes), oracle)


def total_steps(draws: int, arms: int, lookback: int, rows: int) -> int:
    """Return the number of simulated steps of a replay, for a progress bar."""
    worlds = min(draws, WORLDS)
    horizon, trials, auto_trials = replay_size(worlds, arms, rows)
    return worlds * horizon * ((len(candidates(arms, lookback)) + 1) * trials + auto_trials)
