"""Comparison of all policies: tuned on other seeds, in the paper's worlds, with hidden Markov states, and in others."""

from larl.reports.comparison.experiments import Scope
from larl.reports.comparison.report import write_report

__all__ = ["Scope", "write_report"]
