"""The paper's claims about the choice of s (Appendix E)."""

from collections.abc import Mapping

from larl.reports.paper.claims import (
    SIMILAR_LIMIT,
    Claim,
    Floats,
    format_estimate,
    format_mean,
    format_share,
    judge_positive,
    judge_similar,
    regret_saved,
    settings_in,
    share_closed,
    total_regrets,
)
from larl.reports.paper.experiments import KALMAN, ORDERS, PAPER_S, world_name
from larl.reports.paper.settings import AUTHORS, THEORY, TUNED, label
from larl.simulation.result import Result


def lookback_claims(result: Result, baselines: Result, tuned: Mapping[int, Result]) -> list[Claim]:
    """Check the claims about s: extremes increase regret, any s beats Stationary, a poor s performs like it.

    `result` has LARL for every s with α = 1, `baselines` has Stationary in three settings, `tuned` has LARL with the
    best α of each s.
    """
    return [*_extreme_s_claims(result), *_any_s_claims(result, baselines, tuned), *_poor_s_claims(result, baselines)]


def _extreme_s_claims(result: Result) -> list[Claim]:
    claims = []
    tried = [int(policy.removeprefix("s = ")) for policy in result.policies]
    for k in ORDERS:
        regret = total_regrets(result, world_name(k))
        best = min(tried, key=lambda s: float(regret[f"s = {s}"].mean()))
        smallest, largest = (regret_saved(regret, f"s = {best}", f"s = {s}") for s in (min(tried), max(tried)))
        claims.append(
            Claim(
                f"s too small and s too large both increase regret (k = {k})",
                "App. E",
                f"best s = {best}; regret above it: s = {min(tried)}: {format_estimate(smallest)}, "
                f"s = {max(tried)}: {format_estimate(largest)}",
                judge_positive([smallest, largest]),
                "α = 1 for every s",
            )
        )
    return claims


def _any_s_claims(result: Result, baselines: Result, tuned: Mapping[int, Result]) -> list[Claim]:
    """Compare LARL with each s of the paper with Stationary in each of its settings, and both tuned."""
    tried = [s for s in PAPER_S if f"s = {s}" in result.policies]
    fixed = {k: total_regrets(result, world_name(k)) for k in ORDERS}
    comparisons = [
        (f"Any s in 1, 5, 10, 15 beats Stationary, Stationary: {source}", fixed, source, "LARL with α = 1")
        for source in (AUTHORS, THEORY, TUNED)
    ]
    best = {k: total_regrets(tuned[k], world_name(k), 0) for k in ORDERS}
    comparisons.append(
        ("Any s in 1, 5, 10, 15 beats Stationary, both tuned", best, TUNED, "α tuned for each s and each k")
    )
    claims = []
    for claim, larl, source, note in comparisons:
        differences, measured, lost = [], [], []
        for k in ORDERS:
            stationary = label("Stationary", source)
            setting = settings_in(baselines, world_name(k))[stationary]
            regret: dict[str, Floats] = larl[k] | {stationary: total_regrets(baselines, world_name(k))[stationary]}
            measured.append(f"k = {k}: Stationary [{setting}] {format_mean(regret[stationary])}, regret saved")
            for s in tried:
                saved = regret_saved(regret, f"s = {s}", stationary)
                differences.append(saved)
                measured.append(f"s = {s}: {format_estimate(saved)}")
                if saved[2] < 0.0:
                    lost.append(f"(k = {k}, s = {s})")
        note += f"; Stationary is better at {', '.join(lost)}" if lost else ""
        claims.append(Claim(claim, "App. E", "; ".join(measured), judge_positive(differences), note))
    return claims


def _poor_s_claims(result: Result, baselines: Result) -> list[Claim]:
    """Compare the smallest and the largest s of the paper, where they are not k itself, with Stationary."""
    claims = []
    stationary = label("Stationary", AUTHORS)
    tried = [s for s in PAPER_S if f"s = {s}" in result.policies]
    for k in ORDERS:
        known = total_regrets(baselines, world_name(k))
        regret = total_regrets(result, world_name(k)) | {stationary: known[stationary], KALMAN: known[KALMAN]}
        poor = [s for s in sorted({min(tried), max(tried)}) if s != k]
        shares = {s: share_closed(regret, f"s = {s}", stationary, KALMAN) for s in poor}
        parts = [
            f"s = {s}: {format_mean(regret[f's = {s}'])}, closes {format_share(shares[s])} of the gap" for s in poor
        ]
        claims.append(
            Claim(
                f"A poor s (too small or too large) performs like Stationary (k = {k})",
                "App. E, Fig. 5",
                f"{stationary} {format_mean(regret[stationary])}; " + "; ".join(parts),
                judge_similar(shares.values(), SIMILAR_LIMIT),
                f"like Stationary: within {SIMILAR_LIMIT:.0%} of the gap from Stationary to the Kalman filter; poor: "
                "the smallest and the largest s that the paper tries, except k itself; α = 1 for every s",
            )
        )
    return claims
