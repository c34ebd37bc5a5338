"""What a rehearsal comes to: figures from the service's own records, on the screen, as JSON and as a page."""

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

WIDTH = "td:first-child { width: 60%; }"  # the same in all tables


class Estimate(NamedTuple):
    """A mean over units, and its standard error (None for one unit)."""

    mean: float | None
    se: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> "Estimate":
        """Of one number a unit."""
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
    """What an analyst would see, and whether it is what was sent."""

    study: str
    policy: Mapping[str, Any]
    units: int
    steps: int
    seed: int
    seconds: float
    decisions: int
    sources: Mapping[str, int]
    states: Mapping[str, int]
    taken: Mapping[str, int]  # rewards, by how they were taken
    sent: Mapping[str, int]  # what the traffic was
    arms: Mapping[str, Estimate]  # share of decisions
    reward: Estimate  # of a decision, where one is known
    regret: Estimate  # of a decision, against the world's best arm at that moment
    fallbacks: float  # share of decisions
    issues: Mapping[str, int]  # by severity and code
    latency: Mapping[str, Mapping[str, float]]  # milliseconds
    refused: Mapping[str, int]  # malformed requests, by what was wrong and status
    differences: list[str]

    @property
    def verdict(self) -> str:
        """Whether the service knows what was sent."""
        if not self.differences:
            return "Everything that was sent is in the service's records, once, as it should be; nothing else is."
        return f"{len(self.differences)} differences between what was sent and the service's records."

    @property
    def about(self) -> str:
        """One line on what was played."""
        rate = self.decisions / self.seconds if self.seconds > 0.0 else 0.0
        policy = ", ".join(
            f"{name} = {value}" if name != "policy" else str(value) for name, value in self.policy.items()
        )
        return (
            f"{self.study}: {policy}; {self.units} units × {self.steps} steps, seed {self.seed}; {self.seconds:.0f} s, "
            f"{rate:.0f} decisions a second"
        )

    def sections(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """All figures as rows under titles."""
        latency = [
            (f"{kind}: {part}", f"{value:.1f} ms")
            for kind, parts in self.latency.items()
            for part, value in parts.items()
        ]
        return [
            ("Decisions, by who made them", _counts(self.sources, self.decisions)),
            ("Rewards, by state", _counts(self.states, self.decisions)),
            ("Rewards, by how they were taken", _counts(self.taken)),
            ("What happened on purpose", _counts(self.sent)),
            ("Shares of the arms", [(arm, str(share)) for arm, share in self.arms.items()]),
            (
                "A decision (± standard error over units)",
                [
                    ("share by the fallback probabilities", f"{100 * self.fallbacks:.1f}%"),
                    ("mean reward, where known", str(self.reward)),
                    ("mean regret, against the best arm", str(self.regret)),
                ],
            ),
            ("Latency", latency),
            ("Malformed requests, refused with", _counts(self.refused)),
            ("Issues", _counts(self.issues) or [("none", "")]),
        ]

    def write(self, out: Path) -> list[Path]:
        """`rehearsal.json` and `rehearsal.html` into a folder."""
        texts = {"rehearsal.json": json.dumps(self.to_dict(), indent=1) + "\n", "rehearsal.html": self.page()}
        return [
            write_atomically(out / name, partial(Path.write_text, data=text, encoding="utf-8"))
            for name, text in texts.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """As JSON types."""
        estimates = {"arms": {arm: share._asdict() for arm, share in self.arms.items()}}
        return vars(self) | estimates | {"reward": self.reward._asdict(), "regret": self.regret._asdict()}

    def page(self) -> str:
        """A page that asks nothing of the network."""
        from larl.diagnosis.page import STYLE

        parts = [f"<p>{escape(self.about)}</p>", f'<p class="verdict">{escape(self.verdict)}</p>']
        if self.differences:
            items = "".join(f"<li>{escape(each)}</li>" for each in self.differences[:20])
            parts.append(f"<p>The first of them:</p><ul>{items}</ul>")
        for title, rows in self.sections():
            body = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in rows)
            parts.append(f'<h2>{escape(title)}</h2><div class="wide"><table><tbody>{body}</tbody></table></div>')
        title = f"Dress rehearsal of {escape(self.study)}"
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}{WIDTH}</style></head>'
            f"<body>\n<h1>{title}</h1>\n{''.join(parts)}\n</body></html>\n"
        )


def _counts(counts: Mapping[str, int], total: int = 0) -> list[tuple[str, str]]:
    """Counts, the largest first, and their shares of a total."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(name, f"{count:,}" + (f"  ({100 * count / total:.1f}%)" if total else "")) for name, count in ordered]
