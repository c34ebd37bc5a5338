"""Beta Thompson sampling: posteriors by brute force, draws and probabilities against scipy, and its two limits."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betainc, betaincinv, betaln, expit, logit
from scipy.stats import beta, norm

import larl
from larl._core.compile import kernel
from larl._core.random import empty_bits, seed_bits
from larl.policies._beta import log_peak, log_ratio, logit_cdf, logit_draw
from larl.policies._beta_thompson import beta_sample_probabilities
from tests.policies.test_live_functions import leaves, simulate_choices
from tests.stepping import decide, learn

PRIOR = (0.7, 1.6)
SHAPES = [(1.0, 1.0), (0.5, 0.5), (0.001, 0.02), (0.3, 1000.0), (30.0, 4.0), (2.5, 40_000.0), (0.001, 1e6), (1e6, 2e6)]


@kernel
def cdf_at(y, a, b):
    return logit_cdf(y, a, b, math.exp(log_peak(a, b) + log_ratio(y, a, b)))


@kernel
def draw_many(a, b, size, seed):
    bits, draws = empty_bits(), np.empty(size)
    seed_bits(bits, np.uint64(seed))
    for i in range(size):
        draws[i] = logit_draw(bits, a, b)
    return draws


@kernel
def probabilities_of(plays, total, prior, available):
    out = np.full(plays.size, np.nan)
    beta_sample_probabilities(plays, total, prior[0], prior[1], available, out)
    return out


def probabilities(a, b, available=None):
    """Return the probability that each arm's Beta(a, b) draw is the largest."""
    plays, total = np.array(a) + np.array(b) - 2e-3, np.array(a) - 1e-3
    can = np.ones(plays.size, dtype=bool) if available is None else np.array(available)
    return probabilities_of(plays, total, (1e-3, 1e-3), can)


@pytest.mark.parametrize(("a", "b"), [*SHAPES, *(shape[::-1] for shape in SHAPES)])
def test_distribution_function_is_the_incomplete_beta_function(a, b):
    quantiles = np.array([1e-12, 1e-4, 0.02, 0.3, 0.5, 0.8, 0.99])
    x = betaincinv(a, b, quantiles)
    y = logit(x[(x > 1e-250) & (x < 0.99)])
    y = np.concatenate([y, np.log(a / b) + np.array([-40.0, -6.0, -3.0, 0.0, 3.0, 6.0, 40.0])])
    expected = np.where(y < 0.0, betainc(a, b, expit(y)), 1.0 - betainc(b, a, expit(-y)))
    assert [cdf_at(each, a, b) for each in y] == pytest.approx(expected, rel=2e-10, abs=1e-14)


def test_distribution_function_inverts_the_quantiles():
    for a, b in ((1.0, 1.0), (0.5, 2.0), (7.0, 3.0), (300.0, 700.0), (20_000.0, 50_000.0)):
        for p in (1e-6, 0.05, 0.5, 0.9):
            assert cdf_at(logit(betaincinv(a, b, p)), a, b) == pytest.approx(p, rel=1e-10)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.001, 0.002), (0.02, 0.5), (0.8, 3.0), (40.0, 2.0), (3e4, 5e4)])
def test_draws_have_the_distribution_function(a, b):
    size = 40_000
    draws, y = draw_many(a, b, size, 5), np.log(a / b) + np.array([-300.0, -20.0, -1.0, -0.01, 0.0, 0.01, 1.0, 20.0])
    expected = np.where(y < 0.0, betainc(a, b, expit(y)), 1.0 - betainc(b, a, expit(-y)))
    error = np.sqrt(expected * (1.0 - expected) / size)
    share = (draws[:, None] <= y).mean(axis=0)
    assert np.isfinite(draws).all()
    assert np.all(np.abs(share - expected) <= 4.0 * error + 1e-9)


def two_arms(a0, b0, a1, b1):
    """Return P(Beta(a1, b1) > Beta(a0, b0)) for a whole number a1, as a finite sum."""
    i = np.arange(a1)
    return np.exp(betaln(a0 + i, b0 + b1) - np.log(b1 + i) - betaln(1 + i, b1) - betaln(a0, b0)).sum()


