"""The five questions and their answers in plain English, each with a number and its interval."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from larl.diagnosis.drift import MIN_DEGREES_OF_FREEDOM, SIGNIFICANCE_LEVEL, Drift
from larl.diagnosis.estimates import MAX_FORECAST, MIN_SHARE, Estimates, Interval, central_interval
from larl.diagnosis.log import Log
from larl.diagnosis.periodic import PeriodTest
from larl.diagnosis.replay import ReplayResult, world_interval
from larl.diagnosis.shared_drift import SharedDrift

NO_INTERVAL = Interval(math.nan, math.nan, math.nan)
QUESTIONS = (
    "Is the reward drifting beyond noise?",
    "Does it matter for choosing arms?",
    "How far does the past predict?",
    "Which policy and which s would have been right?",
    "What would a better policy have saved?",
)


class Answer(NamedTuple):
    """The answer to one question: a verdict, one or two sentences, and the number they are based on."""

    question: str
    verdict: str
    answer: str
    measure: str  # what the number is
    interval: Interval

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON types."""
        return {
            "question": self.question,
            "verdict": self.verdict,
            "answer": self.answer,
            "measure": self.measure,
            "found": list(self.interval),
        }


def answer_questions(
    log: Log,
    drift: Drift,
    estimates: Estimates | None,
    replay: ReplayResult | None,
    *,
    periods: Sequence[PeriodTest],
    shared_drift: SharedDrift,
) -> list[Answer]:
    """Return the five answers in order. Without estimates the log is too short, and every answer says so."""
    if estimates is None:
        verdict, reason = explain_too_little_data(log, drift)
        first = _add_periods(Answer(QUESTIONS[0], verdict, reason, "", NO_INTERVAL), periods)
        others = [Answer(question, verdict, "See question 1.", "", NO_INTERVAL) for question in QUESTIONS[1:]]
        return [first, *others]
    return [
        _add_shared_drift(_add_periods(_answer_drift(drift, estimates), periods), shared_drift),
        _answer_relevance(log, drift, estimates),
        _answer_predictability(estimates),
        _answer_policy(drift, estimates, replay),
        _answer_savings(log, estimates, replay),
    ]


def _add_periods(answer: Answer, periods: Sequence[PeriodTest]) -> Answer:
    """Return the first answer with a sentence about the periods that were detected."""
    detected = [each for each in periods if each.is_detected]
    if not detected:
        return answer
    names = " and of ".join(
        f"{'one ' * each.period.isalpha()}{each.period} ({format_p_value(each.p_value)})" for each in detected
    )
    contexts = " and ".join(each.context for each in detected)
    text = (
        f"Rewards have a period of {names}: use {contexts} as a context. The periodic effect is removed from the "
        f"rewards, and all answers are about the adjusted rewards. {answer.answer}"
    )
    use = "periodic: use it as a context"
    return answer._replace(verdict=f"yes, and {use}" if answer.verdict == "yes" else use, answer=text)


def _add_shared_drift(answer: Answer, shared_drift: SharedDrift) -> Answer:
    """Return the first answer with a sentence about shared drift, if it was detected."""
    if not shared_drift.is_detected:
        return answer
    text = (
        f"{answer.answer} Units drift together: rewards of different units at the same time have a correlation of "
        f"{shared_drift.correlation:.2f} ({format_p_value(shared_drift.p_value)}). If the cause is known, such as "
        "weather or news, use it as a context. The fit gives every unit its own state and does not use shared drift."
    )
    return answer._replace(answer=text)


