"""What a log of decisions says about drift: five questions, each answered with its uncertainty.

`larl.diagnose(frame)` and `larl diagnose log.csv`. docs/diagnose.md says what is computed and how to read it. The
module is called `diagnosis`, as `larl.diagnose` has to stay the function.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from larl._core.files import write_atomically
from larl._core.progress import Progress
from larl._core.validation import InvalidValue, boolean, integer, optional
from larl.diagnosis.answers import Answer, answers, p_of
from larl.diagnosis.build import Columns, make_log
from larl.diagnosis.drift import Drift, find_drift
from larl.diagnosis.estimates import Estimates, Interval, estimate, interval
from larl.diagnosis.fit import ORDERS, fit_orders
from larl.diagnosis.log import Log
from larl.diagnosis.periodic import Periodic, without_periods
from larl.diagnosis.subsample import most_played, most_rows, pieces
from larl.diagnosis.table import read_table
from larl.diagnosis.together import Together, find_together

if TYPE_CHECKING:
    import pandas as pd

    from larl.diagnosis.replay import Replay


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """The five answers, and all that they rest on. `print` it, `save` it, or look into `table` and `to_dict()`."""

    log: Log
    fitted: Log  # what the latent process was fitted to: the log, or pieces of it
    drift: Drift
    estimates: Estimates | None  # None where there is too little data
    replay: "Replay | None"  # None where there is nothing to choose, or on request
    seed: int
    periods: tuple[Periodic, ...]  # tests of a periodic component, each on what the one before left
    together: Together

    @cached_property
    def answers(self) -> list[Answer]:
        """The five answers in order."""
        return answers(self.log, self.drift, self.estimates, self.replay, self.periods, self.together)

    def __repr__(self) -> str:
        best = f", best: {self.replay.best}" if self.replay else ""
        return f"<Diagnosis of {self.about.split('.')[0]}; drift: {self.answers[0].verdict}{best}>"

    @property
    def table(self) -> "pd.DataFrame":
        """One row a question: verdict, answer, and the number behind it with its 95% interval."""
        import pandas as pd

        rows = [(a.question, a.verdict, a.answer, a.measure, *a.found) for a in self.answers]
        return pd.DataFrame(rows, columns=["question", "verdict", "answer", "measure", "value", "low", "high"])

    @property
    def text(self) -> str:
        """The answers as text for a terminal."""
        from textwrap import fill

        parts = [self.about]
        for number, each in enumerate(self.answers, 1):
            words = fill(each.answer, 100, initial_indent="   ", subsequent_indent="   ")
            parts.append(f"{number}. {each.question} — {each.verdict}\n{words}")
        if self.notes:
            parts.append("\n".join(fill(note, 100, initial_indent="- ", subsequent_indent="  ") for note in self.notes))
        return "\n\n".join(parts)

    def __str__(self) -> str:
        return self.text

    @property
    def about(self) -> str:
        """What the log is, in one line."""
        log = self.log
        units, arms = f"{log.units:,} unit{'s' * (log.units > 1)}", f"{log.arms} arm{'s' * (log.arms > 1)}"
        missing = f", {log.missing:,} rows without a reward" if log.missing else ""
        return f"{log.rows:,} rewards of {units} and {arms}{missing}. A step is {log.one_step}. Intervals are 95%."

    @property
    def notes(self) -> list[str]:
        """What was decided along the way and is worth knowing."""
        found = list(self.log.notes)
        if self.fitted.arms < self.log.arms:
            found.append(
                f"Fit and replays are about the {self.fitted.arms} most played arms; steps with other arms count as "
                "steps without a reward."
            )
        if self.fitted.rows < self.log.rows:
            found.append(
                f"The test of drift saw all rewards; the latent process was fitted to {self.fitted.rows:,} of them, in "
                "pieces spread evenly over the log, and intervals are as wide as that makes them."
            )
        if self.log.adjusted and self.replay is not None:
            found.append("Replays are about the rewards without the effect of contexts, and policies are shown none.")
        return [*found, *self._tests(), *(self.replay.notes if self.replay else ())]

    def _tests(self) -> list[str]:
        """What else was tested and not found."""
        found = []
        if self.periods and not self.periods[-1].found:
            last = self.periods[-1]
            other = "further " * (len(self.periods) > 1)
            if math.isnan(last.p_value):
                found.append(f"The log is too short to test for {last.tested}.")
            else:
                found.append(f"No {other}periodic component was found ({p_of(last.p_value)}; tested: {last.tested}).")
        if self.log.units > 1 and not math.isnan(self.together.p_value) and not self.together.found:
            found.append(f"That units drift together was not shown ({p_of(self.together.p_value)}).")
        return found

    def arms(self) -> "pd.DataFrame":
        """One row an arm: plays, mean reward, and μ, β (in units of σ_z = 1) and noise with their intervals."""
        import pandas as pd

        rows = []
        for arm, label in enumerate(self.fitted.labels):
            at = self.log.labels.index(label)
            mean = float(self.log.observed_rewards[self.log.arm == at].mean())
            row: dict[str, Any] = {"arm": label, "plays": int(self.log.plays[at]), "mean": mean}
            for name, found in self._parameters(arm).items():
                row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
            rows.append(row)
        return pd.DataFrame(rows)

    def _parameters(self, arm: int) -> dict[str, Interval]:
        if self.estimates is None:
            return {}
        settings = [draw.setting for draw in self.estimates.draws]
        beta = np.array([one.beta[0] * math.sqrt(one.shock[0]) for one in settings])
        lead = int(np.abs(np.median(np.abs(beta), axis=0)).argmax())
        beta = beta * np.where(beta[:, lead] < 0.0, -1.0, 1.0)[:, None]
        return {
            "mu": interval(np.array([one.mu[0, arm] for one in settings])),
            "beta": interval(beta[:, arm]),
            "noise": interval(np.sqrt([one.variance[0, arm] for one in settings])),
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON types; nan and infinity as None."""
        found: dict[str, Any] = {
            "log": {
                "rows": self.log.rows,
                "units": self.log.units,
                "missing": self.log.missing,
                "fitted_rows": self.fitted.rows,
                "seed": self.seed,
            },
            "answers": [a._asdict() | {"found": list(a.found)} for a in self.answers],
            "drift": {
                "verdict": self.drift.verdict,
                "p_value": self.drift.p_value,
                "lags": self.drift.lags.tolist(),
                "band": self.drift.band.tolist(),
                "rewards_needed": self.drift.needed,
            },
            "periods": [each._asdict() | {"found": each.found} for each in self.periods],
            "units_together": self.together._asdict() | {"found": self.together.found},
            "arms": self.arms().to_dict("records"),
            "notes": self.notes,
        }
        if self.estimates is not None:
            found["orders"] = {
                "weights": self.estimates.weights.tolist(),
                "best": self.estimates.best,
                "interval": list(self.estimates.orders),
            }
            found["forecasts"] = [list(interval(column)) for column in self.estimates.forecasts.T]
        if self.replay is not None:
            from larl.diagnosis.replay import over_worlds

            found["best"] = {"policy": self.replay.best, "s": self.replay.best_s, "good_s": self.replay.good_s}
            found["regret_a_step"] = {"the log": list(over_worlds(self.replay.logged))} | {
                name: list(self.replay.lost(name)) for name in self.replay.regret
            }
            found["saved_a_step"] = {name: list(self.replay.saved(name)) for name in self.replay.regret}
        plain: dict[str, Any] = _json(found)
        return plain

    def save(self, path: str | Path) -> Path:
        """Write the page: to `path` if it ends in .html, else into that folder with answers.csv and diagnosis.json."""
        from larl.diagnosis.page import page

        target = Path(path)
        whole_page = page(self).encode()
        if target.suffix.lower() in (".html", ".htm"):
            return write_atomically(target, partial(_bytes, whole_page))
        write_atomically(target / "answers.csv", partial(self.table.to_csv, index=False))
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"
        write_atomically(target / "diagnosis.json", partial(_bytes, text.encode()))
        return write_atomically(target / "diagnosis.html", partial(_bytes, whole_page))


