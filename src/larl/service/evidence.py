"""Which worlds a policy holds for how likely, where it weighs some."""

from collections.abc import Callable
from typing import Any

import numpy as np

from larl.policies import LARLBIC, AdaptiveLARL, Auto, Policy
from larl.policies.auto.layout import DAMPED_ROTATION, INDEPENDENT_AR1

Weights = dict[str, float]


def _auto(state: Any) -> Weights:
    """Auto weighs latent states of several orders, and three other kinds of world."""
    pops = state.smc.populations
    names = {INDEPENDENT_AR1: "arms wander", DAMPED_ROTATION: "state turns"}
    labels = [
        names.get(form, f"order {order}" if order else "arms stand still")
        for form, order in zip(pops.form.tolist(), pops.order.tolist(), strict=True)
    ]
    weight = np.where(pops.alive, np.exp(pops.evidence - pops.evidence[pops.alive].max()), 0.0)
    return dict(zip(labels, (weight / weight.sum()).tolist(), strict=True))


def _adaptive(state: Any) -> Weights:
    """AdaptiveLARL weighs regressions on s = 0, 1, … steps."""
    weight = np.bincount(state.order, np.exp(state.log_weight - state.log_weight.max()))
    return {f"s = {s}": share for s, share in enumerate((weight / weight.sum()).tolist())}


def _bic(state: Any) -> Weights:
    """LARLBIC takes one s, once it has explored."""
    return {f"s = {int(state.chosen[0])}": 1.0} if state.chosen[0] else {}


WEIGHED: dict[type[Policy], Callable[[Any], Weights]] = {Auto: _auto, AdaptiveLARL: _adaptive, LARLBIC: _bic}


def weighs(policy: Policy) -> bool:
    """Whether a policy has evidence to show."""
    return type(policy) in WEIGHED


def evidence(policy: Policy, state: Any) -> Weights | None:
    """The weight of each world; None where the policy weighs none, or none yet."""
    return WEIGHED[type(policy)](state) or None if weighs(policy) else None
