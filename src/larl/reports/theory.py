"""The tables of docs/theory.md: regret split into floor and learning, and bounds compared with the regret."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from larl._core.files import write_atomically
from larl._core.validation import InvalidValue
from larl.policies import (
    LARL,
    LARLBIC,
    UCB,
    AdaptiveLARL,
    DiscountedUCB,
    KalmanOracle,
    Policy,
    Random,
    SharedLARL,
    SlidingWindowUCB,
)
from larl.simulation.compare import compare
from larl.simulation.result import Result
from larl.statespace.steady_state import steady_state
from larl.theory import certificate, decompose, random_regret, regret_bound, steady_start
from larl.theory.bounds import EVENTS, filter_regret, largest_bias, learning_term, printed_first_term
from larl.worlds import paper
from larl.worlds.latent_ar import LatentAR

ORDERS = (1, 5, 10)
DELTA = 0.05
LOOKBACK = 4  # s of LARL in the table of bounds
LADDER = {200: 20, 2_000: 10, 20_000: 4, 200_000: 2, 1_000_000: 1}  # horizon: trials
CERTIFICATES = {
    "LARL's regressions, each step by itself": ("separate", "known", "per_step"),
    "LARL's regressions": ("separate", "known", "learning"),
    "LARL's regressions, R unknown": ("separate", "unknown", "learning"),
    "one latent state, signs of β and μ unknown": ("shared", "known", "learning"),
    "one latent state, signs of β, μ and R unknown": ("shared", "unknown", "learning"),
    "one latent state, β and mean rewards known": ("known", "known", "learning"),
}


def decomposition_table(trials: int, seed: int) -> str:
    """Return a Markdown table: floor and learning cost of policies in the paper's worlds from the steady start."""
    lines = ["| policy | " + " | ".join(f"k = {k}" for k in ORDERS) + " |", "| --- " * (len(ORDERS) + 1) + "|"]
    columns, floors = [], []
    for k in ORDERS:
        world = steady_start(paper(k))
        policies: dict[str, Policy] = {
            "Kalman filter, true parameters": KalmanOracle(),
            "LARL, s = k": LARL(k),
            "LARL, s by BIC": LARLBIC(40),
            "AdaptiveLARL": AdaptiveLARL(),
            "SharedLARL": SharedLARL(),
            "UCB": UCB(),
            "SW UCB, window 20": SlidingWindowUCB(20),
            "D-UCB, discount 0.9": DiscountedUCB(0.9),
            "random": Random(),
        }
        result = compare(policies, world, horizon=200, trials=trials, seed=seed, progress=False)
        table = decompose(result, world).table
        floors.append(f"{table['floor'].iloc[0]:.1f}")
        columns.append(
            {
                name: f"{row['learning']:.1f} ± {row['learning se']:.1f} ({row['regret']:.1f} ± {row['regret se']:.1f})"
                for name, row in table.iterrows()
            }
        )
    lines.append(f"| *floor, all policies* | {' | '.join(f'*{each}*' for each in floors)} |")
    lines += [f"| {name} | {' | '.join(column[name] for column in columns)} |" for name in columns[0]]
    return "\n".join(lines)


def a_priori_bounds(world: LatentAR, horizon: int) -> dict[str, float]:
    """Return the bounds on LARL's regret that are known before the trial, each with one change more."""
    s, spread, event = LOOKBACK, float(np.ptp(world.beta)), DELTA / EVENTS
    tail = math.sqrt(2.0 * math.log(2.0 * horizon / event))
    bias, bound = largest_bias(world, s, tail), regret_bound(world, s, horizon, delta=DELTA)
    rest = bound.bias + bound.start
    printed = learning_term(world, s, horizon, bias, 2.0 * event, 1.0, "printed")
    corrected = learning_term(world, s, horizon, bias, 2.0 * event, 1.0, "corrected")
    union = horizon * spread * tail * math.sqrt(float(steady_state(world).cov[0, 0]))
    first = filter_regret(world, horizon, event)
    longer = min(regret_bound(world, each, horizon, delta=DELTA).total for each in range(1, 31))
    return {
        f"printed, s = {s}": printed_first_term(world, horizon, DELTA)[0] + printed + rest,
        "… first term from P₁₁, for all steps": union + printed + rest,
        "… first term from the floor": first + printed + rest,
        "… corrected radius and clipped potential": first + corrected + rest,
        "… gap at most its largest value (`regret_bound`)": bound.total,
        "… best s for the horizon": longer,
    }


def ladder_table(seed: int, trials: Callable[[int], int] = lambda horizon: LADDER[horizon]) -> str:
    """Return a Markdown table of bounds and regret, each divided by the regret of random choice, for k = 1."""
    world = steady_start(paper(1))
    rows: dict[str, list[str]] = {}
    for horizon in LADDER:
        unit, policies = horizon * random_regret(world), {"LARL": LARL(LOOKBACK)}
        result = compare(policies, world, horizon=horizon, trials=trials(horizon), seed=seed, progress=False)
        for name, value in (a_priori_bounds(world, horizon) | _measured(result, world)).items():
            rows.setdefault(name, []).append(_format(value / unit))
    lines = ["| bound ÷ regret of random choice | " + " | ".join(f"T = {t:,}" for t in LADDER) + " |"]
    lines += ["| --- " * (len(LADDER) + 1) + "|", *(f"| {name} | {' | '.join(row)} |" for name, row in rows.items())]
    return "\n".join(lines)


def _measured(result: Result, world: LatentAR) -> dict[str, float]:
    """Return the mean certificates of a result, its regret and the floor."""
    kinds = {(model, noise) for model, noise, _ in CERTIFICATES.values()}
    found = {kind: certificate(result, world, model=kind[0], noise=kind[1], delta=DELTA) for kind in kinds}
    bounds = {}
    for name, (model, noise, field) in CERTIFICATES.items():
        each = found[model, noise]
        bounds[f"certificate: {name}"] = each.floor + float(getattr(each, field).mean())
    split = decompose(result, world)
    return bounds | {"**measured regret**": float(split.table["regret"].iloc[0]), "floor": float(split.floors.sum())}


def _format(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.1f}" if value >= 10.0 else f"{value:.2f}"


def update_page(page: Path, tables: dict[str, str], command: str) -> None:
    """Replace the text between the markers of each table in a Markdown page."""
    text = page.read_text(encoding="utf-8")
    for name, table in tables.items():
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->\n"
        if begin not in text or end not in text:
            raise InvalidValue("larl report theory", "page", page, f"a page with the markers {begin!r} and {end!r}")
        before, after = text.split(begin)[0], text.split(end)[1]
        text = f"{before}{begin}\n{table}\n\nGenerated by `{command}`.\n\n{end}{after}"
    write_atomically(page, lambda draft: draft.write_text(text, encoding="utf-8"))
