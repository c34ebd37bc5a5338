"""Policies of other packages as two functions, choose(context) and learn(context, arm, reward)."""

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np

ChooseAndLearn = tuple[Callable[[Any], int], Callable[[Any, int, float], object]]


class Peer(NamedTuple):
    """A policy of another package; `make(arms, d, **settings)` returns the two functions."""

    title: str
    package: str
    make: Callable[..., ChooseAndLearn]
    contextual: bool
    grid: tuple[dict[str, float], ...]  # settings to tune over


def import_error(package: str) -> str:
    """Return the error of importing a package, or an empty string."""
    try:
        import_module(package)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:80]}"
    return ""


def installed_version(package: str) -> str:
    """Return the version of a package, or "?"."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "?"


def mabwiser(arms: int, d: int, alpha: float = 1.0) -> ChooseAndLearn:
    from mabwiser.mab import MAB, LearningPolicy

    peer = MAB(list(range(arms)), LearningPolicy.LinUCB(alpha=alpha, l2_lambda=1.0))
    peer.fit([0], [0.0], np.zeros((1, d)))  # it needs a first fit; a row of zeros changes nothing
    return lambda x: int(peer.predict(x[None])), lambda x, arm, r: peer.partial_fit([arm], [r], x[None])


def river(arms: int, _: int, alpha: float = 1.0, beta: float = 1.0) -> ChooseAndLearn:
    from river.bandit import LinUCBDisjoint

    peer, names = LinUCBDisjoint(alpha=alpha, beta=beta, seed=0), list(range(arms))
    return (
        lambda x: peer.pull(names, context=dict(enumerate(x.tolist()))),
        lambda x, arm, r: peer.update(arm, dict(enumerate(x.tolist())), r),
    )


def pymab_linucb(arms: int, d: int, alpha: float = 1.0) -> ChooseAndLearn:
    from pymab.policies.contextual_bandits import LinUCBPolicy

    peer, rng = LinUCBPolicy(n_arms=arms, n_features=d, alpha=alpha), np.random.default_rng(0)
    return (
        lambda x: int(peer.select_action(context=np.tile(x, (arms, 1)), rng=rng)),
        lambda x, arm, r: peer.update(action=arm, reward=r, context=np.tile(x, (arms, 1))),
    )


def _without_context(peer: Any) -> ChooseAndLearn:
    rng = np.random.default_rng(0)
    return lambda _: int(peer.select_action(rng=rng)), lambda _, arm, r: peer.update(action=arm, reward=r)


def pymab_window(arms: int, _: int, window: int = 20, c: float = 2.0) -> ChooseAndLearn:
    from pymab.policies.nonstationary import SlidingWindowUCBPolicy

    return _without_context(SlidingWindowUCBPolicy(n_arms=arms, window_size=window, c=c))


def pymab_discounted(arms: int, _: int, discount: float = 0.9, c: float = 2.0) -> ChooseAndLearn:
    from pymab.policies.nonstationary import DiscountedUCBPolicy

    return _without_context(DiscountedUCBPolicy(n_arms=arms, discount_factor=discount, c=c))


def bayesianbandits(arms: int, _: int, quantile: float = 0.84, keep: float = 1.0) -> ChooseAndLearn:
    from bayesianbandits import Arm, ContextualAgent, NormalRegressor, UpperConfidenceBound

    learners = [Arm(arm, learner=NormalRegressor(alpha=1.0, beta=1.0)) for arm in range(arms)]
    peer = ContextualAgent(learners, UpperConfidenceBound(quantile), random_seed=0)

    def learn(x: Any, arm: int, reward: float) -> None:
        peer.select_for_update(arm).update(x[None], np.array([reward]))
        if keep < 1.0:
            peer.decay(decay_rate=keep)

    return lambda x: int(peer.pull(x[None])[0]), learn


def bayesianbandits_decaying(arms: int, _: int, **settings: float) -> ChooseAndLearn:
    choose, learn = bayesianbandits(arms, 1, **settings)
    intercept = np.ones(1)
    return lambda _: choose(intercept), lambda _, arm, r: learn(intercept, arm, r)


def contextualbandits(arms: int, _: int, alpha: float = 1.0) -> ChooseAndLearn:
    from contextualbandits.online import LinUCB

    peer = LinUCB(nchoices=arms, alpha=alpha, fit_intercept=False, use_float=False, random_state=1)
    return lambda x: int(peer.predict(x[None])[0]), lambda x, arm, r: peer.partial_fit(
        x[None], np.array([arm]), np.array([r])
    )


ALPHAS = tuple({"alpha": alpha} for alpha in (0.3, 1.0, 3.0))
LAGS = (1, 5)  # values of s of LARL's context, which contextual peers get
PEERS = (
    Peer("MABWiser LinUCB", "mabwiser", mabwiser, True, ALPHAS),
    Peer("river LinUCB", "river", river, True, tuple({"alpha": alpha, "beta": 1.0} for alpha in (0.3, 1.0, 3.0))),
    Peer("pymab LinUCB", "pymab", pymab_linucb, True, ALPHAS),
    Peer("contextualbandits LinUCB", "contextualbandits", contextualbandits, True, ALPHAS),
    Peer("bayesianbandits UCB", "bayesianbandits", bayesianbandits, True, ({"quantile": 0.84},)),
    Peer(
        "bayesianbandits UCB, decaying",
        "bayesianbandits",
        bayesianbandits_decaying,
        False,
        tuple({"keep": keep, "quantile": quantile} for keep in (0.7, 0.8, 0.9, 0.95) for quantile in (0.6, 0.84)),
    ),
    Peer(
        "pymab SW-UCB",
        "pymab",
        pymab_window,
        False,
        tuple({"window": window, "c": c} for window in (3, 5, 8, 12, 20, 40) for c in (0.5, 1.0, 2.0)),
    ),
    Peer(
        "pymab D-UCB",
        "pymab",
        pymab_discounted,
        False,
        tuple({"discount": gamma, "c": c} for gamma in (0.5, 0.6, 0.7, 0.8, 0.9, 0.95) for c in (0.5, 1.0, 2.0)),
    ),
)