def _bytes(content: bytes, draft: Path) -> None:
    draft.write_bytes(content)


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json(each) for each in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


def diagnose(
    frame: "pd.DataFrame | str | Path",
    *,
    time: str | None = None,
    action: str | None = None,
    reward: str | None = None,
    unit: "str | Literal[False] | None" = None,
    context: str | Sequence[str] | None = None,
    clock_grid: bool = False,
    day_first: bool | None = None,
    seed: int = 0,
    replay: bool = True,
    threads: int | None = None,
    progress: bool | None = None,
) -> Diagnosis:
    """Diagnose a log: is the reward drifting, does it matter, which policy would have done better.

    Parameters
    ----------
    frame : pandas.DataFrame, str or Path
        The log, or the path of a CSV (also gzipped) or Parquet file, with a row for each decision. Rows may be in any
        order. A row without a reward is a step at which nothing was seen.
    time, action, reward : str, optional
        Columns of the log, where their names are not common ones (t, a, r …).
    unit : str or False, optional
        The column of the unit. By default `u`, `unit`, `user`, or an `id` that repeats; False: there is one unit.
    context : str or sequence of str, optional
        Columns that were known at each decision, numbers or names. Their linear effect in each arm is taken off the
        rewards first. `hour` and `weekday` are made from dates.
    clock_grid : bool, default False
        Count steps on the clock. By default a step is a decision of the unit.
    day_first : bool, optional
        How dates such as 03/04/2026 are read, where the column does not tell.
    seed : int, >= 0
        The same log and seed give the same diagnosis.
    replay : bool, default True
        Replay policies in worlds fitted to the log, which takes longest.
    threads : int, optional
        Threads to run on; all cores by default.
    progress : bool, optional
        Show a bar: on a terminal if None, always if True, never if False.
    """
    seed = integer(0, 2**31)("diagnose", "seed", seed)
    threads = optional(integer(1))("diagnose", "threads", threads)
    for name, value in (("clock_grid", clock_grid), ("replay", replay)):
        boolean()("diagnose", name, value)
    optional(boolean())("diagnose", "day_first", day_first)
    if not (unit is None or unit is False or isinstance(unit, str)):
        raise InvalidValue("diagnose", "unit", unit, "the name of a column, None, or False for a log of one unit")
    columns: Columns = {"time": time, "action": action, "reward": reward, "unit": unit}
    from_file = isinstance(frame, str | Path)
    with Progress(4 + 2 * len(ORDERS), progress) as bar:
        table = read_table(frame) if isinstance(frame, str | Path) else frame
        log = make_log(table, columns, context=context, clock_grid=clock_grid, day_first=day_first, lines=from_file)
        bar.advance(1)
        log, periods = without_periods(log)
        drift, together = find_drift(log, seed), find_together(log, seed)
        bar.advance(3)
        part = most_played(log)
        part = pieces(part, most_rows(part.arms))
        if drift.verdict == "unknown":
            return Diagnosis(log, part, drift, None, None, seed, periods, together)
        direction = drift.direction[[log.labels.index(label) for label in part.labels]]
        fits = fit_orders(part, direction, partial(bar.advance, 1))
        estimates = estimate(part, fits, direction, drift.verdict == "drift", seed)
    found = _replay(log, part, estimates, seed, threads, progress) if replay and part.arms > 1 else None
    return Diagnosis(log, part, drift, estimates, found, seed, periods, together)


def _replay(
    log: Log, part: Log, estimates: Estimates, seed: int, threads: int | None, progress: bool | None
) -> "Replay":
    from larl.diagnosis.replay import replay, steps_of

    rows = int(np.median(np.bincount(log.unit)))
    with Progress(steps_of(len(estimates.draws), part.arms, estimates.best, rows), progress) as bar:
        return replay(estimates.draws, estimates.best, rows, seed, threads, bar)
