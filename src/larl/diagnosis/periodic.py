"""Is there a periodic component, such as the time of day? A spectral test that is not misled by drift.

The power of the residuals at a period is compared with the power at neighbouring frequencies. Drift has a smooth
spectrum and raises both; a period raises only its own frequency. With a smooth spectrum the ratio has an F
distribution.

If decisions are made at 9, 14 and 19 o'clock, slow drift also appears at one cycle per day (aliasing). So the power at
a frequency f near the period's f₀ is what a wave explains beyond a wave of frequency f − f₀; at f₀ that is the mean.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.special import fdtrc

from larl.diagnosis.context import adjust, hour_columns, phase_columns, weekday_columns
from larl.diagnosis.drift import SIGNIFICANCE_LEVEL, residuals
from larl.diagnosis.kernels import Floats
from larl.diagnosis.log import Log

DAY = 86_400.0
HARMONICS = {"day": 2, "week": 3}
LENGTH = {"day": DAY, "week": 7 * DAY}
STEP_HARMONICS = 2
MAX_PERIOD = 50  # steps; for logs without dates
MIN_CYCLES, MIN_STEP_CYCLES = 8, 20  # cycles that a log must span: for calendar periods, and for periods in steps
NEAREST, MIN_NEIGHBOURS, MAX_NEIGHBOURS = 2, 6, 16  # distance of the nearest neighbour, in frequency resolutions
MAX_ROWS = 20_000  # used in the search for periods in steps
MAX_PERIODS = 3  # removed from a log
MIN_PARTS, MAX_PARTS = 4, 8  # of a log, over which a period in steps must keep its phase


class PeriodTest(NamedTuple):
    """Result of a test for a periodic component."""

    p_value: float  # nan if nothing could be tested
    period: str  # with the smallest p-value: "day", "week" or "12 steps"
    context: str  # the context to use for it
    tested: str  # description of the periods that were tested

    @property
    def is_detected(self) -> bool:
        """Whether there is a periodic component."""
        return self.p_value <= SIGNIFICANCE_LEVEL


class CandidateFrequency(NamedTuple):
    """A frequency to test, and the period it belongs to."""

    period: str
    frequency: float


def find_period(log: Log) -> PeriodTest:
    """Test the time of day and the day of the week if there are dates, else periods of 3 to 50 steps."""
    residual, _ = residuals(log)
    weights = np.ones((1, log.arms)) if log.arms < 2 else np.array([np.ones(log.arms), arm_contrast(log)])
    if log.clock is not None:
        time, highest, rows = log.clock, math.inf, log.rows
        tested = "the time of day and the day of the week"
    else:
        time, highest, rows = step_numbers(log), 0.5, min(log.rows, MAX_ROWS)
        tested = f"periods of 3 to {MAX_PERIOD} steps"
    time, series = time[:rows] - time[:rows].min(), (weights[:, log.arm] * residual)[:, :rows]
    frequencies = candidate_frequencies(log, float(np.ptp(time)))
    tests = [(each, peak_p_values(series, time, each.frequency, highest)) for each in frequencies]
    peaks = [(each, p_values) for each, p_values in tests if p_values is not None]
    if not peaks:
        return PeriodTest(math.nan, "", "", tested)
    (period, frequency), p_values = min(peaks, key=lambda each: float(each[1].min()))
    p = min(1.0, float(p_values.min()) * len(peaks) * len(weights))
    if log.clock is None:
        p = max(p, float(phase_p_values(series, time, frequency)[p_values.argmin()]))
    contexts = {"day": "the hour of the day", "week": "the day of the week"}
    return PeriodTest(p, period, contexts.get(period, f"the step number modulo {period.split()[0]}"), tested)


def arm_contrast(log: Log) -> Floats:
    """Return 1 for the most played arm and −1 for the others. It shows effects that differ between arms."""
    signs = -np.ones(log.arms)
    signs[int(log.plays.argmax())] = 1.0
    return signs


def step_numbers(log: Log) -> Floats:
    """Return the step of each row: the time column if it numbers steps, so that units are in phase, else `log.step`."""
    if log.time is not None:
        same_unit = np.diff(log.unit) == 0
        if np.array_equal(np.diff(log.time)[same_unit], np.diff(log.step)[same_unit]):
            return log.time
    return log.step.astype(float)


def candidate_frequencies(log: Log, span: float) -> list[CandidateFrequency]:
    """Return the frequencies to test, of periods of which the log spans enough cycles."""
    if log.clock is not None:
        return [
            CandidateFrequency(name, h / LENGTH[name])
            for name, count in HARMONICS.items()
            for h in range(1, count + 1)
            if span >= MIN_CYCLES * LENGTH[name]
        ]
    longest = int(min(MAX_PERIOD, (span + 1.0) / MIN_STEP_CYCLES))
    fractions = {Fraction(h, p) for p in range(3, longest + 1) for h in range(1, STEP_HARMONICS + 1) if 2 * h < p}
    return [CandidateFrequency(f"{f.denominator} steps", float(f)) for f in sorted(fractions)]


def peak_p_values(series: Floats, time: Floats, frequency: float, highest: float) -> Floats | None:
    """Return the p-value of each series' power at a frequency; None if there are too few neighbouring frequencies."""
    resolution = 1.0 / float(np.ptp(time))
    furthest = int(0.5 * frequency / resolution)
    neighbours = [frequency + side * j * resolution for j in range(NEAREST, furthest + 1) for side in (-1, 1)]
    neighbours = [f for f in neighbours if f <= highest][:MAX_NEIGHBOURS]
    power, rank = _power(series, time, frequency, 0.0)
    if len(neighbours) < MIN_NEIGHBOURS or rank == 0:
        return None
    others = [_power(series, time, f, f - frequency) for f in neighbours]
    degrees_of_freedom = sum(each for _, each in others)
    background = np.sum([each for each, _ in others], axis=0) / degrees_of_freedom
    result: Floats = fdtrc(rank, degrees_of_freedom, (power / rank) / np.maximum(background, 1e-300))
    return result


