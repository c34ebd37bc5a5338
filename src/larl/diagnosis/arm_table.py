"""The table of arms: plays, mean rewards and fitted parameters with their intervals."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from larl.diagnosis.estimates import Interval, central_interval

if TYPE_CHECKING:
    import pandas as pd

    from larl.diagnosis.result import Diagnosis

SYMBOLS = {"mu": "μ", "beta": "β", "noise": "noise sd", "dispersion": "dispersion"}  # of parameters, on the page


def arm_table(diagnosis: "Diagnosis") -> "pd.DataFrame":
    """Return one row per fitted arm; `Diagnosis.arms` describes the columns."""
    import pandas as pd

    rows, log = [], diagnosis.log
    for arm, label in enumerate(diagnosis.fitted.labels):
        index = log.labels.index(label)
        mean = float(log.observed_rewards[log.arm == index].mean())
        row: dict[str, Any] = {"arm": label, "plays": int(log.plays[index]), "mean": mean}
        for name, (value, low, high) in _parameters(diagnosis, arm).items():
            row |= {name: value, f"{name}_low": low, f"{name}_high": high}
        rows.append(row)
    return pd.DataFrame(rows)


def _parameters(diagnosis: "Diagnosis", arm: int) -> dict[str, Interval]:
    """Return the intervals of an arm's parameters; the arm with the largest |β| has β > 0."""
    if diagnosis.estimates is None:
        return {}
    parameters = [draw.parameters for draw in diagnosis.estimates.draws]
    beta = np.array([one.beta[0] * math.sqrt(one.shock[0]) for one in parameters])
    largest = int(np.abs(np.median(np.abs(beta), axis=0)).argmax())
    beta = beta * np.where(beta[:, largest] < 0.0, -1.0, 1.0)[:, None]
    intervals = {
        "mu": central_interval(np.array([one.mu[0, arm] for one in parameters])),
        "beta": central_interval(beta[:, arm]),
    }
    variance = np.array([one.variance[0, arm] for one in parameters])
    if diagnosis.rewards.kind == "continuous":
        intervals["noise"] = central_interval(np.sqrt(variance))
    elif diagnosis.rewards.kind == "count":
        intervals["dispersion"] = central_interval(variance)
    return intervals
