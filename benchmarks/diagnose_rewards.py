"""Error rates and coverage of `larl diagnose` on binary, count and bounded rewards: three tables of `diagnose.py`."""

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import larl
from larl.diagnosis.build import make_log
from larl.diagnosis.drift import find_drift
from larl.diagnosis.fit import fit_from_guesses, initial_guesses, refine
from larl.diagnosis.log import Log
from larl.diagnosis.model import Model, first_setting
from larl.diagnosis.rewards import choose_reward_model
from larl.policies import Bits, Policy, pick, register

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.diagnosis.logs import simulate_logs

from diagnose_periods import SEED, format_rate

GAMMA, DRAWS = 0.9, 100
LAYOUTS = ((1, 200), (30, 20))  # units and steps
HALF = math.sqrt(1.0 - GAMMA**2)  # σ_z with which the latent state has variance 1


def logit(p: float) -> float:
    return math.log(p / (1.0 - p))


def worlds(has_drift: bool) -> dict[str, larl.worlds.LatentGLM]:
    """Return worlds of two arms with the same mean reward. With drift the state moves them in opposite directions."""

    def world(size: float, mu: float, **family: Any) -> larl.worlds.LatentGLM:
        beta = size * has_drift
        return larl.worlds.LatentGLM(gammas=[GAMMA], sigma_z=HALF, beta=[-beta, beta], mu=[mu, mu], **family)

    counts = {"family": "negative_binomial", "dispersion": 0.5}
    return {
        "binary, 10% are 1": world(1.5, logit(0.1)),
        "binary, half are 1": world(1.5, 0.0),
        "counts, mean 0.5": world(0.75, math.log(0.5), **counts),
        "counts, mean 5": world(0.75, math.log(5.0), **counts),
        "0 to 180, 90% are 0": world(1.0, -1.0, family="hurdle", upper=180.0, offset=1.0 + logit(0.1)),
        "0 to 180, half are 0": world(1.0, -1.0, family="hurdle", upper=180.0, offset=1.0),
    }


class LastReward(NamedTuple):
    """What `WinStay` remembers."""

    arm: NDArray[np.int64]  # (1,) −1 before the first step
    reward: NDArray[np.float64]  # (1,)
    arms: int


def act(state: LastReward, bits: Bits) -> int:
    if state.arm[0] < 0:
        return pick(bits, state.arms)
    return state.arm[0] if state.reward[0] > 0.0 else (state.arm[0] + 1) % state.arms


def update(state: LastReward, arm: int, reward: float) -> None:
    state.arm[0], state.reward[0] = arm, reward


@register(LastReward, act, update)
@dataclass(frozen=True)
class WinStay(Policy):
    """Play the last arm again if its reward was positive, else the next one. No policy reacts more to one reward."""

    def init(self, arms: int, **_: Any) -> LastReward:
        return LastReward(np.full(1, -1), np.zeros(1), arms)


POLICIES: dict[str, Policy] = {"random": larl.Random(), "UCB": larl.UCB(standardise=True), "win-stay": WinStay()}


def logs(world: larl.worlds.LatentGLM, units: int, steps: int, count: int, policy: Policy) -> Iterator[Log]:
    """Yield `count` logs of several units."""
    frames = simulate_logs(world, steps, count * units, SEED, policy)
    for _ in range(count):
        yield make_log(pd.concat([next(frames).assign(u=u) for u in range(units)]))


def rate(world: larl.worlds.LatentGLM, units: int, steps: int, count: int, policy: Policy) -> str:
    """Return how often drift is reported."""
    return format_rate([find_drift(log).verdict == "drift" for log in logs(world, units, steps, count, policy)])


def reward_drift_rows(count: int, has_drift: bool) -> list[str]:
    """Return the table of how often drift is reported, by rewards, units and policy."""
    columns = [(units, steps, name) for units, steps in LAYOUTS for name in POLICIES]
    titles = [f"{units} × {steps}, {name}" for units, steps, name in columns]
    lines = [f"| | {' | '.join(titles)} |", f"| --- |{' --- |' * len(titles)}"]
    for title, world in worlds(has_drift).items():
        cells = [rate(world, units, steps, count, POLICIES[name]) for units, steps, name in columns]
        lines.append(f"| {title} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


class FittedOnce(NamedTuple):
    """What a fit of order 1 says about one log, relative to the true value."""

    gamma_error: float
    covers_gamma: bool
    covers_share: bool
    width: float  # of the interval of γ


def true_share(world: larl.worlds.LatentGLM) -> float:
    """Return the state's share of the variance of rewards, from 200,000 simulated rewards of each arm."""
    z = np.random.default_rng(SEED).normal(size=200_000)
    means = world.means(z)
    if world.family == "bernoulli":
        noise = means * (1.0 - means)
    elif world.family == "negative_binomial":
        noise = means + float(world.dispersion or 0.0) * means**2
    else:  # r/upper is 0, or has the distribution Beta(e^η, 1) with mean square e^η/(e^η + 2)
        eta = world.process.means(z)
        positive, shape = 1.0 / (1.0 + np.exp(-eta - float(world.offset or 0.0))), np.exp(eta)
        noise = float(world.upper or 1.0) ** 2 * positive * shape / (shape + 2.0) - means**2
    return float(np.mean(means.var(axis=0) / (means.var(axis=0) + noise.mean(axis=0))))


def fit_once(log: Log, model_class: Callable[[Log, int], Model], share: float) -> FittedOnce:
    """Fit order 1 and compare the posterior with the truth."""
    model, generator = model_class(log, 1), np.random.default_rng(0)
    fit = refine(fit_from_guesses(model, initial_guesses(model, find_drift(log).direction, generator)))
    theta = fit.draws(DRAWS, generator)
    low, middle, high = np.quantile(model.parameters(theta).gammas[:, 0], [0.025, 0.5, 0.975])
    shares = [model.variance_shares(first_setting(model.parameters(each[None])), np.zeros(1))[0] for each in theta]
    low_share, high_share = np.quantile(shares, [0.025, 0.975])
    return FittedOnce(
        float(middle) - GAMMA, bool(low <= GAMMA <= high), bool(low_share <= share <= high_share), float(high - low)
    )


def reward_fit_rows(count: int) -> list[str]:
    """Return the table of how well γ and the state's share of variance are estimated, by the model of the rewards."""
    columns = (
        "model",
        "mean error of γ",
        "interval of γ contains 0.9",
        "its mean width",
        "interval of the state's share contains it",
    )
    lines = [f"| rewards | {' | '.join(columns)} |", "| --- |" + " --- |" * len(columns)]
    units, steps = LAYOUTS[0]
    for title, world in worlds(True).items():
        share, sample = true_share(world), list(logs(world, units, steps, count, larl.Random()))
        kinds = [choose_reward_model(sample[0], None)]
        if kinds[0].kind != "continuous":
            kinds.append(choose_reward_model(sample[0], "continuous"))
        for each in kinds:
            fits = [fit_once(log, each.model_class, share) for log in sample]
            error = np.array([fit.gamma_error for fit in fits])
            cells = [
                each.kind,
                f"{error.mean():+.3f} ± {error.std() / math.sqrt(count):.3f}",
                format_rate([fit.covers_gamma for fit in fits]),
                f"{np.mean([fit.width for fit in fits]):.2f}",
                format_rate([fit.covers_share for fit in fits]),
            ]
            lines.append(f"| {title} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return lines
