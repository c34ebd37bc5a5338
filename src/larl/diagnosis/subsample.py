"""A part of a long log, spread evenly over it, on which a fit takes seconds."""

from dataclasses import replace

import numpy as np

from larl.diagnosis.log import Log

PIECE = 250  # rows of one unit in a row, at most
MOST_ROWS = 2500
MOST_ARMS = 20  # that are fitted: the most played
NUMBERS = 100_000  # rows × coordinates of a fit, at most


def most_rows(arms: int) -> int:
    """How many rows are fitted: fewer where many arms make many coordinates."""
    return int(min(MOST_ROWS, NUMBERS // (3 * arms + 12)))


def pieces(log: Log, rows: int) -> Log:
    """The log itself if it has no more rows than this; else pieces of it, evenly spread over units and time.

    A piece that does not begin its unit starts from the long run (gap −1).
    """
    if log.rows <= rows:
        return log
    begins = np.flatnonzero(log.gap <= 0)
    length = np.diff(np.append(begins, log.rows))
    starts = np.concatenate([np.arange(b, b + n, PIECE) for b, n in zip(begins, length, strict=True)])
    ends = np.append(starts[1:], log.rows)
    wanted = max(1, int(rows * starts.size / log.rows))
    chosen = np.unique(np.linspace(0, starts.size - 1, wanted).astype(int))
    kept = np.concatenate([np.arange(starts[i], ends[i]) for i in chosen])[:rows]
    gap = log.gap.copy()
    gap[np.setdiff1d(starts, begins)] = -1
    names, unit = np.unique(log.unit[kept], return_inverse=True)
    return replace(
        log,
        arm=log.arm[kept],
        gap=gap[kept],
        reward=log.reward[kept],
        step=log.step[kept],
        unit=unit.astype(np.int64),
        units=max(names.size, min(log.units, 2)),
        time=None,
        clock=None,
        observed=None,
    )


def most_played(log: Log) -> Log:
    """The log without the rewards of all but the most played arms."""
    if log.arms <= MOST_ARMS:
        return log
    chosen = np.sort(np.argsort(-log.plays, kind="stable")[:MOST_ARMS])
    kept = np.isin(log.arm, chosen)
    first = np.diff(log.unit[kept], prepend=-1) != 0
    passed = np.cumsum(log.gap)  # a unit's first row adds nothing
    gap = np.where(first, 0, np.diff(passed[kept], prepend=0))
    names, unit = np.unique(log.unit[kept], return_inverse=True)
    return replace(
        log,
        arm=np.searchsorted(chosen, log.arm[kept]),
        gap=gap,
        reward=log.reward[kept],
        step=log.step[kept],
        unit=unit.astype(np.int64),
        units=names.size,
        labels=tuple(log.labels[i] for i in chosen),
        time=None,
        clock=None,
        observed=None,
    )
