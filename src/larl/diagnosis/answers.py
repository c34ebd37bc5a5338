"""The five questions and their answers in plain words, each with its number and interval."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from larl.diagnosis.drift import FEWEST, LEVEL, Drift
from larl.diagnosis.estimates import FURTHEST, WORTH, Estimates, Interval, interval
from larl.diagnosis.log import Log
from larl.diagnosis.periodic import Periodic
from larl.diagnosis.replay import KALMAN, Replay
from larl.diagnosis.together import Together

NONE = Interval(math.nan, math.nan, math.nan)
QUESTIONS = (
    "Is the reward drifting beyond noise?",
    "Does it matter for choosing arms?",
    "How far does the past predict?",
    "Which policy and which s would have been right?",
    "What would a better policy have saved?",
)


class Answer(NamedTuple):
    """One question: a verdict, a sentence or two, and the number behind it."""

    question: str
    verdict: str
    answer: str
    measure: str  # what the number is
    found: Interval


def answers(
    log: Log,
    drift: Drift,
    estimates: Estimates | None,
    replay: Replay | None,
    periods: Sequence[Periodic],
    together: Together,
) -> list[Answer]:
    """All five, in order. Without estimates there was too little to fit, and every answer says what is missing."""
    if estimates is None:
        verdict, reason = too_little(log, drift)
        first = _with_period(Answer(QUESTIONS[0], verdict, reason, "", NONE), periods)
        return [first, *(Answer(question, verdict, "As for question 1.", "", NONE) for question in QUESTIONS[1:])]
    return [
        _with_shared(_with_period(_drifting(drift, estimates), periods), together),
        _matters(log, drift, estimates),
        _predicts(estimates),
        _right(drift, estimates, replay),
        _saved(log, estimates, replay),
    ]


def _with_period(answer: Answer, periods: Sequence[Periodic]) -> Answer:
    """The first answer, if there is a period: what remains without it, and that it is better used as a context."""
    found = [each for each in periods if each.found]
    if not found:
        return answer
    names = " and of ".join(f"{'one ' * each.period.isalpha()}{each.period} ({p_of(each.p_value)})" for each in found)
    contexts = " and ".join(each.context for each in found)
    text = (
        f"Rewards have a period of {names}: use {contexts} as a context. Its effect is taken off here, and all "
        f"else is about what remains. {answer.answer}"
    )
    use = "periodic: use it as a context"
    return answer._replace(verdict=f"yes, and {use}" if answer.verdict == "yes" else use, answer=text)


def _with_shared(answer: Answer, together: Together) -> Answer:
    """The first answer, if units drift together."""
    if not together.found:
        return answer
    text = (
        f"{answer.answer} Units drift together: rewards of different units at the same time have a correlation of "
        f"{together.correlation:.2f} ({p_of(together.p_value)}). If the cause is known, such as weather or news, use "
        "it as a context; the fit gives every unit a state of its own and does not use what they share."
    )
    return answer._replace(answer=text)


def too_little(log: Log, drift: Drift) -> tuple[str, str]:
    """A verdict where there is nothing to fit: why, and what would be enough."""
    cells = np.unique(log.unit * log.arms + log.arm).size
    if drift.free == 0 and log.rows >= FEWEST + cells:
        return "nothing varies", "The rewards of each arm are all the same: there is no noise, and nothing that drifts."
    if drift.free >= FEWEST:
        text = "No two rewards of a unit are within 10 steps of each other, so no memory can be seen: log more often."
        return "too little data", text
    return "too little data", (
        f"{log.rows:,} rewards of {log.arms} arm{'s' * (log.arms > 1)} and {log.units:,} unit{'s' * (log.units > 1)} "
        f"leave {log.rows - cells} to compare, once each arm of each unit has its mean; {FEWEST} are the least. A log "
        f"such as this needs at least {FEWEST + cells:,} rewards, and some 50 for each arm to see a moderate drift."
    )


def percent(value: Interval) -> str:
    """A share with its interval."""
    return f"{100 * value.value:.0f}% ({100 * value.low:.0f}–{100 * value.high:.0f}%)"


def p_of(value: float) -> str:
    """A p-value, to three digits."""
    return f"p = {value:.3f}" if value >= 0.001 else "p < 0.001"


def number(value: Interval) -> str:
    """A number with its interval, to two digits of the interval's width."""
    width = max(value.high - value.low, abs(value.value) * 1e-3)
    if not width > 0.0:
        return "0 (0 to 0)"
    digits = max(0, 1 - math.floor(math.log10(width)))
    return f"{_plain(value.value, digits)} ({_plain(value.low, digits)} to {_plain(value.high, digits)})"


def _plain(value: float, digits: int) -> str:
    if digits > 6 or abs(value) >= 1e7:
        return f"{value:.2e}".replace("-", "−")
    text = f"{value:,.{digits}f}"
    return ("0" + text[2:] if text.strip("-0.,") == "" and text.startswith("-") else text).replace("-", "−")


