"""Online EM for a hidden Markov chain with normal rewards (Cappé 2011, "Online EM algorithm for hidden Markov models").

Filtered sufficient statistics follow a recursion: ρ_t(k) is the running average of a statistic given x_t = k, and
Σ_k P(x_t = k) ρ_t(k) is its average. After each reward the parameters are set to their posterior mode given these
averages and prior counts, which keep all of them finite and all transition probabilities positive.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import inline, inner

Floats = NDArray[np.float64]
STEP_POWER = 0.6  # the average after t rewards gives the latest one weight t^−0.6
FIRST_ESTIMATE = 10  # rewards before the first new parameters
PRIOR_MOVES, PRIOR_PLAYS, PRIOR_NOISE = 10.0, 1.0, 5.0  # prior counts: of each row, of each mean, of the noise variance
MIN_VARIANCE = 1e-6  # of the noise, in squared units of the standardised rewards


class OnlineEM(NamedTuple):
    """Belief, parameters and statistics before step t."""

    belief: Floats  # (n,) P(x_t = i | rewards before t)
    transition: Floats  # (n, n)
    means: Floats  # (n, arms)
    variance: Floats  # (1,) of the noise
    prior_transition: Floats  # (n, n)
    prior_means: Floats  # (n, arms)
    moves: Floats  # (n, n, n) ρ of the transition i → j given the last state k
    plays: Floats  # (n, arms, n) ρ of a reward in state i of an arm, given k
    total: Floats  # (n, arms, n) ρ of its reward
    square: Floats  # (1,) running average of squared rewards
    seen: Floats  # (1,) number of rewards


def online_em_init(states: int, arms: int, persistence: float) -> OnlineEM:
    """Return the prior: states stay with probability `persistence`, and their prior means differ."""
    row = (1.0 - persistence) / max(states - 1, 1)
    transition = np.where(np.eye(states, dtype=bool), persistence if states > 1 else 1.0, row)
    means = np.random.default_rng(0).normal(size=(states, arms))  # fixed: EM cannot separate states with equal means
    return OnlineEM(
        belief=np.full(states, 1.0 / states),
        transition=transition,
        means=means.copy(),
        variance=np.ones(1),
        prior_transition=transition.copy(),
        prior_means=means,
        moves=np.zeros((states, states, states)),
        plays=np.zeros((states, arms, states)),
        total=np.zeros((states, arms, states)),
        square=np.zeros(1),
        seen=np.zeros(1),
    )


@inline
def filtered_belief(em: OnlineEM, arm: int, reward: float, filtered: Floats) -> None:
    """Write P(x_t = i | rewards up to t)."""
    n, largest, total = em.belief.size, -math.inf, 0.0
    for i in range(n):
        deviation = reward - em.means[i, arm]
        filtered[i] = math.log(max(em.belief[i], 1e-300)) - 0.5 * deviation * deviation / em.variance[0]
        largest = max(largest, filtered[i])
    for i in range(n):
        filtered[i] = math.exp(filtered[i] - largest)
        total += filtered[i]
    for i in range(n):
        filtered[i] /= total


@inner
def carry_statistics(em: OnlineEM, previous: Floats, share: float) -> Floats:
    """Make statistics given x_{t−1} those given x_t, times `share`; return r(i | k) at [k, i].

    r(i | k) = P(x_{t−1} = i | x_t = k) ∝ P(x_{t−1} = i) P(i → k). `previous` is P(x_{t−1} | rewards before t).
    """
    n, arms = em.means.shape
    old_moves, old_plays, old_total = em.moves.copy(), em.plays.copy(), em.total.copy()
    back = np.empty((n, n))
    for k in range(n):
        norm = 0.0
        for i in range(n):
            back[k, i] = previous[i] * em.transition[i, k]
            norm += back[k, i]
        for i in range(n):
            back[k, i] = back[k, i] / norm if norm > 0.0 else 1.0 / n
        for i in range(n):
            for j in range(n):
                em.moves[i, j, k] = share * average(old_moves[i, j], back[k])
            for arm in range(arms):
                em.plays[i, arm, k] = share * average(old_plays[i, arm], back[k])
                em.total[i, arm, k] = share * average(old_total[i, arm], back[k])
    return back


@inner
def online_em_update(em: OnlineEM, previous: Floats, arm: int, reward: float) -> None:
    """Update statistics, parameters and belief with a reward. `previous`, P(x_{t−1} | rewards before t), is set."""
    n = em.belief.size
    step, filtered = (em.seen[0] + 1.0) ** -STEP_POWER, np.empty(n)
    filtered_belief(em, arm, reward, filtered)
    back = carry_statistics(em, previous, 1.0 - step)
    for k in range(n):
        if em.seen[0] > 0.0:
            for i in range(n):
                em.moves[i, k, k] += step * back[k, i]
        em.plays[k, arm, k] += step
        em.total[k, arm, k] += step * reward
    em.square[0] = (1.0 - step) * em.square[0] + step * reward * reward
    em.seen[0] += 1.0
    if em.seen[0] >= FIRST_ESTIMATE:
        set_parameters(em, filtered, 1.0 / step)
    for i in range(n):
        previous[i] = filtered[i]
    predict_next(em, previous)


@inline
def average(values: Floats, weights: Floats) -> float:
    """Return Σ values · weights."""
    total = 0.0
    for i in range(values.size):
        total += values[i] * weights[i]
    return total


@inline
def set_parameters(em: OnlineEM, filtered: Floats, size: float) -> None:
    """Set the parameters from the averages, which count as `size` rewards, and the prior."""
    n, arms = em.means.shape
    explained = 0.0
    for i in range(n):
        row = PRIOR_MOVES
        for j in range(n):
            row += size * average(em.moves[i, j], filtered)
        for j in range(n):
            count = PRIOR_MOVES * em.prior_transition[i, j] + size * average(em.moves[i, j], filtered)
            em.transition[i, j] = count / row
        for arm in range(arms):
            plays, total = average(em.plays[i, arm], filtered), average(em.total[i, arm], filtered)
            mean = (PRIOR_PLAYS * em.prior_means[i, arm] + size * total) / (PRIOR_PLAYS + size * plays)
            em.means[i, arm] = mean
            explained += 2.0 * mean * total - mean * mean * plays
    residual = max(em.square[0] - explained, 0.0)
    em.variance[0] = max((PRIOR_NOISE + size * residual) / (PRIOR_NOISE + size), MIN_VARIANCE)


@inline
def predict_next(em: OnlineEM, previous: Floats) -> None:
    """Set the belief to the prediction from P(x_{t−1})."""
    for j in range(em.belief.size):
        em.belief[j] = 0.0
        for i in range(em.belief.size):
            em.belief[j] += previous[i] * em.transition[i, j]


@inline
def online_em_missing(em: OnlineEM, previous: Floats) -> None:
    """Move the belief and the statistics by one step without a reward, which counts nothing."""
    carry_statistics(em, previous, 1.0)
    for i in range(em.belief.size):
        previous[i] = em.belief[i]
    predict_next(em, previous)
