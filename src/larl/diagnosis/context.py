"""Remove the linear effect of contexts from the rewards, for each arm, estimated within units."""

from dataclasses import replace

import numpy as np

from larl.diagnosis.kernels import Floats, Ints
from larl.diagnosis.log import Log
from larl.logs.table import indicators

MIN_REWARDS_PER_COLUMN = 5  # an arm with fewer rewards per context column gets the effect of all arms
MAX_INDICATORS = 8  # a period with more phases is modelled by two harmonics


def adjust(log: Log, columns: Floats, names: tuple[str, ...]) -> Log:
    """Return the log with rewards as they would be if every column (one row per reward) were at its mean.

    The regression uses deviations from the mean of each unit and arm, so levels of units and means of arms do not count
    as effects.
    """
    centred = centre_within_cells(log, np.column_stack([log.reward, columns - columns.mean(axis=0)]))
    effect = np.empty((log.arms, columns.shape[1]))
    pooled_arms = []
    pooled = np.linalg.lstsq(centred[:, 1:], centred[:, 0], rcond=1e-10)[0]
    for arm in range(log.arms):
        rows = log.arm == arm
        if rows.sum() < MIN_REWARDS_PER_COLUMN * columns.shape[1]:
            effect[arm] = pooled
            pooled_arms.append(log.labels[arm])
        else:
            effect[arm] = np.linalg.lstsq(centred[rows, 1:], centred[rows, 0], rcond=1e-10)[0]
    reward = log.reward - np.einsum("ij,ij->i", columns - columns.mean(axis=0), effect[log.arm])
    notes = [
        f"Rewards are adjusted for {' and '.join(names)}: the linear effect in each arm is removed, and all answers "
        "are about the adjusted rewards."
    ]
    if pooled_arms and len(pooled_arms) < log.arms:
        notes.append(
            "These arms have too few rewards for an effect of their own; the effect of all arms is used: "
            f"{', '.join(pooled_arms)}."
        )
    elif pooled_arms:
        notes.append("There are too few rewards to estimate an effect for each arm; all arms share one effect.")
    return replace(
        log, reward=reward, raw_reward=log.observed_rewards, adjusted=log.adjusted + names, notes=(*log.notes, *notes)
    )


def centre_within_cells(log: Log, values: Floats) -> Floats:
    """Return the columns minus their mean in each arm of each unit."""
    cell: Ints = log.unit * log.arms + log.arm
    _, cell, size = np.unique(cell, return_inverse=True, return_counts=True)
    result = values.copy()
    for _ in range(2):  # twice, because a large offset loses digits in the first pass
        for column in range(values.shape[1]):
            result[:, column] -= (np.bincount(cell, result[:, column]) / size)[cell]
    return result


def phase_columns(phase: Floats, parts: int) -> Floats:
    """Return columns for a phase in [0, 1): an indicator for each of `parts` parts if few occur, else harmonics."""
    part = np.floor(phase * parts + 1e-9).astype(np.int64) % parts
    if np.unique(part).size <= MAX_INDICATORS:
        return indicators(part.astype(str), "phase")
    angle = 2.0 * np.pi * np.multiply.outer(phase, [1.0, 2.0])
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=1)


def hour_columns(clock: Floats) -> Floats:
    """Return columns for the hour of the day of local times."""
    return phase_columns(clock / 86_400.0 % 1.0, 24)


def weekday_columns(clock: Floats) -> Floats:
    """Return columns for the day of the week of local times."""
    return phase_columns(clock / 86_400.0 % 7.0 / 7.0, 7)


CALENDAR_COLUMNS = {"hour": hour_columns, "weekday": weekday_columns}
