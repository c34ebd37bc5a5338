"""Priors from earlier units: `learn_prior` fits the distribution of Auto's parameters over the units of a pilot."""

from larl.policies.auto.prior import Prior, PriorComponent, UnitSummary
from larl.priors.learn import learn_prior
from larl.priors.page import write_page

__all__ = ["Prior", "PriorComponent", "UnitSummary", "learn_prior", "write_page"]
