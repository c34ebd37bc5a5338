"""Comparison of policies on data that come inside PyPI packages (the extra `data`)."""

from larl.reports.real_data.experiments import Scope
from larl.reports.real_data.report import write_report

__all__ = ["Scope", "write_report"]
