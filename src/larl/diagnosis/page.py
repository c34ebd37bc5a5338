"""The page: five answers with their figures, the fitted arms, the replays. It asks nothing of the network."""

import base64
from html import escape
from typing import TYPE_CHECKING

from larl.diagnosis.answers import number
from larl.diagnosis.estimates import Interval
from larl.diagnosis.figures import DARK, LIGHT, figures
from larl.diagnosis.replay import KALMAN, over_worlds
from larl.simulation.figure import image

if TYPE_CHECKING:
    from larl.diagnosis import Diagnosis

STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --page: #fff; --line: #d0d0d0; --soft: #f3f3f3; --good: #0064a0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --page: #161616; --line: #444; --soft: #232323;
  --good: #74c3f0; } }
* { box-sizing: border-box; }
body { color: var(--ink); background: var(--page); font: 16px/1.5 system-ui, sans-serif; max-width: 44rem;
       margin: 0 auto; padding: 1rem; overflow-wrap: break-word; }
h1 { line-height: 1.2; margin: .5rem 0; } h2 { margin: 2.2rem 0 .2rem; line-height: 1.25; font-size: 1.25rem; }
p { margin: .5rem 0; } .verdict { font-weight: 700; font-size: 1.1rem; color: var(--good); }
figure { margin: 1rem 0; } img { width: 100%; max-width: 40rem; height: auto; display: block; }
figcaption, .small { font-size: .875rem; opacity: .85; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .875rem; min-width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .5rem; text-align: left; vertical-align: top; }
.wide td + td { font-variant-numeric: tabular-nums; white-space: nowrap; } ul { padding-left: 1.2rem; }
.sum td:last-child { font-weight: 700; color: var(--good); }
"""
CAPTIONS = {
    "time": "Rewards by arm, and the hidden state that the whole log makes likely (in its own standard deviations; "
    "95% band).",
    "memory": "Autocorrelation of the rewards' residuals from the mean of their arm and unit, with arms weighted by "
    "how the state moves them. Outside the band: more than chance.",
    "forecasts": "Share of the variance of an arm's rewards that the past predicts, over how far ahead it looks.",
    "orders": "Evidence for each order k of the hidden process. It is not the s of LARL, which replays choose.",
    "saved": "What each policy would have saved a step in worlds fitted to the log, compared with the log's own "
    "choices: the mean over worlds and the middle 95%.",
}
PLACES = (("time", "memory"), (), ("forecasts",), ("orders",), ("saved",))


def page(diagnosis: "Diagnosis") -> str:
    """The whole page."""
    pictures = _pictures(diagnosis)
    parts = [f"<p>{escape(diagnosis.about)}</p>", _summary(diagnosis)]
    for at, (answer, names) in enumerate(zip(diagnosis.answers, PLACES, strict=True), 1):
        parts.append(f"<h2>{at}. {escape(answer.question)}</h2>")
        parts.append(f'<p class="verdict">{escape(answer.verdict)}</p><p>{escape(answer.answer)}</p>')
        parts += [pictures[name] for name in names if name in pictures]
        if at == 5 and diagnosis.replay is not None:
            parts.append(_replays(diagnosis))
    parts += ["<h2>The arms</h2>", _arms(diagnosis)]
    if diagnosis.estimates is not None:
        words = "The state has shocks of size 1 (σ_z = 1) and mean 0; the arm with the largest |β| has β &gt; 0."
        parts.append(f'<p class="small">A reward is μ + β · state + noise. {words}</p>')
    if diagnosis.notes:
        items = "".join(f"<li>{escape(note)}</li>" for note in diagnosis.notes)
        parts.append(f'<h2>How the log was read and analysed</h2><ul class="small">{items}</ul>')
    title, body = "What the log says about drift", "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body>\n<h1>{title}</h1>\n{body}\n</body></html>\n"
    )


def _pictures(diagnosis: "Diagnosis") -> dict[str, str]:
    """Every figure as a part of the page, light and dark."""
    dark = figures(diagnosis, DARK)
    found = {}
    for name, figure in figures(diagnosis, LIGHT).items():
        sources = [base64.b64encode(image(each, "png")).decode() for each in (dark[name], figure)]
        words = escape(CAPTIONS[name])
        found[name] = (
            '<figure><picture><source media="(prefers-color-scheme: dark)" '
            f'srcset="data:image/png;base64,{sources[0]}"><img alt="{words}" '
            f'src="data:image/png;base64,{sources[1]}"></picture><figcaption>{words}</figcaption></figure>'
        )
    return found


def _summary(diagnosis: "Diagnosis") -> str:
    rows = "".join(
        f"<tr><td>{escape(each.question)}</td><td>{escape(each.verdict)}</td></tr>" for each in diagnosis.answers
    )
    return f'<table class="sum"><tbody>{rows}</tbody></table>'


def table(header: list[str], rows: list[list[str]]) -> str:
    """A table that scrolls sideways where the page is narrow."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _replays(diagnosis: "Diagnosis") -> str:
    replay = diagnosis.replay
    assert replay is not None
    rows = [["the log's own choices", number(over_worlds(replay.logged)), ""]]
    rows += [[name, number(replay.lost(name)), number(replay.saved(name))] for name in [*replay.ranked, KALMAN]]
    return table(["policy", "lost a step", "saved a step"], rows)


def _arms(diagnosis: "Diagnosis") -> str:
    frame = diagnosis.arms()
    header = ["arm", "plays", "mean reward"] + (["μ", "β", "noise sd"] if "mu" in frame else [])
    rows = []
    for row in frame.to_dict("records"):
        cells = [str(row["arm"]), f"{row['plays']:,}", f"{row['mean']:.4g}"]
        if "mu" in row:
            cells += [number(Interval(row[n], row[f"{n}_low"], row[f"{n}_high"])) for n in ("mu", "beta", "noise")]
        rows.append(cells)
    return table(header, rows)
