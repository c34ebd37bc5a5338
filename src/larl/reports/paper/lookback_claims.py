"""The paper's claims about the choice of s (App. E)."""

from collections.abc import Mapping

from larl.reports.paper.claims import (
    LIKE,
    Claim,
    Floats,
    mean_text,
    saved,
    settings,
    share,
    share_text,
    similar,
    span_text,
    totals,
    verdict,
)
from larl.reports.paper.experiments import KALMAN, ORDERS, PAPER_S, name
from larl.reports.paper.settings import AUTHORS, THEORY, TUNED, label
from larl.simulation.result import Result


def lookback_claims(result: Result, main: Result, tuned: Mapping[int, Result]) -> list[Claim]:
    """Too small and too large an s both hurt; any s beats Stationary; a poor s performs like it.

    `result` has LARL for every s with α = 1, `main` Stationary in three settings, `tuned` LARL with the best α.
    """
    return [*_both_hurt(result), *_any_s(result, main, tuned), *_poor_s(result, main)]


def _both_hurt(result: Result) -> list[Claim]:
    found = []
    tried = [int(each.removeprefix("s = ")) for each in result.policies]
    for k in ORDERS:
        total = totals(result, name(k))
        best = min(tried, key=lambda s: float(total[f"s = {s}"].mean()))
        small, large = (saved(total, f"s = {best}", f"s = {s}") for s in (min(tried), max(tried)))
        words = f"best s = {best}; s = {min(tried)} costs {span_text(small)} more, s = {max(tried)} {span_text(large)}"
        found.append(
            Claim(
                f"s too small and s too large both hurt (k = {k})",
                "App. E",
                f"{words} more",
                verdict([small, large]),
                "all with α = 1",
            )
        )
    return found


def _any_s(result: Result, main: Result, tuned: Mapping[int, Result]) -> list[Claim]:
    """LARL with each s of the paper against Stationary in each of its settings; and both tuned."""
    shown = [s for s in PAPER_S if f"s = {s}" in result.policies]
    fixed = {k: totals(result, name(k)) for k in ORDERS}
    rows = [
        (f"Any s in 1, 5, 10, 15 beats Stationary, Stationary: {way}", fixed, way, "LARL with α = 1")
        for way in (AUTHORS, THEORY, TUNED)
    ]
    best = {k: totals(tuned[k], name(k), 0) for k in ORDERS}
    rows.append(("Any s in 1, 5, 10, 15 beats Stationary, both tuned", best, TUNED, "α tuned for each s and each k"))
    found = []
    for claim, larl, way, note in rows:
        beaten, words, lost = [], [], []
        for k in ORDERS:
            theirs = label("Stationary", way)
            against: dict[str, Floats] = larl[k] | {theirs: totals(main, name(k))[theirs]}
            words.append(
                f"k = {k}: Stationary [{settings(main, name(k))[theirs]}] {mean_text(against[theirs])}, regret saved"
            )
            for s in shown:
                less = saved(against, f"s = {s}", theirs)
                beaten.append(less)
                words.append(f"s = {s}: {span_text(less)}")
                if less[2] < 0.0:
                    lost.append(f"(k = {k}, s = {s})")
        note += f"; Stationary is better at {', '.join(lost)}" if lost else ""
        found.append(Claim(claim, "App. E", "; ".join(words), verdict(beaten), note))
    return found


def _poor_s(result: Result, main: Result) -> list[Claim]:
    """The least and the largest s that the paper tries, where they are not k itself, beside Stationary."""
    found = []
    start = label("Stationary", AUTHORS)
    shown = [s for s in PAPER_S if f"s = {s}" in result.policies]
    for k in ORDERS:
        known = totals(main, name(k))
        total = totals(result, name(k)) | {start: known[start], KALMAN: known[KALMAN]}
        poor = [s for s in sorted({min(shown), max(shown)}) if s != k]
        shares = {s: share(total, f"s = {s}", start, KALMAN) for s in poor}
        words = [f"s = {s}: {mean_text(total[f's = {s}'])}, which closes {share_text(shares[s])}" for s in poor]
        found.append(
            Claim(
                f"A poor s (too small or too large) performs like Stationary (k = {k})",
                "App. E, Fig. 5",
                f"{start} {mean_text(total[start])}; " + " of the gap; ".join(words) + " of the gap",
                similar(shares.values(), LIKE),
                f"like Stationary: within {LIKE:.0%} of the gap from Stationary to the Kalman filter; poor: the least "
                "and the largest s that the paper tries, if not k; all with α = 1",
            )
        )
    return found