@pytest.mark.parametrize(
    "shapes",
    [
        (1, 1, 1, 1),
        (2, 1, 1, 1),
        (1, 1, 1, 200),
        (30, 70, 40, 60),
        (1, 1000, 2, 1000),
        (300, 700, 310, 690),
        (3000, 7000, 3100, 6900),
        (0.01, 0.01, 3, 0.01),
        (0.001, 1000, 1, 500.5),
    ],
)
def test_probabilities_of_two_arms_equal_the_closed_form(shapes):
    a0, b0, a1, b1 = shapes
    expected = two_arms(*shapes)
    assert probabilities([a0, a1], [b0, b1]) == pytest.approx([1.0 - expected, expected], abs=1e-10)
    assert probabilities([a1, a0], [b1, b0]) == pytest.approx([expected, 1.0 - expected], abs=1e-10)


@pytest.mark.parametrize("shapes", [(0.001, 0.001, 1, 0.001), (0.001, 0.02, 1, 0.003), (0.01, 0.5, 1, 0.01)])
def test_tails_of_small_parameters_are_resolved(shapes):
    a0, b0, a1, b1 = shapes
    assert probabilities([a0, a1], [b0, b1])[1] == pytest.approx(two_arms(*shapes), abs=1e-12)


def by_quadrature(a, b):
    """Return the same integrals over success probabilities, by adaptive quadrature."""
    out = []
    for i in range(len(a)):
        points = [betaincinv(a[i], b[i], p) for p in (0.0, 1e-9, 1e-3, 0.1, 0.5, 0.9, 0.999, 1.0 - 1e-9, 1.0)]

        def integrand(x, i=i):
            return beta.pdf(x, a[i], b[i]) * math.prod(betainc(a[j], b[j], x) for j in range(len(a)) if j != i)

        pieces = pairwise(points)
        out.append(sum(quad(integrand, low, high, epsabs=1e-12, epsrel=1e-11)[0] for low, high in pieces))
    return out


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
        ([1.2, 3.0, 2.7], [1.1, 4.5, 2.0]),
        ([1.0, 60.3, 500.0], [1.0, 40.7, 400.0]),
        ([20.0, 22.0, 25.0, 3.0, 1.0], [30.0, 31.0, 33.0, 3.0, 1.0]),
    ],
)
def test_probabilities_of_several_arms_equal_adaptive_quadrature(a, b):
    assert probabilities(a, b) == pytest.approx(by_quadrature(a, b), abs=1e-10)


def test_probabilities_are_the_frequencies_of_numpys_draws():
    a, b, size = np.array([0.4, 5.0, 3.0, 12.5]), np.array([0.3, 4.0, 2.0, 9.0]), 400_000
    draws = np.random.default_rng(2).beta(a, b, (size, 4))
    for available in ([True] * 4, [True, False, True, True], [False, True, False, True]):
        counts = np.bincount(np.argmax(np.where(available, draws, -1.0), axis=1), minlength=4)
        p = probabilities(a, b, available)
        assert p[~np.array(available)].tolist() == [0.0] * (4 - sum(available))
        assert p.sum() == pytest.approx(1.0, abs=1e-14)
        assert np.all(np.abs(counts - size * p) <= 4.0 * np.sqrt(size * p * (1.0 - p)))


def test_probabilities_after_many_plays_are_those_of_normal_logits():
    for plays in (1e7, 1e9, 1e14):
        p = probabilities([0.5 * plays, 0.5 * plays * (1.0 + 1e-4), 1.0], [0.5 * plays, 0.5 * plays, 1.0])
        win = norm.cdf(1e-4 / (2.0 * math.sqrt(2.0 / plays)))  # the sd of a logit is 2/√plays
        assert p == pytest.approx([0.5 * (1.0 - win), 0.5 * win, 0.5], abs=2e-4)


def test_posteriors_narrower_than_rounding_leave_finite_probabilities():
    for plays in (1e30, 1e60, 1e100):
        p = probabilities([0.3 * plays, 0.6 * plays], [0.7 * plays, 0.4 * plays])
        assert p.tolist() == [0.0, 1.0]


# Each policy, and the weight that it gives to a play `age` steps before the latest.
POLICIES = {
    "plain": (larl.BetaThompson(PRIOR), lambda age: 1.0),
    "discounted": (larl.DiscountedBetaThompson(0.8, PRIOR), lambda age: 0.8**age),
    "window": (larl.SlidingWindowBetaThompson(6, PRIOR), lambda age: float(age < 6)),
}


def by_brute_force(history, arm, weight):
    """Return mean and sd of the posterior of one arm on a grid of success probabilities."""
    p = (np.arange(200_000) + 0.5) / 200_000
    log = (PRIOR[0] - 1.0) * np.log(p) + (PRIOR[1] - 1.0) * np.log1p(-p)
    for i, (played, reward) in enumerate(history):
        if played == arm:
            log += weight(len(history) - 1 - i) * (reward * np.log(p) + (1.0 - reward) * np.log1p(-p))
    mass = np.exp(log - log.max())
    mean = np.average(p, weights=mass)
    return mean, math.sqrt(np.average((p - mean) ** 2, weights=mass))