def explain_too_little_data(log: Log, drift: Drift) -> tuple[str, str]:
    """Return the verdict for a log that cannot be fitted, and a sentence that says why and what is needed."""
    cells = np.unique(log.unit * log.arms + log.arm).size
    if drift.degrees_of_freedom == 0 and log.rows >= MIN_DEGREES_OF_FREEDOM + cells:
        return "nothing varies", "All rewards of an arm are equal: there is neither noise nor drift."
    if drift.degrees_of_freedom >= MIN_DEGREES_OF_FREEDOM:
        text = (
            "No two rewards of a unit are within 10 steps of each other, so memory cannot be measured. Log more often."
        )
        return "too little data", text
    text = (
        f"The log has {log.rows:,} rewards of {log.arms} arm{'s' * (log.arms > 1)} and {log.units:,} "
        f"unit{'s' * (log.units > 1)}. Subtracting the mean of each arm of each unit leaves {log.rows - cells} degrees "
        f"of freedom; at least {MIN_DEGREES_OF_FREEDOM} are needed. "
    )
    if 1 < log.units == log.rows:
        use = "if the log has one unit, use --no-unit (unit=False)"
        return "too little data", f"{text}Every reward has its own unit in column {log.unit_column!r}: {use}."
    return "too little data", (
        f"{text}A log like this needs at least {MIN_DEGREES_OF_FREEDOM + cells:,} rewards, and about 50 per arm to "
        "detect a moderate drift."
    )


def format_share(value: Interval) -> str:
    """Return a share with its interval, in percent."""
    return f"{100 * value.value:.0f}% ({100 * value.low:.0f}–{100 * value.high:.0f}%)"


def format_p_value(value: float) -> str:
    """Return a p-value with three digits."""
    return f"p = {value:.3f}" if value >= 0.001 else "p < 0.001"


def format_interval(value: Interval) -> str:
    """Return a number with its interval, to two significant digits of the interval's width."""
    width = max(value.high - value.low, abs(value.value) * 1e-3)
    if not width > 0.0:
        return "0 (0 to 0)"
    digits = max(0, 1 - math.floor(math.log10(width)))
    text, low, high = (_format_number(each, digits) for each in value)
    return f"{text} ({low} to {high})"


def _format_number(value: float, digits: int) -> str:
    """Return a number with `digits` decimals, without a negative zero."""
    if digits > 6 or abs(value) >= 1e7:
        return f"{value:.2e}".replace("-", "−")
    text = f"{value:,.{digits}f}"
    return ("0" + text[2:] if text.strip("-0.,") == "" and text.startswith("-") else text).replace("-", "−")


def _answer_drift(drift: Drift, estimates: Estimates) -> Answer:
    """Answer question 1 from the test of drift."""
    share, p = estimates.interval_of("state_share"), format_p_value(drift.p_value)
    measure = "share of the variance due to the hidden state"
    if drift.verdict == "drift":
        text = (
            f"Constant means and independent noise do not explain the log ({p}). A hidden state explains "
            f"{format_share(share)} of the variance of an arm's rewards."
        )
        return Answer(QUESTIONS[0], "yes", text, measure, share)
    more = ""
    if drift.rewards_needed > drift.degrees_of_freedom:
        needed = _round_up(drift.rewards_needed)
        more = f" If the small observed effect is real, about {needed} rewards are needed to detect it."
    level = f"drift is reported if p ≤ {SIGNIFICANCE_LEVEL}"
    text = f"Constant means and independent noise explain the log ({p}; {level}).{more}"
    return Answer(QUESTIONS[0], "not shown", text, measure, share)


def _round_up(count: int) -> str:
    """Return a count rounded up to two significant digits."""
    unit = 10 ** max(len(str(count)) - 2, 0)
    return f"{-(-count // unit) * unit:,}"


def _answer_relevance(log: Log, drift: Drift, estimates: Estimates) -> Answer:
    """Answer question 2 from the regret of the best fixed arm."""
    fixed, switches = estimates.interval_of("fixed_arm_regret"), estimates.interval_of("switch_share")
    measure = "regret per step of the best fixed arm, relative to knowing the state"
    if log.arms < 2:
        return Answer(QUESTIONS[1], "no choice", "The log has only one arm.", measure, NO_INTERVAL)
    text = (
        f"Another arm was better than the best fixed arm at {format_share(switches)} of the log's steps. A policy that "
        f"knows the state would have gained {format_interval(fixed)} per step over that arm."
    )
    p = format_p_value(estimates.same_beta_p_value)
    same = f" Test of equal β for all arms, so that drift moves them together: {p}."
    if drift.verdict != "drift":
        return Answer(
            QUESTIONS[1],
            "not shown",
            f"No drift was shown. If there is drift: {text[0].lower()}{text[1:]}",
            measure,
            fixed,
        )
    if estimates.same_beta_p_value > SIGNIFICANCE_LEVEL:
        text = f"The arms may drift together; then the best arm stays the same.{same} {text}"
        return Answer(QUESTIONS[1], "not shown", text, measure, fixed)
    if switches.high < MIN_SHARE:
        return Answer(QUESTIONS[1], "hardly", text + same, measure, fixed)
    return Answer(QUESTIONS[1], "yes" if switches.low >= MIN_SHARE else "perhaps", text + same, measure, fixed)


