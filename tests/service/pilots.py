"""Logs of pilots to import."""

from typing import Any

import numpy as np
import pandas as pd

import larl
from tests.service.host import Host

ROWS = 12
ARMS = ["a", "b"]


def pilot(units: int = 2, context: bool = False) -> pd.DataFrame:
    """A log with missing rewards and steps without an arm, in order of time."""
    draw, count = np.random.default_rng(5), ROWS * units
    frame = pd.DataFrame(
        {
            "t": np.repeat(np.arange(ROWS), units),
            "unit": [f"p{i}" for i in range(units)] * ROWS,
            "arm": draw.choice(ARMS, count).astype(object),
            "reward": np.where(draw.random(count) < 0.2, np.nan, draw.normal(size=count)),
        }
    )
    frame.loc[[3, 8], ["arm", "reward"]] = None
    return frame.assign(context_0=draw.normal(size=count)) if context else frame


def steps_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return larl.logs.read_steps(frame, context=[name for name in frame if name == "context_0"])


def rows_of(host: Host) -> list[Any]:
    return [event[:7] + event[8:] for event in host.journal.select()]
