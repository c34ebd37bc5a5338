"""Learning across units: cohorts that learn together, and new units after a pilot."""

from larl.reports.cohorts.experiments import Scope
from larl.reports.cohorts.report import write_report

__all__ = ["Scope", "write_report"]
