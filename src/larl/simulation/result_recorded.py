"""What policies earn on recorded rewards, between a random arm and the best arm at every step."""

import json
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from larl._core.validation import InvalidValue
from larl.worlds.variants import Recorded

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
CHUNK = 2_000_000  # cells of the table that are looked up at a time
RANDOM, FIXED, BEST = "(random arm)", "(best fixed arm)", "(best arm at every step)"  # rows beside the policies


class Earnings(NamedTuple):
    """Sums over the steps of each trial whose reward is recorded, each of shape (trials,)."""

    reward: Floats  # recorded reward of the arm that was played
    gain: Floats  # that minus the mean of all arms
    scale: Floats  # the largest reward of any arm minus the mean of all arms
    steps: Floats  # their number

    def over_cohorts(self, units: int) -> "Earnings":
        """Return the sums over the units of each cohort."""
        return Earnings(*(part.reshape(-1, units).sum(axis=1) for part in self))

    @property
    def share(self) -> float:
        """0 for a random arm, 100 for the best arm at every step; nan if all arms are always equal."""
        scale = float(self.scale.sum())
        return 100.0 * (float(self.gain.sum()) / scale) if scale > 0.0 else float("nan")

    @property
    def mean_reward(self) -> float:
        """Mean reward of a step; nan if all are missing."""
        steps = float(self.steps.sum())
        return float(self.reward.sum()) / steps if steps > 0.0 else float("nan")

    @property
    def influence(self) -> Floats:
        """What each trial adds to the share, by linearisation of the ratio; the mean over trials is 0."""
        scale = float(self.scale.mean())
        return (100.0 * self.gain - self.share * self.scale) / scale if scale > 0.0 else self.gain * np.nan


class Windows:
    """The windows of the trials of a world, and what a random arm and the best arms earn in them."""

    def __init__(self, world: Recorded, horizon: int, seed: int) -> None:
        self._world, self._horizon, self._seed = world, horizon, seed
        self._observed = np.isfinite(world.table.values)
        self._rewards, count = np.where(self._observed, world.table.values, 0.0), self._observed.sum(axis=1)
        self._mean = self._rewards.sum(axis=1) / np.maximum(count, 1)
        self._best = np.where(count > 0, np.where(self._observed, world.table.values, -np.inf).max(axis=1), 0.0)

    def rows(self, trials: range) -> Rows:
        """Return the rows of the table in every step of some trials, (trials, steps)."""
        return np.stack([self._world.path(self._horizon, self._seed, trial) for trial in trials])

    def earnings(self, rows: Rows, regret: Floats, has_reward: NDArray[np.bool_] | None = None) -> Earnings:
        """Return the earnings of choices with this regret, of each step or in total, where there is a reward."""
        has_reward = self._observed[rows].any(axis=2) if has_reward is None else has_reward
        total = (np.where(has_reward, regret, 0.0) if regret.shape == rows.shape else regret).sum(axis=1)
        best = np.where(has_reward, self._best[rows], 0.0).sum(axis=1)
        scale = np.where(has_reward, (self._best - self._mean)[rows], 0.0).sum(axis=1)
        return Earnings(best - total, scale - total, scale, has_reward.sum(axis=1).astype(float))

    def benchmarks(self, rows: Rows) -> dict[str, Earnings]:
        """Return the earnings of a random arm, of the best fixed arm of each window, and of the best at every step."""
        best, observed = self._best[rows], self._observed[rows]
        total, steps = self._rewards[rows].sum(axis=1), observed.sum(axis=1)
        arm = np.argmax(np.where(steps > 0, total / np.maximum(steps, 1), -np.inf), axis=1)  # largest mean reward
        trial = np.arange(len(rows))[:, None]
        fixed = observed[trial, np.arange(rows.shape[1]), arm[:, None]]
        return {
            RANDOM: self.earnings(rows, best - self._mean[rows]),
            FIXED: self.earnings(rows, best - self._rewards[rows, arm[:, None]], fixed),
            BEST: self.earnings(rows, np.zeros(rows.shape)),
        }