@pytest.mark.parametrize("name", POLICIES)
def test_posteriors_equal_those_from_the_history(name):
    spec, weight = POLICIES[name]
    state, history, rng = spec.init(3), [], np.random.default_rng(0)
    for _ in range(4):
        for _ in range(5):
            reward = float(rng.random() < 0.4) if rng.random() < 0.7 else rng.random()
            history.append((int(rng.choice(3, p=[0.6, 0.3, 0.1])), reward))
            learn(state, *history[-1])
        _, seen, _ = simulate_choices(state, [True] * 3, 60, 1 / 3)
        assert seen == pytest.approx(np.array([by_brute_force(history, arm, weight) for arm in range(3)]), rel=1e-3)


@pytest.mark.parametrize(
    "spec", [larl.DiscountedBetaThompson(1.0, PRIOR), larl.SlidingWindowBetaThompson(300, PRIOR)], ids=str
)
def test_without_forgetting_it_is_beta_thompson(spec):
    states = [spec.init(3), larl.BetaThompson(PRIOR).init(3)]
    rng, played = np.random.default_rng(4), set()
    for t in range(300):
        seed = int(rng.integers(2**63))
        arm, same = (decide(state, seed) for state in states)
        assert arm == same
        played.add(arm)
        reward = math.nan if t % 17 == 5 else rng.random() if t % 3 else float(rng.random() < 0.3 * arm)
        for state in states:
            learn(state, arm, reward)
    assert played == {0, 1, 2}
    counts = [getattr(state, "window", state) for state in states]
    assert counts[0].plays.tolist() == counts[1].plays.tolist()
    assert counts[0].total.tolist() == counts[1].total.tolist()


@pytest.mark.parametrize("name", POLICIES)
def test_rewards_are_mapped_from_their_range_and_clipped(name):
    spec = POLICIES[name][0]
    values = spec.to_dict()
    states = [spec.init(2), larl.policies.from_dict(values | {"reward_range": (10.0, 14.0)}).init(2)]
    for t, reward in enumerate((0.0, 1.0, 0.25, 0.5, -3.0, 1e30, -1e100, 0.75)):
        learn(states[0], t % 2, min(max(reward, 0.0), 1.0))
        learn(states[1], t % 2, 10.0 + 4.0 * reward)
    arrays = [[leaf for leaf in leaves(state) if isinstance(leaf, np.ndarray)] for state in states]
    assert all(np.array_equal(one, other) for one, other in zip(*arrays, strict=True))
    (p, seen, _), (same, in_units, _) = (simulate_choices_of_two(state) for state in states)
    assert p.tolist() == same.tolist()
    assert in_units[:2, 0] == pytest.approx(10.0 + 4.0 * seen[:2, 0])
    assert in_units[:2, 1] == pytest.approx(4.0 * seen[:2, 1])


def simulate_choices_of_two(state):
    """Return the results of `simulate_choices` for a State with three arms that has the counts of two."""
    counts = getattr(state, "window", state)
    wider = counts._replace(plays=np.append(counts.plays, 0.0), total=np.append(counts.total, 0.0))
    return simulate_choices(
        state._replace(window=wider) if hasattr(state, "window") else wider, [True, True, False], 40, 0.5
    )


def test_forgetting_follows_probabilities_that_swap():
    specs, steps, trials = (larl.DiscountedBetaThompson(0.95), larl.BetaThompson()), 300, 30
    regret = np.zeros((trials, 2))
    for trial in range(trials):
        for i, spec in enumerate(specs):
            state, rng = spec.init(2), np.random.default_rng(trial)
            for t in range(steps):
                p = (0.2, 0.7) if t < steps // 2 else (0.7, 0.2)
                arm = decide(state, int(rng.integers(2**63)))
                learn(state, arm, float(rng.random() < p[arm]))
                regret[trial, i] += max(p) - p[arm]
    gain = regret[:, 1] - regret[:, 0]
    assert gain.mean() > 4.0 * gain.std() / math.sqrt(trials)


@pytest.mark.parametrize("prior", [(1.0,), (0.0, 1.0), (1.0, 1e-4), (1.0, 1e7), (1.0, 1.0, 1.0), "11", (1.0, math.nan)])
def test_unusable_priors_are_refused(prior):
    with pytest.raises(larl.InvalidValue, match="BetaThompson: prior"):
        larl.BetaThompson(prior)
