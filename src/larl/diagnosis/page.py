"""The HTML page of a diagnosis: five answers with figures, the fitted arms, the replays. It loads nothing else."""

import base64
from html import escape
from typing import TYPE_CHECKING

from larl.diagnosis.answers import format_interval
from larl.diagnosis.arm_table import SYMBOLS
from larl.diagnosis.estimates import Interval
from larl.diagnosis.figures import DARK, LIGHT, draw_figures
from larl.diagnosis.replay import world_interval
from larl.simulation.figure import image

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    "time": "Rewards by arm, and the hidden state estimated from all rewards (in its standard deviations; 95% band).",
    "memory": "Autocorrelation of rewards after subtracting the mean of their arm and unit. Arms are weighted by the "
    "effect of the state on them. Values outside the band are unlikely without drift.",
    "forecasts": "Share of the variance of an arm's rewards that the past predicts, by number of steps ahead.",
    "orders": "Probability of each order k of the hidden process. k is not the s of LARL, which replays choose.",
    "saved": "Reward per step that each policy would have saved in worlds fitted to the log, compared with the log's "
    "own choices: the mean over worlds and the central 95%.",
}
EQUATIONS = {
    "continuous": "A reward is μ + β · state + noise.",
    "binary": "The log odds of a reward of 1 are μ + β · state. If a unit has a level of its own, it is added.",
    "count": "The mean m of a reward is exp(μ + β · state), its variance m + dispersion · m². If a unit has a level of "
    "its own, it is added to the exponent.",
}
FIGURES_OF_ANSWERS = (("time", "memory"), (), ("forecasts",), ("orders",), ("saved",))


def render_page(diagnosis: "Diagnosis") -> str:
    """Return the page as HTML."""
    pictures = _render_figures(diagnosis)
    parts = [f"<p>{escape(diagnosis.about)}</p>"]
    if diagnosis.estimates is not None:
        parts.append(f'<p class="small">{escape(diagnosis.rewards.note)}</p>')
    parts.append(_render_summary(diagnosis))
    for number, (answer, names) in enumerate(zip(diagnosis.answers, FIGURES_OF_ANSWERS, strict=True), 1):
        parts.append(f"<h2>{number}. {escape(answer.question)}</h2>")
        parts.append(f'<p class="verdict">{escape(answer.verdict)}</p><p>{escape(answer.answer)}</p>')
        parts += [pictures[name] for name in names if name in pictures]
        if number == 5 and diagnosis.replay is not None:
            parts.append(_render_replays(diagnosis))
    parts += ["<h2>The arms</h2>", _render_arms(diagnosis)]
    if diagnosis.estimates is not None:
        scale = "The state has mean 0 and σ_z = 1; the arm with the largest |β| has β &gt; 0."
        parts.append(f'<p class="small">{EQUATIONS[diagnosis.rewards.kind]} {scale}</p>')
    if diagnosis.notes:
        items = "".join(f"<li>{escape(note)}</li>" for note in diagnosis.notes)
        parts.append(f'<h2>How the log was read and analysed</h2><ul class="small">{items}</ul>')
    return render_document("Diagnosis of drift", "\n".join(parts))


def render_document(title: str, body: str) -> str:
    """Return a whole HTML page."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body>\n<h1>{title}</h1>\n{body}\n</body></html>\n"
    )


def _render_figures(diagnosis: "Diagnosis") -> dict[str, str]:
    """Return every figure as HTML, with a light and a dark version."""
    dark, light = draw_figures(diagnosis, DARK), draw_figures(diagnosis, LIGHT)
    return {name: render_picture(light[name], dark[name], CAPTIONS[name]) for name in light}


def render_picture(light: "Figure", dark: "Figure", caption: str) -> str:
    """Return a figure as HTML, with a light and a dark version."""
    sources, text = [base64.b64encode(image(each, "png")).decode() for each in (dark, light)], escape(caption)
    return (
        '<figure><picture><source media="(prefers-color-scheme: dark)" '
        f'srcset="data:image/png;base64,{sources[0]}"><img alt="{text}" '
        f'src="data:image/png;base64,{sources[1]}"></picture><figcaption>{text}</figcaption></figure>'
    )


def _render_summary(diagnosis: "Diagnosis") -> str:
    """Return a table of questions and verdicts."""
    rows = "".join(
        f"<tr><td>{escape(each.question)}</td><td>{escape(each.verdict)}</td></tr>" for each in diagnosis.answers
    )
    return f'<table class="sum"><tbody>{rows}</tbody></table>'


def render_table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table that scrolls horizontally on a narrow page."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _render_replays(diagnosis: "Diagnosis") -> str:
    """Return a table of policies with their regret and savings."""
    replay = diagnosis.replay
    assert replay is not None
    rows = [["the log's own choices", format_interval(world_interval(replay.log_regret)), ""]]
    rows += [
        [name, format_interval(replay.regret_of(name)), format_interval(replay.saving_of(name))]
        for name in [*replay.ranked, replay.oracle]
    ]
    return render_table(["policy", "regret per step", "saved per step"], rows)


def _render_arms(diagnosis: "Diagnosis") -> str:
    """Return a table of arms with their plays, mean rewards and fitted parameters."""
    frame = diagnosis.arms()
    names = [name for name in SYMBOLS if name in frame]
    header = ["arm", "plays", "mean reward", *(SYMBOLS[name] for name in names)]
    rows = []
    for row in frame.to_dict("records"):
        cells = [str(row["arm"]), f"{row['plays']:,}", f"{row['mean']:.4g}"]
        intervals = [Interval(row[name], row[f"{name}_low"], row[f"{name}_high"]) for name in names]
        cells += [format_interval(each) for each in intervals]
        rows.append(cells)
    return render_table(header, rows)
