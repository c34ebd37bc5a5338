"""The report of a rehearsal: figures from the service's records, for the terminal, as JSON and as an HTML page."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from larl._core.files import write_atomically

WIDTH = "td:first-child { width: 60%; }"  # the same width in all tables


class Estimate(NamedTuple):
    """A mean over units, and its standard error (None for one unit)."""

    mean: float | None
    se: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> "Estimate":
        """Return mean and standard error of one number per unit."""
        if not values:
            return cls(None, None)
        error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else None
        return cls(float(np.mean(values)), error)

    def __str__(self) -> str:
        if self.mean is None:
            return "none"
        return f"{self.mean:.3f}" + ("" if self.se is None else f" ± {self.se:.3f}")


@dataclass
class Report:
    """The service's records in figures, and the differences from what was sent."""

    study: str
    policy: Mapping[str, Any]
    units: int
    steps: int
    seed: int
    seconds: float
    decisions: int
    sources: Mapping[str, int]
    states: Mapping[str, int]
    statuses: Mapping[str, int]  # rewards by status
    sent: Mapping[str, int]  # requests by kind of fault
    arms: Mapping[str, Estimate]  # share of decisions
    reward: Estimate  # mean reward of decisions with a known reward
    regret: Estimate  # mean regret of a decision against the best arm of its step
    fallbacks: float  # share of decisions
    issues: Mapping[str, int]  # by severity and code
    latency: Mapping[str, Mapping[str, float]]  # milliseconds
    refused: Mapping[str, int]  # malformed requests by status and kind
    differences: list[str]

    @property
    def verdict(self) -> str:
        """One sentence: whether the service's records match what was sent."""
        if not self.differences:
            return "The service's records match exactly what was sent."
        return f"{len(self.differences)} differences between what was sent and the service's records."

    @property
    def about(self) -> str:
        """One line: study, policy, size, seed and speed."""
        rate = self.decisions / self.seconds if self.seconds > 0.0 else 0.0
        policy = ", ".join(
            f"{name} = {value}" if name != "policy" else str(value) for name, value in self.policy.items()
        )
        return (
            f"{self.study}: {policy}; {self.units} units × {self.steps} steps, seed {self.seed}; {self.seconds:.0f} s, "
            f"{rate:.0f} decisions/s"
        )

    def sections(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Return all figures: titles, each with rows of name and value."""
        latency = [
            (f"{kind}: {part}", f"{value:.1f} ms")
            for kind, parts in self.latency.items()
            for part, value in parts.items()
        ]
        return [
            ("Decisions by source", _counts(self.sources, self.decisions)),
            ("Rewards by state", _counts(self.states, self.decisions)),
            ("Rewards by status", _counts(self.statuses)),
            ("Simulated traffic", _counts(self.sent)),
            ("Share of each arm", [(arm, str(share)) for arm, share in self.arms.items()]),
            (
                "Per decision (± standard error over units)",
                [
                    ("share of fallback decisions", f"{100 * self.fallbacks:.1f}%"),
                    ("mean reward, if known", str(self.reward)),
                    ("mean regret against the best arm", str(self.regret)),
                ],
            ),
            ("Latency", latency),
            ("Malformed requests by status", _counts(self.refused)),
            ("Issues", _counts(self.issues) or [("none", "")]),
        ]

    def write(self, out: Path) -> list[Path]:
        """Write `rehearsal.json` and `rehearsal.html` to a folder and return their paths."""
        texts = {"rehearsal.json": json.dumps(self.to_dict(), indent=1) + "\n", "rehearsal.html": self.page()}
        return [
            write_atomically(out / name, partial(Path.write_text, data=text, encoding="utf-8"))
            for name, text in texts.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON types."""
        estimates = {"arms": {arm: share._asdict() for arm, share in self.arms.items()}}
        return vars(self) | estimates | {"reward": self.reward._asdict(), "regret": self.regret._asdict()}

    def page(self) -> str:
        """Return the report as a self-contained HTML page."""
        from larl.diagnosis.page import STYLE

        parts = [f"<p>{escape(self.about)}</p>", f'<p class="verdict">{escape(self.verdict)}</p>']
        if self.differences:
            items = "".join(f"<li>{escape(each)}</li>" for each in self.differences[:20])
            parts.append(f"<p>The first differences:</p><ul>{items}</ul>")
        for title, rows in self.sections():
            body = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in rows)
            parts.append(f'<h2>{escape(title)}</h2><div class="wide"><table><tbody>{body}</tbody></table></div>')
        title = f"Rehearsal of {escape(self.study)}"
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}{WIDTH}</style></head>'
            f"<body>\n<h1>{title}</h1>\n{''.join(parts)}\n</body></html>\n"
        )


def _counts(counts: Mapping[str, int], total: int = 0) -> list[tuple[str, str]]:
    """Return counts in descending order, with their shares of a total."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(name, f"{count:,}" + (f"  ({100 * count / total:.1f}%)" if total else "")) for name, count in ordered]
