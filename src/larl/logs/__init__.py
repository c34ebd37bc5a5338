"""Logs of decisions: the reader of `larl.diagnose` and of warm starts."""

from larl.logs.steps import read_steps as read_steps
