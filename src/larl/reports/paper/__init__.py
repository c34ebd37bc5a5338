"""The paper, reproduced: its experiments, its claims each with a verdict, and one page that shows them."""

import json
import sys
from functools import partial
from pathlib import Path

from larl._core.files import write_atomically
from larl._core.progress import Progress
from larl.reports.paper import claims, stages
from larl.reports.paper.experiments import (
    ORDERS,
    PAPER_S,
    Scope,
    baselines,
    beyond,
    lookback,
    noise_structure,
    paper_policies,
    robustness,
    sublinear,
    tuned_lookback,
    tuning,
)
from larl.reports.paper.regret_section import experiment_1
from larl.reports.paper.report import markdown, page
from larl.reports.paper.sections import Section, claims_section, experiment_2, experiment_3, experiment_4, theory
from larl.reports.paper.settings import ALL, HORIZON
from larl.simulation.figure import image
from larl.simulation.result_files import join
from larl.worlds import paper

__all__ = ["Scope", "reproduce"]


def reproduce(
    out: Path, scope: Scope, *, threads: int | None = None, command: str = "larl paper"
) -> list[claims.Claim]:
    """Run what the scope asks for; leave figures, data, claims and report.html in `out`. Returns the claims.

    What an earlier run finished with the same settings is taken from `out`/data.
    """
    tuned, first = tuning(scope), lookback(scope) | beyond(scope) | noise_structure(scope)
    later = sublinear(scope) | robustness(scope) if scope.everything else {}
    policies = len(paper_policies(paper(1))) + len(ALL) + 1 + len(PAPER_S)  # what is compared once it is tuned
    compared = policies * len(ORDERS) * scope.trials * HORIZON
    with Progress(stages.steps(tuned) + stages.steps(first) + stages.steps(later) + compared, True) as bar:
        found = stages.run(tuned, out / "data", bar, threads, totals=True)
        found |= stages.run(first, out / "data", bar, threads)
        found |= stages.run(baselines(scope, found), out / "data", bar, threads)
        found |= stages.run(tuned_lookback(scope, found), out / "data", bar, threads, totals=True)
        found |= stages.run(later, out / "data", bar, threads)
    main = join(found[f"baselines-k{k}"] for k in ORDERS)
    print("drawing, and checking the theory", file=sys.stderr, flush=True)
    sections = [experiment_1(main, found), experiment_2(found["lookback"], main, found), theory(scope)]
    if scope.everything:
        sections += [experiment_3(found), experiment_4(found)]
    verdicts = [claim for section in sections for claim in section.claims]
    print(f"writing {out / 'report.html'}", file=sys.stderr, flush=True)
    _write(out, [claims_section(verdicts, scope), *sections], verdicts, command)
    return verdicts


def _write(out: Path, sections: list[Section], verdicts: list[claims.Claim], command: str) -> None:
    for section in sections:
        for name, figure in section.figures.items():
            for kind in ("png", "svg"):
                code = image(figure, kind)
                write_atomically(out / "figures" / f"{name}.{kind}", partial(_bytes, code))
        for name, frame in section.tables.items():
            write_atomically(out / "data" / f"{name}.csv", frame.to_csv)
    texts = {
        "claims.json": json.dumps(claims.to_json(verdicts), indent=1, ensure_ascii=False) + "\n",
        "reproduction.md": markdown(verdicts, command),
        "report.html": page("Non-stationary latent auto-regressive bandits, reproduced", [s.html for s in sections]),
    }
    for name, text in texts.items():
        write_atomically(out / name, partial(_bytes, text.encode()))


def _bytes(content: bytes, draft: Path) -> None:
    draft.write_bytes(content)