def _drifting(drift: Drift, found: Estimates) -> Answer:
    share, p = found.of("share"), p_of(drift.p_value)
    measure = "share of the variance that is the hidden state's"
    if drift.verdict == "drift":
        text = (
            f"Constant means and independent noise do not explain the log ({p}). A hidden state makes up "
            f"{percent(share)} of the variance of an arm's rewards."
        )
        return Answer(QUESTIONS[0], "yes", text, measure, share)
    more = ""
    if drift.needed > drift.free:
        more = f" If the little that is seen is real, it would take about {_round(drift.needed)} rewards to show it."
    text = f"Constant means and independent noise explain the log ({p}; drift is reported if p ≤ {LEVEL}).{more}"
    return Answer(QUESTIONS[0], "not shown", text, measure, share)


def _round(count: int) -> str:
    unit = 10 ** max(len(str(count)) - 2, 0)
    return f"{-(-count // unit) * unit:,}"


def _matters(log: Log, drift: Drift, found: Estimates) -> Answer:
    fixed, moved = found.of("fixed"), found.of("moved")
    measure = "reward a step that the best fixed arm loses to knowing the state"
    if log.arms < 2:
        return Answer(QUESTIONS[1], "no choice", "The log has one arm only: there is nothing to choose.", measure, NONE)
    text = (
        f"Another arm was better than the best fixed one at {percent(moved)} of the log's steps. A policy that knows "
        f"the state would have gained {number(fixed)} a step over that arm."
    )
    same = f" Test of one β for all arms, a drift that moves them together: {p_of(found.same_beta)}."
    if drift.verdict != "drift":
        return Answer(
            QUESTIONS[1],
            "not shown",
            f"No drift was shown. If there is one: {text[0].lower()}{text[1:]}",
            measure,
            fixed,
        )
    if found.same_beta > LEVEL:
        text = f"The arms may drift together, and then their order stays.{same} {text}"
        return Answer(QUESTIONS[1], "not shown", text, measure, fixed)
    if moved.high < WORTH:
        return Answer(QUESTIONS[1], "hardly", text + same, measure, fixed)
    return Answer(QUESTIONS[1], "yes" if moved.low >= WORTH else "perhaps", text + same, measure, fixed)


def _predicts(found: Estimates) -> Answer:
    reach, one = found.reach, found.forecasts[:, 0]
    first = interval(one)
    steps = [f"{'more than ' if x >= FURTHEST else ''}{x:.0f}" for x in reach]
    verdict = f"{steps[0]} step{'s' * (reach.value != 1)}" if first.value >= WORTH else "hardly at all"
    text = (
        f"One step ahead the past predicts {percent(first)} of the variance of an arm's rewards (R²). At least "
        f"{100 * WORTH:.0f}% is predicted up to {steps[0]} steps ahead ({steps[1]} to {steps[2]})."
    )
    return Answer(QUESTIONS[2], verdict, text, "R² one step ahead", first)


def _right(drift: Drift, found: Estimates, replay: Replay | None) -> Answer:
    low, high = found.orders
    order = f"k = {low}" + (f" to {high}" if high > low else "")
    memory = f"Of all orders of the hidden process, k = {found.best} has the most evidence; 95% of it is on {order}."
    if drift.verdict != "drift" and low == 0:
        memory += " No drift was shown, so a policy for constant means is not ruled out."
    if replay is None or replay.best_s is None:
        text = f"{memory} s is chosen by replays, and LARL was not replayed." if replay is None else memory
        k = Interval(float(found.best), float(low), float(high))
        return Answer(QUESTIONS[3], replay.best if replay else f"not replayed; k = {found.best}", text, "order k", k)
    text = f"In worlds fitted to the log {replay.best} loses least"
    text += f"; not clearly worse: {', '.join(replay.as_good)}." if replay.as_good else "."
    good = replay.good_s
    others = [str(s) for s in good if s != replay.best_s]
    text += f" LARL loses least with s = {replay.best_s}" + (
        f" (not clearly worse: s = {', '.join(others)}). " if others else ". "
    )
    best_s = Interval(float(replay.best_s), float(min(good)), float(max(good)))
    return Answer(QUESTIONS[3], f"{replay.best}; for LARL s = {replay.best_s}", text + memory, "s of LARL", best_s)


def _saved(log: Log, found: Estimates, replay: Replay | None) -> Answer:
    measure = "reward a step"
    logged = found.of("logged")
    if replay is None:
        if log.arms < 2:
            return Answer(QUESTIONS[4], "no choice", "One arm only: no policy could have chosen better.", measure, NONE)
        text = f"The log's own choices lost {number(logged)} a step to knowing the state. Nothing was replayed."
        return Answer(QUESTIONS[4], "not replayed", text, measure, logged)
    saved, kalman = replay.saved(replay.best), replay.saved(KALMAN)
    text = (
        f"The log's own choices lost {number(logged)} a step to knowing the state. {replay.best} would have saved "
        f"{number(saved)} of it; a policy that knows every parameter, {number(kalman)}."
    )
    verdict = f"{number(saved)} a step" if saved.low > 0.0 else ("nothing" if saved.high <= 0.0 else "perhaps nothing")
    return Answer(QUESTIONS[4], verdict, text, measure, saved)