def _power(series: Floats, time: Floats, frequency: float, alias: float) -> tuple[Floats, int]:
    """Return the sum of squares that a wave explains of each series beyond the alias wave, and the wave's rank."""
    nuisance = _wave(time, alias) if alias else np.ones((1, time.size))
    rows = np.concatenate([nuisance, _wave(time, frequency)])
    # einsum, because the BLAS threads behind @ make this many times slower on busy cores.
    gram, products = np.einsum("it,jt->ij", rows, rows), np.einsum("it,st->is", rows, series)
    k = len(nuisance)
    projection = gram[k:, :k] @ np.linalg.pinv(gram[:k, :k], hermitian=True)
    values, vectors = np.linalg.eigh(gram[k:, k:] - projection @ gram[:k, k:])
    is_used = values > 1e-9 * time.size
    coefficients = vectors[:, is_used].T @ (products[k:] - projection @ products[:k])
    return np.sum(coefficients**2 / values[is_used, None], axis=0), int(is_used.sum())


def _wave(time: Floats, frequency: float) -> Floats:
    """Return the cosine and the sine of a frequency, (2, rows)."""
    angle = 2.0 * np.pi * frequency * time
    return np.array([np.cos(angle), np.sin(angle)])


def phase_p_values(series: Floats, time: Floats, frequency: float) -> Floats:
    """Return the p-value of each series for a wave whose phase is constant over the log.

    The wave is fitted to several parts of the log. An oscillating drift has a spectral peak too, but its phase changes.
    """
    span = float(np.ptp(time))
    parts = int(np.clip(span * frequency / 2.0, MIN_PARTS, MAX_PARTS))
    part = np.minimum((time / (span / parts)).astype(np.int64), parts - 1)
    fitted = []
    for number in range(parts):
        in_part = part == number
        rows = np.concatenate([np.ones((1, int(in_part.sum()))), _wave(time[in_part], frequency)])
        gram = np.einsum("it,jt->ij", rows, rows)
        fitted.append((np.linalg.pinv(gram, hermitian=True) @ np.einsum("it,st->is", rows, series[:, in_part]))[1:])
    coefficients = np.array(fitted)  # (parts, 2, series)
    mean = coefficients.mean(axis=0)
    variance = np.sum((coefficients - mean) ** 2, axis=(0, 1)) / (2.0 * (parts - 1))
    result: Floats = fdtrc(2, 2 * (parts - 1), parts * np.sum(mean**2, axis=0) / 2.0 / np.maximum(variance, 1e-300))
    return result


def remove_period(log: Log, period: PeriodTest) -> Log:
    """Return the log without a periodic component."""
    if log.clock is not None:
        columns = (hour_columns if period.period == "day" else weekday_columns)(log.clock)
    else:
        length = int(period.period.split()[0])
        columns = phase_columns(step_numbers(log) / length % 1.0, length)
    return adjust(log, columns, (period.context,))


def remove_periods(log: Log) -> tuple[Log, tuple[PeriodTest, ...]]:
    """Return the log without its periodic components, and all tests in order, each on what the previous one left."""
    periods: list[PeriodTest] = []
    while not periods or (periods[-1].is_detected and len(periods) < MAX_PERIODS):
        periods.append(find_period(log))
        if periods[-1].is_detected:
            log = remove_period(log, periods[-1])
    return log, tuple(periods)
