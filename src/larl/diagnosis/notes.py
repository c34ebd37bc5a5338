"""Sentences about how a log was read and analysed."""

import math
from typing import TYPE_CHECKING

from larl.diagnosis.answers import format_p_value

if TYPE_CHECKING:
    from larl.diagnosis.result import Diagnosis


def analysis_notes(diagnosis: "Diagnosis") -> list[str]:
    """Return how the log was read and analysed."""
    notes = list(diagnosis.log.notes)
    if diagnosis.estimates is not None:
        notes.insert(0, diagnosis.rewards.note)
    if diagnosis.fitted.arms < diagnosis.log.arms:
        notes.append(
            f"Fit and replays use the {diagnosis.fitted.arms} most played arms; steps with other arms count as steps "
            "without a reward."
        )
    if diagnosis.fitted.rows < diagnosis.log.rows:
        notes.append(
            f"The test of drift uses all rewards. The latent process was fitted to {diagnosis.fitted.rows:,} of them, "
            "in segments spread evenly over the log, so intervals are wider."
        )
    if diagnosis.log.adjusted and diagnosis.replay is not None:
        notes.append("Replays use rewards without the effects of contexts, and policies get no context.")
    return [*notes, *_negative_tests(diagnosis), *(diagnosis.replay.notes if diagnosis.replay else ())]


def _negative_tests(diagnosis: "Diagnosis") -> list[str]:
    """Return sentences about the tests that detected nothing."""
    notes = []
    if diagnosis.periods and not diagnosis.periods[-1].is_detected:
        last = diagnosis.periods[-1]
        further = "further " * (len(diagnosis.periods) > 1)
        if math.isnan(last.p_value):
            notes.append(f"The log is too short to test for {last.tested}.")
        else:
            p = format_p_value(last.p_value)
            notes.append(f"No {further}periodic component was detected ({p}; tested: {last.tested}).")
    shared = diagnosis.shared_drift
    if diagnosis.log.units > 1 and not math.isnan(shared.p_value) and not shared.is_detected:
        notes.append(f"No drift that units share was detected ({format_p_value(shared.p_value)}).")
    return notes
