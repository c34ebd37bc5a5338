"""Reproduction of the paper: its experiments, a verdict on each claim, and one page with all of it."""

import json
import sys
from functools import partial
from pathlib import Path

from larl._core.files import write_atomically
from larl._core.progress import Progress
from larl.reports.cached_studies import run_cached, total_steps
from larl.reports.paper import claims
from larl.reports.paper.experiments import (
    ORDERS,
    PAPER_S,
    Scope,
    baselines,
    lookback,
    noise_structure,
    other_policies,
    paper_policies,
    robustness,
    sublinear,
    tuned_lookback,
    tuning,
)
from larl.reports.paper.regret_section import regret_section
from larl.reports.paper.report import claims_markdown, page_html
from larl.reports.paper.sections import (
    Section,
    lookback_section,
    robustness_section,
    sublinear_section,
    summary_section,
    theory_section,
)
from larl.reports.paper.settings import ALL_BASELINES, HORIZON
from larl.simulation.figure import image
from larl.simulation.result_files import join
from larl.worlds import paper

__all__ = ["Scope", "reproduce"]


def reproduce(
    out: Path, scope: Scope, *, threads: int | None = None, command: str = "larl paper"
) -> list[claims.Claim]:
    """Run the experiments of a scope; write figures, data, claims and report.html to `out`; return the claims.

    Results that an earlier run with the same settings finished are read from `out`/data.
    """
    tuning_studies, untuned = tuning(scope), lookback(scope) | other_policies(scope) | noise_structure(scope)
    optional = sublinear(scope) | robustness(scope) if scope.all_experiments else {}
    # Studies of tuned policies are made after tuning, so their steps are counted from the number of policies.
    policies = len(paper_policies(paper(1))) + len(ALL_BASELINES) + 1 + len(PAPER_S)
    steps = total_steps(tuning_studies | untuned | optional) + policies * len(ORDERS) * scope.trials * HORIZON
    data = out / "data"
    with Progress(steps, True) as bar:
        results = run_cached(tuning_studies, data, bar, threads, totals_only=True)
        results |= run_cached(untuned, data, bar, threads)
        results |= run_cached(baselines(scope, results), data, bar, threads)
        results |= run_cached(tuned_lookback(scope, results), data, bar, threads, totals_only=True)
        results |= run_cached(optional, data, bar, threads)
    main = join(results[f"baselines-k{k}"] for k in ORDERS)
    print("drawing figures and checking the theory", file=sys.stderr, flush=True)
    sections = [
        regret_section(main, results),
        lookback_section(results["lookback"], main, results),
        theory_section(scope),
    ]
    if scope.all_experiments:
        sections += [sublinear_section(results), robustness_section(results)]
    all_claims = [claim for section in sections for claim in section.claims]
    print(f"writing {out / 'report.html'}", file=sys.stderr, flush=True)
    _write(out, [summary_section(all_claims, scope), *sections], all_claims, command)
    return all_claims


def _write(out: Path, sections: list[Section], all_claims: list[claims.Claim], command: str) -> None:
    for section in sections:
        for name, figure in section.figures.items():
            for kind in ("png", "svg"):
                data = image(figure, kind)
                write_atomically(out / "figures" / f"{name}.{kind}", partial(_write_bytes, data))
        for name, frame in section.tables.items():
            write_atomically(out / "data" / f"{name}.csv", frame.to_csv)
    texts = {
        "claims.json": json.dumps(claims.to_json(all_claims), indent=1, ensure_ascii=False) + "\n",
        "reproduction.md": claims_markdown(all_claims, command),
        "report.html": page_html(
            "Reproduction of “Non-stationary latent auto-regressive bandits”", [s.html for s in sections]
        ),
    }
    for name, text in texts.items():
        write_atomically(out / name, partial(_write_bytes, text.encode()))


def _write_bytes(content: bytes, draft: Path) -> None:
    draft.write_bytes(content)
