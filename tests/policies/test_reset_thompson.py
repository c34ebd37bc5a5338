"""Thompson sampling with resets against an enumeration of all histories of resets of each arm."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

import larl
from larl._core.states import copy_state
from tests.policies.test_live_functions import simulate_choices
from tests.policies.test_mixture_probabilities import integrated
from tests.stepping import decide, learn

HAZARD, SIGMA, PRIOR = 0.2, 0.7, 1.5
SPEC = larl.ResetThompson(HAZARD, SIGMA, PRIOR, memory=20)


@cache
def evidence(*rewards):
    """Return the density of rewards that share one mean, N(0, PRIOR²)."""
    n = len(rewards)
    return multivariate_normal(np.zeros(n), np.full((n, n), PRIOR**2) + SIGMA**2 * np.eye(n)).pdf(rewards) if n else 1.0


def since_reset(steps, arm):
    """Return {number of the arm's rewards since its last reset: probability} by all sequences of resets."""
    n, mass = len(steps), {}
    own = [reward if other == arm and not math.isnan(reward) else None for other, reward in steps]
    for resets in itertools.product([False, True], repeat=n):  # after step 1 … n
        edges = [0, *(i + 1 for i in range(n) if resets[i]), n]
        segments = [[r for r in own[i:j] if r is not None] for i, j in itertools.pairwise(edges)]
        prior = HAZARD ** sum(resets) * (1.0 - HAZARD) ** (n - sum(resets))
        plays = len(segments[-1])
        mass[plays] = mass.get(plays, 0.0) + prior * math.prod(evidence(*segment) for segment in segments)
    total = sum(mass.values())
    return {plays: value / total for plays, value in mass.items()}


def draw_steps(seed, n, arms):
    rng = np.random.default_rng(seed)
    rewards = np.where(rng.random(n) < 0.2, math.nan, rng.normal(np.where(np.arange(n) < n // 2, 2.0, -1.0)))
    return list(zip(rng.integers(arms, size=n).tolist(), rewards.tolist(), strict=True))


def updated_state(steps, arms, spec=SPEC):
    state = spec.init(arms)
    for arm, reward in steps:
        learn(state, arm, reward)
    return state


def hypotheses(state, arm):
    used = state.used[arm]
    return dict(zip(state.plays[arm, :used].astype(int).tolist(), state.weight[arm, :used].tolist(), strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_weights_are_the_posterior_of_the_last_reset(seed):
    steps = draw_steps(seed, 9, 2)
    for n in (0, 1, 4, 9):
        state = updated_state(steps[:n], 2)
        for arm in range(2):
            expected = since_reset(steps[:n], arm)
            assert hypotheses(state, arm) == pytest.approx(expected, rel=1e-8)
            rewards = [r for other, r in steps[:n] if other == arm and not math.isnan(r)]
            for i in range(state.used[arm]):
                latest = rewards[len(rewards) - int(state.plays[arm, i]) :]
                assert state.total[arm, i] == pytest.approx(sum(latest), abs=1e-12)


def components(steps, arm):
    """Return weights, means and sds of the exact posterior of an arm's mean."""
    rewards = [r for other, r in steps if other == arm and not math.isnan(r)]
    posterior = since_reset(steps, arm)
    variance = {k: 1.0 / (PRIOR**-2 + k * SIGMA**-2) for k in posterior}
    mean = [variance[k] * sum(rewards[len(rewards) - k :]) / SIGMA**2 for k in posterior]
    return np.array(list(posterior.values())), np.array(mean), np.sqrt(list(variance.values()))


@pytest.mark.parametrize("seed", range(2))
def test_action_probabilities_are_the_integrals_over_the_exact_posterior(seed):
    steps = draw_steps(seed, 10, 3)
    parts = [components(steps, arm) for arm in range(3)]
    expected = integrated(*zip(*parts, strict=True), [True] * 3)
    state = updated_state(steps, 3)
    assert simulate_choices(copy_state(state), [True] * 3)[0] == pytest.approx(expected, abs=1e-9)
    only_two = simulate_choices(copy_state(state), [True, False, True])[0]
    (w, m, s), (v, n, q) = parts[0], parts[2]
    exact = w @ norm.cdf((m[:, None] - n) / np.hypot(s[:, None], q)) @ v
    assert only_two == pytest.approx([exact, 0.0, 1.0 - exact], abs=1e-12)


def test_unplayed_arm_returns_to_its_prior():
    # After n steps without a play, the one reward still counts with probability (1 − h)ⁿ.
    state = updated_state([(0, 2.0)], 2)
    for n in range(1, 15):
        assert hypotheses(state, 0)[1] == pytest.approx((1.0 - HAZARD) ** n, rel=1e-12)
        assert state.weight[0].sum() == pytest.approx(1.0, abs=1e-14)
        learn(state, 1, 0.0)


def test_rare_resets_are_thompson_sampling():
    steps = [(t % 3, float(np.sin(t))) for t in range(60)]
    state = updated_state(steps, 3, larl.ResetThompson(1e-12, SIGMA, PRIOR))
    same = updated_state(steps, 3, larl.ThompsonSampling(SIGMA, PRIOR))
    expected = simulate_choices(copy_state(same), [True] * 3)[0]
    assert simulate_choices(copy_state(state), [True] * 3)[0] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("memory", [2, 3, 6])
def test_full_memory_forgets_the_least_likely_hypothesis(memory):
    rng, rewards, kept = np.random.default_rng(memory), [], {0: 1.0}
    state = larl.ResetThompson(HAZARD, SIGMA, PRIOR, memory).init(2)
    for _ in range(30):
        rewards.append(float(rng.normal(2.0 * rng.integers(2))))
        learn(state, 0, rewards[-1])
        ratio = {k: evidence(*rewards[-k - 1 :]) / evidence(*rewards[len(rewards) - 1 - k : -1]) for k in kept}
        kept = {k + 1: weight * ratio[k] for k, weight in kept.items()}
        if len(kept) == memory:
            del kept[min(kept, key=kept.get)]
        total = sum(kept.values())
        kept = {0: HAZARD} | {k: (1.0 - HAZARD) * weight / total for k, weight in kept.items()}
        assert hypotheses(state, 0) == pytest.approx(kept, rel=1e-7)


def test_hypotheses_of_two_arms_are_drawn_independently():
    # Both arms were played once, with reward 3; each play counts with probability ½. 20,000 draws, 4 standard errors.
    state = updated_state([(0, 3.0), (1, 3.0), (2, 0.0)], 3, larl.ResetThompson(0.5, SIGMA, PRIOR))
    p, size = simulate_choices(copy_state(state), [True] * 3)[0], 20_000
    seeds = np.random.default_rng(6).integers(0, 2**64, size, dtype=np.uint64)
    share = np.bincount([decide(state, seed) for seed in seeds], minlength=3) / size
    assert np.all(np.abs(share - p) < 4.0 * np.sqrt(p * (1.0 - p) / size))
