"""Reduce a long log to a sample on which a fit takes seconds."""

from dataclasses import replace

import numpy as np

from larl.diagnosis.log import Log

SEGMENT_ROWS = 250  # consecutive rows of one unit, at most
MAX_ROWS = 2500
MAX_ARMS = 20
MAX_NUMBERS = 100_000  # rows × coordinates of a fit


def max_rows(arms: int) -> int:
    """Return the number of rows to fit. Many arms make many coordinates, so it is smaller."""
    return int(min(MAX_ROWS, MAX_NUMBERS // (3 * arms + 12)))


def subsample(log: Log, rows: int) -> Log:
    """Return the log if it has at most `rows` rows; else segments of it, evenly spread over units and time.

    A segment that is not the first of its unit has gap −1: it has a stationary start.
    """
    if log.rows <= rows:
        return log
    unit_starts = np.flatnonzero(log.gap <= 0)
    length = np.diff(np.append(unit_starts, log.rows))
    starts = np.concatenate([np.arange(b, b + n, SEGMENT_ROWS) for b, n in zip(unit_starts, length, strict=True)])
    ends = np.append(starts[1:], log.rows)
    segments = max(1, int(rows * starts.size / log.rows))
    chosen = np.unique(np.linspace(0, starts.size - 1, segments).astype(int))
    kept = np.concatenate([np.arange(starts[i], ends[i]) for i in chosen])[:rows]
    gap = log.gap.copy()
    gap[np.setdiff1d(starts, unit_starts)] = -1
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
        raw_reward=None,
    )


def keep_most_played(log: Log) -> Log:
    """Return the log with the rewards of its MAX_ARMS most played arms."""
    if log.arms <= MAX_ARMS:
        return log
    chosen = np.sort(np.argsort(-log.plays, kind="stable")[:MAX_ARMS])
    kept = np.isin(log.arm, chosen)
    first = np.diff(log.unit[kept], prepend=-1) != 0
    elapsed = np.cumsum(log.gap)  # the gap of a unit's first row is 0
    gap = np.where(first, 0, np.diff(elapsed[kept], prepend=0))
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
        raw_reward=None,
    )
