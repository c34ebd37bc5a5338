"""Evaluation of Auto: its regret in many worlds, compared with LARL, tuned baselines and the Kalman filter."""

from larl.reports.auto.experiments import Scope
from larl.reports.auto.report import write_report

__all__ = ["Scope", "write_report"]