def _answer_predictability(estimates: Estimates) -> Answer:
    """Answer question 3 from the forecasts."""
    horizon, one_step = estimates.forecast_horizon, central_interval(estimates.forecasts[:, 0])
    steps = [f"{'more than ' if x >= MAX_FORECAST else ''}{x:.0f}" for x in horizon]
    verdict = f"{steps[0]} step{'s' * (horizon.value != 1)}" if one_step.value >= MIN_SHARE else "hardly at all"
    text = (
        f"One step ahead the past predicts {format_share(one_step)} of the variance of an arm's rewards (R²). At least "
        f"{100 * MIN_SHARE:.0f}% is predicted up to {steps[0]} steps ahead ({steps[1]} to {steps[2]})."
    )
    return Answer(QUESTIONS[2], verdict, text, "R² one step ahead", one_step)


def _answer_policy(drift: Drift, estimates: Estimates, replay: ReplayResult | None) -> Answer:
    """Answer question 4 from the replays and the orders."""
    low, high = estimates.orders
    order = f"k = {low}" + (f" to {high}" if high > low else "")
    memory = (
        f"The most probable order of the hidden process is k = {estimates.best}; 95% of the probability is on {order}."
    )
    if drift.verdict != "drift" and low == 0:
        memory += " No drift was shown, so a policy for constant means is not ruled out."
    if replay is None or replay.best_s is None:
        text = f"{memory} s is chosen by replays, and LARL was not replayed." if replay is None else memory
        k = Interval(float(estimates.best), float(low), float(high))
        verdict = replay.best if replay else f"not replayed; k = {estimates.best}"
        return Answer(QUESTIONS[3], verdict, text, "order k", k)
    text = f"In worlds fitted to the log {replay.best} has the smallest regret"
    text += f"; not clearly worse: {', '.join(replay.not_clearly_worse)}." if replay.not_clearly_worse else "."
    good, of_larl = replay.good_s, replay.lookbacks[replay.best_s]
    others = [str(s) for s in good if s != replay.best_s]
    not_worse = f" (not clearly worse: s = {', '.join(others)})" if others else ""
    text += f" Of LARL, {of_larl} has the smallest regret{not_worse}. {memory}"
    best_s = Interval(float(replay.best_s), float(min(good)), float(max(good)))
    verdict = replay.best if replay.best == of_larl else f"{replay.best}; of LARL: {of_larl}"
    return Answer(QUESTIONS[3], verdict, text, "s of LARL", best_s)


def _answer_savings(log: Log, estimates: Estimates, replay: ReplayResult | None) -> Answer:
    """Answer question 5 from the replays."""
    measure = "reward per step"
    if replay is None:
        if log.arms < 2:
            return Answer(QUESTIONS[4], "no choice", "The log has only one arm.", measure, NO_INTERVAL)
        logged = estimates.interval_of("log_regret")
        text = f"The log's own choices had a regret of {format_interval(logged)} per step. Nothing was replayed."
        return Answer(QUESTIONS[4], "not replayed", text, measure, logged)
    saved, limit = replay.saving_of(replay.best), replay.saving_of(replay.oracle)
    logged = world_interval(replay.log_regret)
    text = (
        f"The log's own choices had a regret of {format_interval(logged)} per step, relative to knowing the state. "
        f"{replay.best} would have saved {format_interval(saved)} of it; a policy that knows every parameter, "
        f"{format_interval(limit)}."
    )
    verdict = (
        f"{format_interval(saved)} per step"
        if saved.low > 0.0
        else ("nothing" if saved.high <= 0.0 else "perhaps nothing")
    )
    return Answer(QUESTIONS[4], verdict, text, measure, saved)
