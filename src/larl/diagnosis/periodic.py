"""Is there a periodic component, such as the time of day? A test that a drift without a period passes.

The power of the residuals at a period is compared with the power at neighbouring frequencies. A drift has a smooth
spectrum, so it raises both alike, while a period raises one alone. Under a smooth spectrum the ratio has an F law.

Decisions at 9, 14 and 19 o'clock see a slow drift at one cycle a day too (aliasing). So the power at a frequency f near
the period's f₀ is what is left when f − f₀ is fitted as well; at f₀ itself that is the mean.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.special import fdtrc

from larl.diagnosis.context import adjust, hour_columns, phase_columns, weekday_columns
from larl.diagnosis.drift import LEVEL, residuals
from larl.diagnosis.kernels import Floats
from larl.diagnosis.log import Log

DAY = 86_400.0
HARMONICS = {"day": 2, "week": 3}
LENGTH = {"day": DAY, "week": 7 * DAY}
STEP_HARMONICS = 2
LONGEST = 50  # steps of a period that is looked for where there are no dates
FEWEST_CYCLES, FEWEST_STEP_CYCLES = 8, 20  # periods that a log has to span: one that is known, one that is looked for
NEAREST, FEWEST, MOST = 2, 6, 16  # neighbours: the nearest, in resolutions of the log; how many, at least and at most
MOST_ROWS = 20_000  # of a search over steps
MOST_PERIODS = 3  # that are taken off
PARTS = (4, 8)  # of a log, at least and at most, over which a period in steps has to keep its phase


class Periodic(NamedTuple):
    """What the test found."""

    p_value: float  # nan where nothing could be tested
    period: str  # the likeliest: "day", "week" or "12 steps"
    context: str  # what to use as a context
    tested: str  # which periods were looked for

    @property
    def found(self) -> bool:
        """Whether there is a periodic component."""
        return self.p_value <= LEVEL


class Candidate(NamedTuple):
    """A frequency of a period."""

    period: str
    frequency: float


def find_periodic(log: Log) -> Periodic:
    """Test the time of day and the day of the week where there are dates, else periods of 3 to 50 steps."""
    away, _ = residuals(log)
    weights = np.ones((1, log.arms)) if log.arms < 2 else np.array([np.ones(log.arms), contrast(log)])
    if log.clock is not None:
        time, highest, rows = log.clock, math.inf, log.rows
        tested = "the time of day and the day of the week"
    else:
        time, highest, rows = step_numbers(log), 0.5, min(log.rows, MOST_ROWS)
        tested = f"periods of 3 to {LONGEST} steps"
    time, series = time[:rows] - time[:rows].min(), (weights[:, log.arm] * away)[:, :rows]
    found = [(each, peak(series, time, each.frequency, highest)) for each in candidates(log, float(np.ptp(time)))]
    peaks = [(each, p_values) for each, p_values in found if p_values is not None]
    if not peaks:
        return Periodic(math.nan, "", "", tested)
    (period, frequency), p_values = min(peaks, key=lambda each: float(each[1].min()))
    p = min(1.0, float(p_values.min()) * len(peaks) * len(weights))
    if log.clock is None:
        p = max(p, float(persistence(series, time, frequency)[p_values.argmin()]))
    contexts = {"day": "the hour of the day", "week": "the day of the week"}
    return Periodic(p, period, contexts.get(period, f"the step number modulo {period.split()[0]}"), tested)


def contrast(log: Log) -> Floats:
    """Signs of arms in which effects that differ between arms are seen: the most played arm against the others."""
    signs = -np.ones(log.arms)
    signs[int(log.plays.argmax())] = 1.0
    return signs


def step_numbers(log: Log) -> Floats:
    """The step of each row: as numbered in the time column, so that units are in phase, else counted in the unit."""
    if log.time is not None:
        same = np.diff(log.unit) == 0
        if np.array_equal(np.diff(log.time)[same], np.diff(log.step)[same]):
            return log.time
    return log.step.astype(float)


def candidates(log: Log, span: float) -> list[Candidate]:
    """Frequencies to look at, of periods of which the log spans enough."""
    if log.clock is not None:
        return [
            Candidate(name, h / LENGTH[name])
            for name, count in HARMONICS.items()
            for h in range(1, count + 1)
            if span >= FEWEST_CYCLES * LENGTH[name]
        ]
    longest = int(min(LONGEST, (span + 1.0) / FEWEST_STEP_CYCLES))
    fractions = {Fraction(h, p) for p in range(3, longest + 1) for h in range(1, STEP_HARMONICS + 1) if 2 * h < p}
    return [Candidate(f"{f.denominator} steps", float(f)) for f in sorted(fractions)]


def peak(series: Floats, time: Floats, frequency: float, highest: float) -> Floats | None:
    """For each series (row) the p-value of its power at a frequency; None where there is nothing to compare with."""
    resolution = 1.0 / float(np.ptp(time))
    most = int(0.5 * frequency / resolution)
    near = [frequency + side * j * resolution for j in range(NEAREST, most + 1) for side in (-1, 1)]
    near = [f for f in near if f <= highest][:MOST]
    power, rank = _power(series, time, frequency, 0.0)
    if len(near) < FEWEST or rank == 0:
        return None
    others = [_power(series, time, f, f - frequency) for f in near]
    freedom = sum(each for _, each in others)
    background = np.sum([each for each, _ in others], axis=0) / freedom
    result: Floats = fdtrc(rank, freedom, (power / rank) / np.maximum(background, 1e-300))
    return result


def _power(series: Floats, time: Floats, frequency: float, partner: float) -> tuple[Floats, int]:
    """What a wave of a frequency explains of each series beyond a wave of the partner's, and with how many columns."""
    before = _wave(time, partner) if partner else np.ones((1, time.size))
    rows = np.concatenate([before, _wave(time, frequency)])
    # einsum and not @: threads of a linear algebra library that wait for busy cores make this many times slower.
    gram, seen = np.einsum("it,jt->ij", rows, rows), np.einsum("it,st->is", rows, series)
    k = len(before)
    project = gram[k:, :k] @ np.linalg.pinv(gram[:k, :k], hermitian=True)
    values, vectors = np.linalg.eigh(gram[k:, k:] - project @ gram[:k, k:])
    used = values > 1e-9 * time.size
    found = vectors[:, used].T @ (seen[k:] - project @ seen[:k])
    return np.sum(found**2 / values[used, None], axis=0), int(used.sum())