def independent_windows(world: Recorded, starts: NDArray[np.int64], horizon: int, units: int) -> int:
    """Return the number of trials that share no row: standard errors divide by its root, not by that of all trials.

    The blocks of bootstrap samples come from everywhere, so there are as many as fit into the table.
    """
    count, end = 0, 0
    if world.block is not None:
        count = min(starts.size, world.table.rows // horizon)
    else:
        for start in np.sort(starts).tolist():
            if start >= end:
                count, end = count + 1, start + horizon
    return max(1, count // units)


def all_earnings(world: Recorded, data: Any, horizon: int, seed: int) -> tuple[dict[str, Earnings], Rows]:
    """Return the earnings of every policy and benchmark, and the first row of every trial."""
    count, keeps_steps = data.sizes["trial"] * data.sizes.get("unit", 1), "regret" in data
    shape = (data.sizes["policy"], count, horizon if keeps_steps else 1)
    regret = data["regret" if keeps_steps else "total"].transpose("policy", ...).values.reshape(shape)
    reward = data["reward"].transpose("policy", ...).values.reshape(shape) if keeps_steps else None
    windows, size = Windows(world, horizon, seed), max(1, CHUNK // (horizon * world.arms))
    parts: dict[str, list[Earnings]] = {}
    starts = []
    for first in range(0, count, size):
        chunk = slice(first, min(first + size, count))
        rows = windows.rows(range(count)[chunk])
        earned = windows.benchmarks(rows)
        for i, policy in enumerate(data["policy"].values.tolist()):
            has_reward = None if reward is None else np.isfinite(reward[i, chunk])
            earned[policy] = windows.earnings(rows, regret[i, chunk], has_reward)
        for name, each in earned.items():
            parts.setdefault(name, []).append(each)
        starts.append(rows[:, 0])
    return {name: Earnings(*map(np.concatenate, zip(*each, strict=True))) for name, each in parts.items()}, (
        np.concatenate(starts)
    )


def summary_of_world(
    world: Recorded, data: Any, policies: list[str], reference: str, seed: int
) -> dict[str, dict[str, float]]:
    """Return the columns of `recorded_summary` for each policy and benchmark in one world."""
    from scipy.stats import t as student

    units, trials, horizon = data.sizes.get("unit", 1), data.sizes["trial"], int(data["time"].values[-1]) + 1
    if "regret" not in data and world.has_missing:
        accepted = "'all': with missing rewards, the steps of each policy are needed"
        raise InvalidValue("Result.recorded_summary", "keep", "summary", accepted)
    by_unit, starts = all_earnings(world, data, horizon, seed)
    earnings = {name: each.over_cohorts(units) for name, each in by_unit.items()}
    independent = min(trials, independent_windows(world, starts, horizon, units))
    quantile = float(student.ppf(0.975, independent - 1)) if independent > 1 else np.nan

    def error(influence: Floats) -> float:
        return float(influence.std(ddof=1) / np.sqrt(independent)) if independent > 1 else float("nan")

    table, base = {}, earnings[reference]
    for name in (*policies, RANDOM, FIXED, BEST):
        each = earnings[name]
        difference, se = each.share - base.share, error(each.influence - base.influence)
        table[name] = {
            "mean reward": each.mean_reward,
            "share": each.share,
            "se": error(each.influence),
            f"minus {reference}": difference,
            f"minus {reference}, se": se,
            f"minus {reference}, low": difference - quantile * se,
            f"minus {reference}, high": difference + quantile * se,
            "missing": 100.0 * (1.0 - float(each.steps.sum()) / (trials * units * horizon)),
            "windows": independent,
        }
    return table


class RecordedSummary:
    """The part of a `Result` about recorded rewards."""

    @property
    def recorded_worlds(self: Any) -> list[str]:
        """Names of the worlds that are `larl.worlds.Recorded`."""
        specs = json.loads(self.data.attrs["worlds"])
        return [name for name, spec in specs.items() if spec.get("world") == "Recorded"]

    def recorded_summary(self: Any, reference: str | None = None) -> pd.DataFrame:
        """Return what each policy earned on recorded rewards (`larl.worlds.Recorded`), one row for each policy.

        The share says where a policy lies between a random arm (0) and the best arm at every step (100): the sum of
        its recorded rewards minus the mean of all arms, over the same sum for the best arm. Steps whose reward is
        missing do not count, and noise that the world adds does not count either. Three more rows are benchmarks: a
        random arm, the fixed arm with the largest mean reward of each window, and the best arm at every step.

        Trials whose windows overlap are not independent. Standard errors are the standard deviation between trials
        over the root of the largest number of trials that share no row; intervals use Student's t.

        Parameters
        ----------
        reference : str, optional
            Name of the reference policy; the first policy by default.

        Returns
        -------
        pandas.DataFrame
            Indexed by policy, or by world and policy. Columns: `mean reward` of a step; `share`, in percent, and its
            standard error `se`; `minus REFERENCE`, the difference in share, paired by trial, with `minus REFERENCE,
            se`, and `… low` and `… high` (95% interval); `missing`, the percentage of steps without a reward;
            `windows`, the number of trials that share no row. Standard errors are nan if it is 1.

        Raises
        ------
        InvalidValue
            If no world is a `Recorded`, its file is not there or has changed, or rewards are missing and
            ``keep="summary"``.

        Examples
        --------
        >>> import larl
        >>> rewards = np.random.default_rng(0).normal([[0.0, 0.5]], size=(400, 2))
        >>> world = larl.worlds.Recorded(rewards, window=50, starts="disjoint")
        >>> result = larl.compare({"UCB": larl.UCB(), "Random": larl.Random()}, world, horizon=50, trials=8)
        >>> result.recorded_summary()["share"].round(1).to_dict()  # doctest: +NORMALIZE_WHITESPACE
        {'UCB': 41.5, 'Random': 6.5, '(random arm)': 0.0, '(best fixed arm)': 49.5,
         '(best arm at every step)': 100.0}
        """
        names = self.recorded_worlds
        if not names or "time" not in self.data.coords:
            accepted = "a comparison in a larl.worlds.Recorded"
            raise InvalidValue("Result.recorded_summary", "worlds", self.worlds, accepted)
        reference, specs = self._check_reference(reference), json.loads(self.data.attrs["worlds"])
        rows: dict[Any, dict[str, float]] = {}
        for name in names:
            world, data = Recorded.from_dict(specs[name]), self.data.sel(world=name) if self.worlds else self.data
            table = summary_of_world(world, data, self.policies, reference, int(self.data.attrs["seed"]))
            rows |= {((name, policy) if self.worlds else policy): row for policy, row in table.items()}
        frame = pd.DataFrame.from_dict(rows, orient="index")
        if self.worlds:
            frame.index = pd.MultiIndex.from_tuples(list(rows))
        return frame.rename_axis(["world", "policy"] if self.worlds else "policy")
