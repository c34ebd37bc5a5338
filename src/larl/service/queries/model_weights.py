"""The weights that a policy gives to the models that it considers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from larl.policies import LARLBIC, AdaptiveLARL, Auto, Policy
from larl.policies._context_scale import ContextScaleState
from larl.policies.auto.layout import DAMPED_ROTATION, INDEPENDENT_AR1, STATIONARY_AR
from larl.policies.auto.state import LOG_NO_WEIGHT

Weights = dict[str, float]


def _auto(state: Any) -> Weights:
    """Return the posterior of Auto: latent states of several orders, also with a learnt prior, and three other models.

    Dropped ones have weight 0.
    """
    populations = state.smc.populations
    names = {INDEPENDENT_AR1: "independent AR(1) arms", DAMPED_ROTATION: "rotating state"}
    learnt = {STATIONARY_AR: ", learnt prior"}
    labels = [
        names.get(form, f"order {order}{learnt.get(form, '')}" if order else "constant arms")
        for form, order in zip(populations.form.tolist(), populations.order.tolist(), strict=True)
    ]
    alive, evidence = populations.alive, populations.evidence
    if not alive.any():  # before the first reward: the prior
        evidence = state.smc.priors.log_weight[state.smc.rewards[0]]
        alive = evidence > LOG_NO_WEIGHT
    weight = np.zeros(alive.size)
    weight[alive] = np.exp(evidence[alive] - evidence[alive].max())
    return dict(zip(labels, (weight / weight.sum()).tolist(), strict=True))


def _adaptive(state: Any) -> Weights:
    """Return the weights of AdaptiveLARL for regressions on s = 0, 1, … steps."""
    weight = np.bincount(state.order, np.exp(state.log_weight - state.log_weight.max()))
    return {f"s = {s}": share for s, share in enumerate((weight / weight.sum()).tolist())}


def _bic(state: Any) -> Weights:
    """Return the one s that LARLBIC has chosen, if it has."""
    return {f"s = {int(state.chosen[0])}": 1.0} if state.chosen[0] else {}


WEIGHTS: dict[type[Policy], Callable[[Any], Weights]] = {Auto: _auto, AdaptiveLARL: _adaptive, LARLBIC: _bic}


def has_model_weights(policy: Policy) -> bool:
    """Return whether a policy weighs models."""
    return type(policy) in WEIGHTS


def model_weights(policy: Policy, state: Any) -> Weights | None:
    """Return the weight of each model; None if the policy weighs none, or none yet."""
    if not has_model_weights(policy):
        return None
    own = state.inner if isinstance(state, ContextScaleState) else state
    return WEIGHTS[type(policy)](own) or None
