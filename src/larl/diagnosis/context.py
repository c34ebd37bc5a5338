"""Rewards without what a context explains: a linear effect for each arm, estimated within the unit."""

from dataclasses import replace

import numpy as np

from larl.diagnosis.kernels import Floats, Ints
from larl.diagnosis.log import Log
from larl.diagnosis.table import indicators

ENOUGH = 5  # rewards of an arm for each column of the context; with fewer, all arms share one effect
FEW_PHASES = 8  # phases of a period that get an effect each; more get two harmonics


def adjust(log: Log, columns: Floats, names: tuple[str, ...]) -> Log:
    """The log with the effect of these columns (one row for each reward) taken off, as if each were at its mean.

    Rewards and columns are compared with their mean in the unit and arm, so that neither levels of units nor means of
    arms are taken for an effect.
    """
    away = within(log, np.column_stack([log.reward, columns - columns.mean(axis=0)]))
    effect = np.empty((log.arms, columns.shape[1]))
    few = []
    pooled = np.linalg.lstsq(away[:, 1:], away[:, 0], rcond=1e-10)[0]
    for arm in range(log.arms):
        mine = log.arm == arm
        if mine.sum() < ENOUGH * columns.shape[1]:
            effect[arm] = pooled
            few.append(log.labels[arm])
        else:
            effect[arm] = np.linalg.lstsq(away[mine, 1:], away[mine, 0], rcond=1e-10)[0]
    reward = log.reward - np.einsum("ij,ij->i", columns - columns.mean(axis=0), effect[log.arm])
    notes = [
        f"Rewards are adjusted for {' and '.join(names)}: its linear effect in each arm is taken off, and all answers "
        "are about what remains."
    ]
    if few and len(few) < log.arms:
        notes.append(f"Too few rewards for an effect of their own, so that of all arms is used: {', '.join(few)}.")
    elif few:
        notes.append("There are too few rewards for an effect in each arm: all arms share one.")
    return replace(
        log, reward=reward, observed=log.observed_rewards, adjusted=log.adjusted + names, notes=(*log.notes, *notes)
    )


def within(log: Log, values: Floats) -> Floats:
    """Columns less their mean in each arm of each unit."""
    cell: Ints = log.unit * log.arms + log.arm
    _, cell, size = np.unique(cell, return_inverse=True, return_counts=True)
    result = values.copy()
    for _ in range(2):  # twice, so that a large offset costs no digits
        for column in range(values.shape[1]):
            result[:, column] -= (np.bincount(cell, result[:, column]) / size)[cell]
    return result


def phase_columns(phase: Floats, whole: int) -> Floats:
    """Columns for a phase from 0 to 1: an indicator for each of `whole` parts if few of them occur, else harmonics."""
    part = np.floor(phase * whole + 1e-9).astype(np.int64) % whole
    if np.unique(part).size <= FEW_PHASES:
        return indicators(part.astype(str), "phase")
    angle = 2.0 * np.pi * np.multiply.outer(phase, [1.0, 2.0])
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=1)


def hour_columns(clock: Floats) -> Floats:
    """The hour of the day of local times."""
    return phase_columns(clock / 86_400.0 % 1.0, 24)


def weekday_columns(clock: Floats) -> Floats:
    """The day of the week of local times."""
    return phase_columns(clock / 86_400.0 % 7.0 / 7.0, 7)


CALENDAR = {"hour": hour_columns, "weekday": weekday_columns}
