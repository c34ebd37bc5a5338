"""The report: one page that needs nothing else, the claims as Markdown and as JSON."""

import base64
from collections.abc import Sequence
from html import escape

from matplotlib.figure import Figure

from larl.reports.paper.claims import CHANGED, FAILS, HOLDS, OPEN, UNINFORMATIVE, Claim
from larl.reports.paper.settings import GLOSSARY
from larl.simulation.figure import image

STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --page: #fff; --line: #ccc; --soft: #f4f4f4; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --page: #161616; --line: #444; --soft: #222; } }
body { color: var(--ink); background: var(--page); font: 16px/1.5 system-ui, sans-serif; max-width: 72rem;
       margin: 2rem auto; padding: 0 1rem; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
figure { margin: 1.5rem 0; } figure img { max-width: 100%; background: #fff; border-radius: 4px; }
figcaption, .small { font-size: .9rem; opacity: .85; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td:first-child { min-width: 13rem; } .verdict { min-width: 7rem; font-weight: 600; }
.good { color: #0072b2; } .part { color: #b36b00; }
.bad { color: #d55e00; }
@media (prefers-color-scheme: dark) { .good { color: #56b4e9; } .part { color: #e69f00; } .bad { color: #ff8f4d; } }
"""
CLASSES = {HOLDS: "good", CHANGED: "part", UNINFORMATIVE: "part", FAILS: "bad", OPEN: ""}


def picture(figure: Figure, caption: str) -> str:
    """A figure inside the page."""
    code = base64.b64encode(image(figure, "png")).decode()
    words = escape(caption)
    return f'<figure><img alt="{words}" src="data:image/png;base64,{code}"><figcaption>{words}</figcaption></figure>'


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; what looks like a number is set to the right."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(text: str) -> str:
    number = bool(text) and all(sign in "0123456789.,%±– +-−" for sign in text)
    return f'<td class="number">{escape(text)}</td>' if number else f"<td>{escape(text)}</td>"


def claims_table(claims: Sequence[Claim]) -> str:
    """The claims, one a row."""
    rows = "".join(
        f"<tr><td>{escape(c.claim)}<br><span class=small>{escape(c.where)}</span></td>"
        f'<td class="verdict {CLASSES[c.verdict]}">{escape(c.verdict)}</td><td>{escape(c.measured)}</td>'
        f"<td class=small>{escape(c.note)}</td></tr>"
        for c in claims
    )
    head = "<tr><th>claim</th><th>verdict</th><th>measured</th><th>remark</th></tr>"
    return f'<div class="wide"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>'


def page(title: str, parts: Sequence[str]) -> str:
    """A whole page that asks nothing of the network."""
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body>\n<h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def markdown(claims: Sequence[Claim], made_by: str) -> str:
    """The claims for docs/reproduction.md."""
    lines = [
        "# The paper's claims, measured",
        "",
        f"Made by `{made_by}`; not typed by hand. Intervals are 95%, ± is one standard error, z is a difference in "
        "standard errors.",
        "",
        *(line for words in GLOSSARY for line in (words, "")),
        "| claim | where | verdict | measured | remark |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in _order(claim)) + " |" for claim in claims]
    return "\n".join(lines) + "\n"


def _order(claim: Claim) -> tuple[str, ...]:
    return claim.claim, claim.where, f"**{claim.verdict}**", claim.measured, claim.note