def _wave(time: Floats, frequency: float) -> Floats:
    angle = 2.0 * np.pi * frequency * time
    return np.array([np.cos(angle), np.sin(angle)])


def persistence(series: Floats, time: Floats, frequency: float) -> Floats:
    """For each series the p-value of a wave whose phase stays the same over the log.

    The wave is fitted to each of some parts of the log. A drift that oscillates has a peak too, but its phase changes.
    """
    span = float(np.ptp(time))
    parts = int(np.clip(span * frequency / 2.0, *PARTS))
    part = np.minimum((time / (span / parts)).astype(np.int64), parts - 1)
    fitted = []
    for one in range(parts):
        here = part == one
        rows = np.concatenate([np.ones((1, int(here.sum()))), _wave(time[here], frequency)])
        gram = np.einsum("it,jt->ij", rows, rows)
        fitted.append((np.linalg.pinv(gram, hermitian=True) @ np.einsum("it,st->is", rows, series[:, here]))[1:])
    found = np.array(fitted)  # (parts, 2, series)
    mean = found.mean(axis=0)
    spread = np.sum((found - mean) ** 2, axis=(0, 1)) / (2.0 * (parts - 1))
    result: Floats = fdtrc(2, 2 * (parts - 1), parts * np.sum(mean**2, axis=0) / 2.0 / np.maximum(spread, 1e-300))
    return result


def without(log: Log, found: Periodic) -> Log:
    """The log without its periodic component."""
    if log.clock is not None:
        columns = (hour_columns if found.period == "day" else weekday_columns)(log.clock)
    else:
        length = int(found.period.split()[0])
        columns = phase_columns(step_numbers(log) / length % 1.0, length)
    return adjust(log, columns, (found.context,))


def without_periods(log: Log) -> tuple[Log, tuple[Periodic, ...]]:
    """The log without its periodic components, and the tests that found them; the last test found none."""
    periods: list[Periodic] = []
    while not periods or (periods[-1].found and len(periods) < MOST_PERIODS):
        periods.append(find_periodic(log))
        if periods[-1].found:
            log = without(log, periods[-1])
    return log, tuple(periods)
