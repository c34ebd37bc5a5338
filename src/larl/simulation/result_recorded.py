"""What policies earn on recorded rewards, between a random arm and the best arm at every step."""

import json
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from larl._core.validation import InvalidValue
from larl.worlds.variants import Recorded

Floats = NDArray[np.float64]
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
        return 100.0 * float(self.gain.sum()) / scale if scale > 0.0 else float("nan")

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
    """The rewards of the windows of all trials, and what a random arm and the best arms earn in them."""

    def __init__(self, world: Recorded, horizon: int, seed: int, trials: int) -> None:
        table, shape = world.table.values, (trials, horizon)
        observed = np.isfinite(table)
        rewards, count = np.where(observed, table, 0.0), observed.sum(axis=1)
        means = rewards.sum(axis=1) / np.maximum(count, 1)
        best = np.where(count > 0, np.where(observed, table, -np.inf).max(axis=1), 0.0)
        self.best, self.mean, self.is_observed = np.empty(shape), np.empty(shape), np.empty(shape, dtype=bool)
        self.fixed = Earnings(*np.zeros((4, trials)))
        self.starts = np.empty(trials, dtype=np.int64)
        for trial in range(trials):
            rows = world.path(horizon, seed, trial)
            self.starts[trial] = rows[0]
            self.best[trial], self.mean[trial], self.is_observed[trial] = best[rows], means[rows], count[rows] > 0
            seen, total = observed[rows], rewards[rows].sum(axis=0)
            steps = seen.sum(axis=0)
            arm = int(np.argmax(np.where(steps > 0, total / np.maximum(steps, 1), -np.inf)))
            mean, scale = means[rows][seen[:, arm]].sum(), (best - means)[rows][seen[:, arm]].sum()
            for part, value in zip(self.fixed, (total[arm], total[arm] - mean, scale, steps[arm]), strict=True):
                part[trial] = value

    def earnings(self, regret: Floats, is_observed: NDArray[np.bool_] | None = None) -> Earnings:
        """Return the earnings of choices with this regret, (trials, steps) or totals (trials,), at observed steps."""
        has_reward = self.is_observed if is_observed is None else is_observed
        total = regret if regret.ndim == 1 else np.where(has_reward, regret, 0.0).sum(axis=1)
        best, scale = (np.where(has_reward, part, 0.0).sum(axis=1) for part in (self.best, self.best - self.mean))
        return Earnings(best - total, scale - total, scale, has_reward.sum(axis=1).astype(float))

    def benchmarks(self) -> dict[str, Earnings]:
        """Return the earnings of a random arm, of the best fixed arm of each window, and of the best at every step."""
        return {
            RANDOM: self.earnings(self.best - self.mean),
            FIXED: self.fixed,
            BEST: self.earnings(np.zeros_like(self.best)),
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


def summary_of_world(
    world: Recorded, data: Any, policies: list[str], reference: str, seed: int
) -> dict[str, dict[str, float]]:
    """Return the columns of `recorded_summary` for each policy and benchmark in one world."""
    from scipy.stats import t as student

    units, trials, horizon = data.sizes.get("unit", 1), data.sizes["trial"], int(data["time"].values[-1]) + 1
    keeps_steps = "regret" in data
    if not keeps_steps and world.has_missing:
        accepted = "'all': with missing rewards, the steps of each policy are needed"
        raise InvalidValue("Result.recorded_summary", "keep", "summary", accepted)
    windows = Windows(world, horizon, seed, trials * units)
    earnings = {}
    for policy in policies:
        one = data.sel(policy=policy)
        values = one["regret" if keeps_steps else "total"].values.reshape(trials * units, -1)
        has_reward = np.isfinite(one["reward"].values).reshape(trials * units, -1) if keeps_steps else None
        earnings[policy] = windows.earnings(values if keeps_steps else values[:, 0], has_reward)
    earnings = {name: each.over_cohorts(units) for name, each in (earnings | windows.benchmarks()).items()}
    independent = min(trials, independent_windows(world, windows.starts, horizon, units))
    root = np.sqrt(independent) if independent > 1 else np.nan
    quantile = float(student.ppf(0.975, independent - 1)) if independent > 1 else np.nan

    def error(influence: Floats) -> float:
        return float(influence.std(ddof=1) / root) if trials > 1 else float("nan")

    table, base = {}, earnings[reference]
    for name, each in earnings.items():
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
