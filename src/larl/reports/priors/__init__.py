"""New units after a pilot: what a learnt prior gains, and whether its intervals can be trusted."""

from larl.reports.priors.experiments import Scope
from larl.reports.priors.report import write_report

__all__ = ["Scope", "write_report"]
