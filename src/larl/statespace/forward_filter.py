"""The exact forward filter of a hidden Markov chain: P(x_t = i | actions and rewards before step t).

Beliefs are logarithms, so a state whose probability is below 10⁻³⁰⁸ keeps its exact rank. Every number is finite:
`IMPOSSIBLE` stands for the logarithm of 0.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from larl._core.compile import inline, kernel
from larl._core.validation import InvalidValue, array, instance, integer, number
from larl.worlds.latent_markov import LatentMarkov

Floats = NDArray[np.float64]
IMPOSSIBLE = -1e300  # log 0
LEAST = -1e290  # of a logarithm of a probability that is not 0

validate_markov_world = instance(LatentMarkov, "a larl.worlds.LatentMarkov")


class ForwardState(NamedTuple):
    """The filter before step t, and the parameters of the chain."""

    log_belief: Floats  # (n,) log P(x_t = i | past); IMPOSSIBLE if 0
    belief: Floats  # (n,) P(x_t = i | past)
    log_transition: Floats  # (n, n)
    means: Floats  # (n, arms)
    sigma: float  # sd of the reward noise


def safe_log(probabilities: Floats) -> Floats:
    """Return logarithms of probabilities; IMPOSSIBLE for 0."""
    return np.where(probabilities > 0.0, np.log(np.where(probabilities > 0.0, probabilities, 1.0)), IMPOSSIBLE)


def initial_forward_state(world: LatentMarkov) -> ForwardState:
    """Return the filter before the first step: the distribution of the world's start."""
    start, transition = world.start_probabilities, np.array(world.transition)
    return ForwardState(
        log_belief=safe_log(start),
        belief=start.copy(),
        log_transition=safe_log(transition / transition.sum(axis=1, keepdims=True)),
        means=np.array(world.means),
        sigma=world.sigma_r,
    )


@inline
def log_likelihood_ratio(mean: float, nearest: float, sigma: float, reward: float) -> float:
    """Return log N(reward; mean, σ²) − log N(reward; nearest, σ²), at least LEAST, if |reward − nearest| is not larger.

    The difference of the squares is a product, which keeps its digits for outlying rewards. With σ = 0 it is a limit.
    """
    gap, distance = abs(mean - nearest), abs(reward - 0.5 * (mean + nearest))
    if gap == 0.0 or distance == 0.0:
        return 0.0
    if sigma == 0.0:
        return LEAST
    return max(-(gap / sigma) * (distance / sigma), LEAST)


@inline
def condition_belief(log_belief: Floats, means: Floats, sigma: float, arm: int, reward: float) -> None:
    """Add the log-likelihood of a reward, up to a constant, to the belief of every possible state."""
    nearest, least = 0.0, math.inf
    for i in range(log_belief.size):
        distance = abs(reward - means[i, arm])
        if log_belief[i] > IMPOSSIBLE and distance < least:
            nearest, least = means[i, arm], distance
    for i in range(log_belief.size):
        if log_belief[i] > IMPOSSIBLE:
            log_belief[i] += log_likelihood_ratio(means[i, arm], nearest, sigma, reward)


@inline
def normalise_log(log_weights: Floats, weights: Floats) -> None:
    """Normalise logarithms of weights in place, and write the probabilities to `weights`."""
    largest, total = IMPOSSIBLE, 0.0
    for i in range(log_weights.size):
        largest = max(largest, log_weights[i])
    for i in range(log_weights.size):
        weights[i] = math.exp(log_weights[i] - largest)
        total += weights[i]
    shift = largest + math.log(total)
    for i in range(log_weights.size):
        weights[i] /= total
        is_possible = log_weights[i] > IMPOSSIBLE
        log_weights[i] = max(log_weights[i] - shift, LEAST) if is_possible else IMPOSSIBLE


@kernel
def predict_belief(state: ForwardState) -> None:
    """Move the belief, which includes this step's reward, to the next step, and normalise it."""
    n = state.log_belief.size
    following = np.empty(n)
    for j in range(n):
        largest, total = IMPOSSIBLE, 0.0
        for i in range(n):
            if state.log_belief[i] > IMPOSSIBLE and state.log_transition[i, j] > IMPOSSIBLE:
                largest = max(largest, state.log_belief[i] + state.log_transition[i, j])
        if largest > IMPOSSIBLE:
            for i in range(n):
                total += math.exp(state.log_belief[i] + state.log_transition[i, j] - largest)
            largest += math.log(total)
        following[j] = largest
    for j in range(n):
        state.log_belief[j] = following[j]
    normalise_log(state.log_belief, state.belief)


@kernel
def update_forward(state: ForwardState, arm: int, reward: float) -> None:
    """Condition on this step's reward and predict the next step."""
    condition_belief(state.log_belief, state.means, state.sigma, arm, reward)
    predict_belief(state)


@inline
def expected_mean(belief: Floats, means: Floats, arm: int) -> float:
    """Return Σ_i P(x_t = i) means[i, arm]."""
    total = 0.0
    for i in range(belief.size):
        total += belief[i] * means[i, arm]
    return total


@inline
def best_expected_arm(belief: Floats, means: Floats) -> int:
    """Return the lowest arm with the largest expected mean."""
    best, choice = -math.inf, 0
    for arm in range(means.shape[1]):
        mean = expected_mean(belief, means, arm)
        if mean > best:
            best, choice = mean, arm
    return choice


def forward_path(world: LatentMarkov, arms: ArrayLike, rewards: ArrayLike) -> Floats:
    """Return the exact distribution of each x_t given the actions and rewards before step t.

    Parameters
    ----------
    world : LatentMarkov
        The world, whose parameters the filter knows.
    arms : sequence of int
        The arm played at each step.
    rewards : sequence of float
        The reward of each step.

    Returns
    -------
    array, (steps, n)

    Raises
    ------
    InvalidValue
        If an arm is not one of the world's or the lengths differ.

    Examples
    --------
    >>> import larl
    >>> from larl.statespace.forward_filter import forward_path
    >>> world = larl.worlds.LatentMarkov(transition=((0.9, 0.1), (0.1, 0.9)), means=((0.0, 1.0), (1.0, 0.0)))
    >>> forward_path(world, arms=[1, 1], rewards=[2.0, 1.0]).round(3).tolist()
    [[0.5, 0.5], [0.754, 0.246]]
    """
    world = validate_markov_world("forward_path", "world", world)
    played, observed = np.asarray(arms), array("forward_path", "rewards", rewards)
    if played.shape != observed.shape or played.ndim != 1:
        raise InvalidValue("forward_path", "rewards", observed.shape, f"as many rewards as arms: shape {played.shape}")
    state, beliefs = initial_forward_state(world), np.empty((observed.size, world.states))
    for t in range(observed.size):
        arm = integer(0, world.arms - 1)("forward_path", f"arms[{t}]", played[t])
        beliefs[t] = state.belief
        update_forward(state, arm, number()("forward_path", f"rewards[{t}]", observed[t]))
    return beliefs
