"""Diagnose a log of decisions: is the reward drifting, does it matter, and which policy would have done better?

`larl.diagnose(frame)` and `larl diagnose log.csv` answer five questions, each with its uncertainty. docs/diagnose.md
explains the methods.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from larl._core.progress import Progress
from larl._core.validation import InvalidValue, boolean, integer, one_of, optional
from larl.diagnosis.build import make_log
from larl.diagnosis.drift import find_drift
from larl.diagnosis.estimates import Estimates, estimate
from larl.diagnosis.fit import TICKS, fit_orders
from larl.diagnosis.log import Log
from larl.diagnosis.periodic import remove_periods
from larl.diagnosis.rewards import MODELS, choose_reward_model
from larl.diagnosis.shared_drift import find_shared_drift
from larl.diagnosis.subsample import keep_most_played, max_rows, subsample
from larl.logs.rows import Columns

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

    from larl.diagnosis.replay import ReplayResult

from larl.diagnosis.result import Diagnosis as Diagnosis


def diagnose(
    frame: "IntoFrame | str | Path",
    *,
    time: str | None = None,
    action: str | None = None,
    reward: str | None = None,
    unit: "str | Literal[False] | None" = None,
    context: str | Sequence[str] | None = None,
    clock_grid: bool = False,
    day_first: bool | None = None,
    rewards: 'Literal["binary", "count", "continuous"] | None' = None,
    seed: int = 0,
    replay: bool = True,
    threads: int | None = None,
    progress: bool | None = None,
) -> Diagnosis:
    """Diagnose a log of decisions: is the reward drifting, does it matter, and which policy would have done better?

    Parameters
    ----------
    frame : table, str or Path
        The log with one row per decision: a table of pandas, polars, pyarrow or another library that narwhals supports,
        or the path of a CSV (also gzipped) or Parquet file. Rows may be in any order. A row without a reward is a step
        without an observation.
    time, action, reward : str, optional
        Names of the columns. By default columns with common names are used: `t`, `time`, `step`, `timestamp`; `a`,
        `action`, `arm` (or `played`); `r`, `reward`.
    unit : str or False, optional
        Name of the unit's column. By default `u`, `unit`, `user`, or an `id` that repeats. False: the log has one unit.
    context : str or sequence of str, optional
        Columns known at each decision, numbers or categories. Their linear effect in each arm is removed from the
        rewards first. `hour` and `weekday` are made from dates.
    clock_grid : bool, default False
        Whether to count steps on the clock. By default a step is a decision of the unit.
    day_first : bool, optional
        Whether dates such as 03/04/2026 have the day first. Needed only if the column is ambiguous.
    rewards : {"binary", "count", "continuous"}, optional
        Model of the rewards: Bernoulli, negative binomial or normal. By default the rewards decide: all 0 or 1;
        whole numbers from 0 on that do not look like a bounded scale; all others. The notes say which and why.
    seed : int, >= 0, default 0
        The same log and seed give the same diagnosis.
    replay : bool, default True
        Whether to simulate policies in worlds fitted to the log. This takes most of the time.
    threads : int, >= 1, optional
        Number of threads; all cores by default.
    progress : bool, optional
        Progress bar: on a terminal only (None), always (True), never (False).

    Returns
    -------
    Diagnosis
        The five answers, and the results they are based on.

    Raises
    ------
    InvalidValue
        If a column is missing, a cell cannot be read, or an argument is not accepted. The message names row and column.

    Examples
    --------
    >>> import larl, numpy as np, pandas as pd
    >>> log = pd.DataFrame({"t": range(12), "a": [0, 1] * 6, "r": np.arange(12) / 10})
    >>> larl.diagnose(log, progress=False).answers[0].verdict
    'too little data'
    """
    seed = integer(0, 2**31)("diagnose", "seed", seed)
    threads = optional(integer(1))("diagnose", "threads", threads)
    for name, value in (("clock_grid", clock_grid), ("replay", replay)):
        boolean()("diagnose", name, value)
    optional(boolean())("diagnose", "day_first", day_first)
    if not (unit is None or unit is False or isinstance(unit, str)):
        raise InvalidValue("diagnose", "unit", unit, "the name of a column, None, or False for a log of one unit")
    optional(one_of(*MODELS))("diagnose", "rewards", rewards)
    if context is not None and rewards in ("binary", "count"):
        accepted = "None or 'continuous' with a context: without its effect, rewards are no whole numbers"
        raise InvalidValue("diagnose", "rewards", rewards, accepted)
    columns: Columns = {"time": time, "action": action, "reward": reward, "unit": unit}
    with Progress(4 + TICKS + 3, progress) as bar:
        log = make_log(frame, columns, context=context, clock_grid=clock_grid, day_first=day_first)
        bar.finish_steps(1)
        log, periods = remove_periods(log)
        model = choose_reward_model(log, rewards)
        drift, shared_drift = find_drift(log, seed), find_shared_drift(log, seed)
        bar.finish_steps(3)
        fitted = keep_most_played(log)
        fitted = subsample(fitted, max_rows(fitted.arms))
        estimates = None
        if drift.verdict != "unknown":
            direction = drift.direction[[log.labels.index(label) for label in fitted.labels]]
            fits = fit_orders(fitted, direction, partial(bar.finish_steps, 1), model.model_class)
            estimates = estimate(fitted, fits, direction, drift.verdict == "drift", seed)
            bar.finish_steps(3)
        else:
            bar.advance_untimed(TICKS + 3)
    result = None
    if replay and estimates is not None and fitted.arms > 1:
        result = _replay(log, fitted, estimates, seed=seed, threads=threads, progress=progress)
    return Diagnosis(
        log=log,
        fitted=fitted,
        drift=drift,
        estimates=estimates,
        replay=result,
        seed=seed,
        periods=periods,
        shared_drift=shared_drift,
        rewards=model,
    )


def _replay(
    log: Log, fitted: Log, estimates: Estimates, *, seed: int, threads: int | None, progress: bool | None
) -> "ReplayResult":
    """Simulate the candidate policies for as many steps as the median unit has."""
    from larl.diagnosis.replay import predicted_lookback, replay_policies, total_steps

    rows, draws = int(np.median(np.bincount(log.unit))), estimates.draws
    lookback = predicted_lookback(draws, rows)
    with Progress(total_steps(len(draws), fitted.arms, lookback, rows), progress) as bar:
        return replay_policies(draws, lookback, rows, seed=seed, threads=threads, bar=bar)
