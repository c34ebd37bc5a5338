"""What other policies would have lost: candidates played in worlds drawn from the fit, on the same luck."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from larl._check import checked, numbers
from larl._progress import Progress
from larl.comparison import compare
from larl.diagnosis._kernels import Floats
from larl.diagnosis.estimates import Draw, Interval, interval
from larl.policies import LARL, UCB, AdaptiveLARL, Auto, DiscountedUCB, KalmanOracle, Policy
from larl.world import LatentAR

WORLDS = 15
STEPS = 200  # of a replay, at most
TRIALS, LEAST_TRIALS = 40, 4
AUTO_STEPS = 6000  # in all: Auto takes some hundred times as long as the others
WIDEST = 101  # entries of LARL's context, at most
MANY_ARMS = 10  # beyond which AdaptiveLARL and Auto take minutes
KALMAN, STILL = "Kalman, true parameters", "UCB"


@dataclass(frozen=True)
class Fitted(LatentAR):
    """A LatentAR whose arms have noises of their own: sd_a = `noises`[a]."""

    noises: Sequence[float] = checked(numbers(2), (1.0, 1.0))

    @property
    def sd(self) -> Floats:
        """The standard deviation of each arm's noise."""
        return np.array(self.noises)


class Scale:
    """Rewards in units of their own spread and from their own level: what policies meet in a replay."""

    def __init__(self, rewards: Floats, spread: Floats) -> None:
        self.level, self.unit = float(rewards.mean()), float(np.sqrt(np.mean(spread**2)))

    def world(self, draw: Draw) -> Fitted:
        """The world of a draw, from a stationary start; σ_z = 1, and the largest |β| is positive."""
        one = draw.setting
        beta = one.beta[0] * np.sqrt(one.shock[0])
        beta = beta * (np.sign(beta[np.abs(beta).argmax()]) or 1.0)
        return Fitted(
            gammas=one.gammas[0].tolist(), beta=(beta / self.unit).tolist(),
            mu=((one.mu[0] - self.level) / self.unit).tolist(), noise="common",
            noises=(np.sqrt(one.variance[0]) / self.unit).tolist(),
        )  # fmt: skip


@dataclass(frozen=True)
class Replay:
    """Regret a step of every candidate in every drawn world, in units of the reward."""

    regret: Mapping[str, Floats]  # (worlds,) each
    logged: Floats  # (worlds,) of the log's own choices, in the same worlds
    horizon: int
    notes: tuple[str, ...]

    @property
    def candidates(self) -> list[str]:
        """Those that can be had: all but the filter that knows the truth."""
        return [name for name in self.regret if name != KALMAN]

    @property
    def best(self) -> str:
        """The candidate of least mean regret."""
        return min(self.candidates, key=lambda name: float(np.mean(self.regret[name])))

    @property
    def as_good(self) -> list[str]:
        """Candidates that the best beats in fewer than 90% of the drawn worlds."""
        best = self.regret[self.best]
        return [n for n in self.candidates if n != self.best and np.mean(best < self.regret[n]) < 0.9]

    def saved(self, name: str) -> Interval:
        """What a candidate would have saved a step beside the log's own choices."""
        return interval(self.logged - self.regret[name])

    def lost(self, name: str) -> Interval:
        """A candidate's regret a step."""
        return interval(self.regret[name])


def candidates(arms: int, s: Sequence[int]) -> dict[str, Policy]:
    """Policies to replay; LARL for each of these s that its context can be made for."""
    found: dict[str, Policy] = {STILL: UCB()}
    found |= {f"D-UCB, {discount}": DiscountedUCB(discount) for discount in (0.9, 0.98)}
    found |= {f"LARL, s = {each}": LARL(each) for each in s if each > 0 and 2 * each * arms + 1 <= WIDEST}
    if arms <= MANY_ARMS:
        found["AdaptiveLARL"] = AdaptiveLARL()
    return found | {KALMAN: KalmanOracle()}


def replay(
    scale: Scale, draws: Sequence[Draw], s: Sequence[int], rows: int, seed: int, threads: int | None, bar: Progress
) -> Replay:
    """Every candidate in the worlds of the first draws, over the log's own number of steps."""
    worlds = {f"{i}": scale.world(draw) for i, draw in enumerate(draws[:WORLDS])}
    arms, horizon = len(draws[0].setting.mu[0]), int(min(max(rows, 2), STEPS))
    trials = int(np.clip(2 * TRIALS // arms, LEAST_TRIALS, TRIALS))
    notes = [f"Replays are {horizon} steps long" + (", the median of the log's units." if rows == horizon else ".")]
    rounds: list[tuple[dict[str, Policy], int]] = [(candidates(arms, s), trials)]
    if arms <= MANY_ARMS:
        few = int(np.clip(2 * AUTO_STEPS // (arms * horizon * len(worlds)), 1, trials))
        rounds.append(({"Auto": Auto()}, few))
        notes.append(f"Each candidate met {trials} trials in each of {len(worlds)} worlds, Auto, the slowest, {few}.")
    else:
        notes.append(f"AdaptiveLARL and Auto are left out: with more than {MANY_ARMS} arms they take minutes.")
    regret: dict[str, Floats] = {}
    for policies, count in rounds:
        result = compare(policies, worlds, horizon=horizon, trials=count, seed=seed, threads=threads, progress=bar)
        mean = result.total().mean("trial").transpose("policy", "world")
        regret |= {n: mean.sel(policy=n).values * scale.unit / horizon for n in policies}
    regret[KALMAN] = regret.pop(KALMAN)  # last, as in every table
    return Replay(regret, np.array([draw.logged for draw in draws[:WORLDS]]), horizon, tuple(notes))


def steps_of(draws: int, arms: int, s: Sequence[int], rows: int) -> int:
    """How many steps a replay plays, for a progress bar."""
    horizon, worlds = int(min(max(rows, 2), STEPS)), min(draws, WORLDS)
    trials = int(np.clip(2 * TRIALS // arms, LEAST_TRIALS, TRIALS))
    few = int(np.clip(2 * AUTO_STEPS // (arms * horizon * worlds), 1, trials)) if arms <= MANY_ARMS else 0
    return worlds * horizon * (len(candidates(arms, s)) * trials + few)
