"""Change-point Thompson sampling against an enumeration of all change histories with their joint normal densities."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

import larl
from tests.stepping import decide, learn

HAZARD, SIGMA, PRIOR = 0.2, 0.7, 1.5
SPEC = larl.ChangePointThompson(HAZARD, SIGMA, PRIOR, memory=50)


def evidence(plays):
    """Return the density of the rewards of a segment without change, in which each arm has one mean, N(0, PRIOR²)."""
    density = 1.0
    for arm in {arm for arm, _ in plays}:
        rewards = [reward for other, reward in plays if other == arm]
        cov = np.full((len(rewards), len(rewards)), PRIOR**2) + SIGMA**2 * np.eye(len(rewards))
        density *= multivariate_normal(np.zeros(len(rewards)), cov).pdf(rewards)
    return density


def last_change(plays):
    """Return P(the last change was just before step i | plays), i = 0 … n; 0 is the start."""
    n, mass = len(plays), np.zeros(len(plays) + 1)
    for changes in itertools.product([False, True], repeat=n):  # before step 1 … n
        edges = [0, *(i + 1 for i in range(n) if changes[i])]
        prior = HAZARD ** sum(changes) * (1.0 - HAZARD) ** (n - sum(changes))
        segments = [plays[i:j] for i, j in itertools.pairwise([*edges, n])]
        mass[edges[-1]] += prior * math.prod(evidence(segment) for segment in segments)
    return mass / mass.sum()


def draw_plays(seed, n, arms):
    rng = np.random.default_rng(seed)
    return [(int(rng.integers(arms)), float(rng.normal(2.0 if t < n // 2 else -1.0))) for t in range(n)]


def updated_state(plays, arms, spec=SPEC):
    state = spec.init(arms)
    for arm, reward in plays:
        learn(state, arm, reward)
    return state


@pytest.mark.parametrize("seed", range(3))
def test_weights_are_the_posterior_of_the_last_change(seed):
    plays = draw_plays(seed, 8, 3)
    for n in range(9):
        state = updated_state(plays[:n], 3)
        assert state.used[0] == n + 1
        assert np.allclose(state.weight[: n + 1], last_change(plays[:n]), rtol=1e-8)
        for i in range(n + 1):  # hypothesis i has the plays since step i
            for arm in range(3):
                since = [reward for other, reward in plays[i:n] if other == arm]
                assert state.plays[i, arm] == len(since)
                assert state.total[i, arm] == pytest.approx(sum(since), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_choice_frequencies_are_exact(seed):
    plays, size, p = draw_plays(seed, 8, 2), 5000, 0.0
    for i, weight in enumerate(last_change(plays)):
        mean, variance = np.zeros(2), np.zeros(2)
        for arm in range(2):
            since = [reward for other, reward in plays[i:] if other == arm]
            variance[arm] = 1.0 / (PRIOR**-2 + len(since) * SIGMA**-2)
            mean[arm] = variance[arm] * sum(since) / SIGMA**2
        p += weight * norm.cdf((mean[1] - mean[0]) / math.sqrt(variance.sum()))
    state = updated_state(plays, 2)
    seeds = np.random.default_rng(seed).integers(0, 2**64, size, dtype=np.uint64)
    share = np.mean([decide(state, seed) for seed in seeds])
    assert abs(share - p) < 4 * math.sqrt(p * (1 - p) / size)  # 4 standard errors


def test_hypothesis_and_means_use_different_random_bits():
    # One play of arm 1, hazard ½: with probability ½ it still counts, otherwise the arms are equal. If the hypothesis
    # used the bits of arm 0's mean, the share would be wrong by about 0.03.
    size, reward = 20_000, 3.0
    state = updated_state([(1, reward)], 2, larl.ChangePointThompson(0.5, SIGMA, PRIOR))
    variance = 1.0 / (PRIOR**-2 + SIGMA**-2)
    p = 0.5 * norm.cdf(variance * reward / SIGMA**2 / math.sqrt(PRIOR**2 + variance)) + 0.5 * 0.5
    seeds = np.random.default_rng(6).integers(0, 2**64, size, dtype=np.uint64)
    share = np.mean([decide(state, seed) for seed in seeds])
    assert abs(share - p) < 4 * math.sqrt(p * (1 - p) / size)  # 4 standard errors: 0.013


@pytest.mark.parametrize("memory", [2, 3, 7])
def test_full_memory_drops_the_least_likely_hypothesis(memory):
    plays = draw_plays(9, 40, 2)
    state, kept = larl.ChangePointThompson(HAZARD, SIGMA, PRIOR, memory).init(2), {0: 1.0}
    for n in range(40):
        learn(state, *plays[n])
        for start in kept:
            kept[start] *= evidence(plays[start : n + 1]) / evidence(plays[start:n])
        if len(kept) == memory:
            del kept[min(kept, key=kept.get)]
        total = sum(kept.values())
        kept = {start: (1.0 - HAZARD) * weight / total for start, weight in kept.items()} | {n + 1: HAZARD}
        held = {n + 1 - int(state.plays[i].sum()): state.weight[i] for i in range(state.used[0])}
        assert held.keys() == kept.keys()
        assert np.allclose([held[start] for start in kept], list(kept.values()), rtol=1e-7)


def test_change_is_detected():
    # 30 steps around 3, then 6 around −3: nearly all weight is on a change at step 30 or later.
    rng = np.random.default_rng(5)
    state = updated_state([(t % 2, rng.normal(3.0 if t < 30 else -3.0, SIGMA)) for t in range(36)], 2)
    assert state.weight[30:37].sum() > 0.999
    assert state.weight[:37].sum() == pytest.approx(1.0, abs=1e-12)


def test_weights_stay_a_distribution_after_outliers():
    state = updated_state([*draw_plays(1, 10, 2), (0, 1e6), (1, -1e6), *draw_plays(2, 10, 2)], 2)
    assert state.weight.min() >= 0.0
    assert state.weight.sum() == pytest.approx(1.0, abs=1e-12)
