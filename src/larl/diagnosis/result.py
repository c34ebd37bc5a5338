"""The result of `larl.diagnose`."""

import json
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from larl._core.files import write_atomically
from larl._core.html import html_table
from larl.diagnosis.answers import Answer, answer_questions
from larl.diagnosis.arm_table import arm_table
from larl.diagnosis.drift import Drift
from larl.diagnosis.estimates import Estimates, central_interval
from larl.diagnosis.fitted_worlds import world_of
from larl.diagnosis.json_types import to_json_types
from larl.diagnosis.log import Log
from larl.diagnosis.notes import analysis_notes
from larl.diagnosis.periodic import PeriodTest
from larl.diagnosis.replay import ReplayResult, world_interval
from larl.diagnosis.rewards import CONTINUOUS, RewardModel
from larl.diagnosis.shared_drift import SharedDrift
from larl.worlds.base import World

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """The five answers about a log, and the results they are based on. `larl.diagnose` returns it.

    ``print(diagnosis)`` shows the answers; `save` writes the page, a table and JSON.

    Attributes
    ----------
    log : Log
        The log as it was read, without periodic components and effects of contexts.
    fitted : Log
        The rows to which the latent process was fitted: all, or a subsample of a long log.
    drift : Drift
        The test of drift.
    estimates : Estimates or None
        Estimates from the fitted latent process. None if there is too little data.
    replay : ReplayResult or None
        Simulated policies. None if the log has one arm or too little data, or with ``replay=False``.
    seed : int
        The seed.
    periods : tuple of PeriodTest
        Tests of a periodic component, each on the rewards that the previous one left.
    shared_drift : SharedDrift
        The test of drift that units share.
    rewards : RewardModel
        The model of the rewards: `kind` ("continuous", "binary" or "count") and `reason`.

    Examples
    --------
    >>> import larl, numpy as np, pandas as pd
    >>> log = pd.DataFrame({"t": range(12), "a": [0, 1] * 6, "r": np.arange(12) / 10})
    >>> diagnosis = larl.diagnose(log, progress=False)
    >>> diagnosis
    <Diagnosis of 12 rewards of 1 unit and 2 arms; drift: too little data>
    >>> diagnosis.table["verdict"].tolist()
    ['too little data', 'too little data', 'too little data', 'too little data', 'too little data']
    """

    log: Log
    fitted: Log
    drift: Drift
    estimates: Estimates | None
    replay: ReplayResult | None
    seed: int
    periods: tuple[PeriodTest, ...]
    shared_drift: SharedDrift
    rewards: RewardModel = CONTINUOUS

    @cached_property
    def answers(self) -> list[Answer]:
        """The five answers in order."""
        return answer_questions(
            self.log,
            self.drift,
            self.estimates,
            self.replay,
            periods=self.periods,
            shared_drift=self.shared_drift,
        )

    def _repr_html_(self) -> str:
        rows = [(each.question, each.verdict, each.answer) for each in self.answers]
        return html_table(self.about, rows, ("question", "verdict", "answer"))

    def __repr__(self) -> str:
        best = f", best: {self.replay.best}" if self.replay else ""
        return f"<Diagnosis of {self.about.split('.')[0]}; drift: {self.answers[0].verdict}{best}>"

    @property
    def table(self) -> "pd.DataFrame":
        """One row per question: verdict, answer, and the number it is based on with its 95% interval."""
        import pandas as pd

        rows = [(a.question, a.verdict, a.answer, a.measure, *a.interval) for a in self.answers]
        return pd.DataFrame(rows, columns=["question", "verdict", "answer", "measure", "value", "low", "high"])

    @property
    def text(self) -> str:
        """The answers as text for a terminal."""
        from textwrap import fill

        parts = [self.about]
        for number, each in enumerate(self.answers, 1):
            answer = fill(each.answer, 100, initial_indent="   ", subsequent_indent="   ")
            parts.append(f"{number}. {each.question} — {each.verdict}\n{answer}")
        if self.notes:
            parts.append("\n".join(fill(note, 100, initial_indent="- ", subsequent_indent="  ") for note in self.notes))
        return "\n\n".join(parts)

    def __str__(self) -> str:
        return self.text

    @property
    def about(self) -> str:
        """Size of the log, in one line."""
        log = self.log
        units, arms = f"{log.units:,} unit{'s' * (log.units > 1)}", f"{log.arms} arm{'s' * (log.arms > 1)}"
        missing = f", {log.missing:,} rows without a reward" if log.missing else ""
        return f"{log.rows:,} rewards of {units} and {arms}{missing}. A step is {log.step_name}. Intervals are 95%."

    @property
    def notes(self) -> list[str]:
        """How the log was read and analysed."""
        return analysis_notes(self)

    def arms(self) -> "pd.DataFrame":
        """Return plays, mean reward and estimated parameters of every fitted arm.

        Returns
        -------
        pandas.DataFrame
            One row per arm. Columns `arm`, `plays` and `mean`; unless there is too little data, also `mu`, `beta` (for
            σ_z = 1) and `noise` (standard deviation), each with its 95% interval (`mu_low`, `mu_high`, …). Binary
            rewards have no `noise`, counts have `dispersion` in its place; their `mu` and `beta` are in log odds and in
            logarithms of the mean.

        Examples
        --------
        >>> import larl, numpy as np, pandas as pd
        >>> log = pd.DataFrame({"t": range(12), "a": [0, 1] * 6, "r": np.arange(12) / 10})
        >>> larl.diagnose(log, progress=False).arms()
          arm  plays  mean
        0   0      6   0.5
        1   1      6   0.6
        """
        return arm_table(self)

    def world(self, draw: int | None = None) -> World:
        """Return a world with the fitted parameters, to simulate in: `larl.compare(policies, diagnosis.world(), …)`.

        Rewards have the units of the log, σ_z = 1, the start is stationary, and the largest |β| is positive. If k = 0
        is the most probable order, as in many logs without drift, every β is 0 and the means are constant.

        Parameters
        ----------
        draw : int, 0 to 99, optional
            Number of a draw from the posterior distribution of order and parameters. Worlds of several draws show the
            uncertainty. By default the most probable parameters of the most probable order.

        Returns
        -------
        World
            A `larl.LatentAR` with a noise for each arm, or a `larl.worlds.LatentGLM` for binary rewards and counts.

        Raises
        ------
        InvalidValue
            If nothing was fitted, because there is too little data, or if the log has one arm.

        Examples
        --------
        >>> import larl, numpy as np, pandas as pd
        >>> rewards = np.random.default_rng(0).integers(2, size=60)
        >>> log = pd.DataFrame({"t": range(60), "a": [0, 1] * 30, "r": rewards})
        >>> larl.diagnose(log, replay=False, progress=False).world().family
        'bernoulli'
        """
        return world_of(self, draw)

    def to_dict(self) -> dict[str, Any]:
        """Return all results as JSON types.

        Returns
        -------
        dict
            Keys `log`, `rewards` (their model), `answers`, `drift`, `periods`, `units_together` (drift that units
            share), `arms` and `notes`; with enough data `orders` and `forecasts`; with a replay `best`, `regret_a_step`
            and `saved_a_step`. nan and infinity are None.

        Examples
        --------
        >>> import larl, numpy as np, pandas as pd
        >>> log = pd.DataFrame({"t": range(12), "a": [0, 1] * 6, "r": np.arange(12) / 10})
        >>> values = larl.diagnose(log, progress=False).to_dict()
        >>> values["log"]
        {'rows': 12, 'units': 1, 'missing': 0, 'fitted_rows': 12, 'seed': 0}
        >>> values["drift"]["verdict"], values["drift"]["p_value"]
        ('unknown', None)
        """
        values: dict[str, Any] = {
            "log": {
                "rows": self.log.rows,
                "units": self.log.units,
                "missing": self.log.missing,
                "fitted_rows": self.fitted.rows,
                "seed": self.seed,
            },
            "rewards": self.rewards._asdict(),
            "answers": [answer.to_dict() for answer in self.answers],
            "drift": {
                "verdict": self.drift.verdict,
                "p_value": self.drift.p_value,
                "lags": self.drift.lags.tolist(),
                "band": self.drift.band.tolist(),
                "rewards_needed": self.drift.rewards_needed,
            },
            "periods": [each._asdict() | {"found": each.is_detected} for each in self.periods],
            "units_together": self.shared_drift._asdict() | {"found": self.shared_drift.is_detected},
            "arms": self.arms().to_dict("records"),
            "notes": self.notes,
        }
        if self.estimates is not None:
            values["orders"] = {
                "weights": self.estimates.weights.tolist(),
                "best": self.estimates.best,
                "interval": list(self.estimates.orders),
            }
            values["forecasts"] = [list(central_interval(column)) for column in self.estimates.forecasts.T]
        if self.replay is not None:
            values["best"] = {"policy": self.replay.best, "s": self.replay.best_s, "good_s": self.replay.good_s}
            values["regret_a_step"] = {"the log": list(world_interval(self.replay.log_regret))} | {
                name: list(self.replay.regret_of(name)) for name in self.replay.regret
            }
            values["saved_a_step"] = {name: list(self.replay.saving_of(name)) for name in self.replay.regret}
        plain: dict[str, Any] = to_json_types(values)
        return plain

    def save(self, path: str | Path) -> Path:
        """Write the HTML page and return its path.

        Parameters
        ----------
        path : str or Path
            A file that ends in .html, or a folder. A folder also gets answers.csv and diagnosis.json.

        Returns
        -------
        Path
            The page.
        """
        from larl.diagnosis.page import render_page

        target = Path(path)
        html = render_page(self).encode()
        if target.suffix.lower() in (".html", ".htm"):
            return write_atomically(target, partial(_write_bytes, html))
        write_atomically(target / "answers.csv", partial(self.table.to_csv, index=False))
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"
        write_atomically(target / "diagnosis.json", partial(_write_bytes, text.encode()))
        return write_atomically(target / "diagnosis.html", partial(_write_bytes, html))


def _write_bytes(content: bytes, draft: Path) -> None:
    """Write content to a draft file; for `write_atomically`."""
    draft.write_bytes(content)
