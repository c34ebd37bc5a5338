"""Random bits are splitmix64 exactly, and draws have the right distributions."""

import numpy as np
import pytest
from scipy import stats

from larl._core import random
from larl._core.compile import kernel


@kernel
def sequence(key, count):
    return [random.random_bits(key, i) for i in range(count)]


@kernel
def normals(key, count):
    draws = np.empty((count, 2))
    for i in range(count):
        draws[i] = random.normal_pair(key, i)
    return draws


@kernel
def picks(key, count, arms):
    return np.array([random.bits_to_index(random.random_bits(key, i), arms) for i in range(count)])


@kernel
def keys(seeds, trials):
    all_keys = []
    for seed in range(seeds):
        for trial in range(trials):
            for name in (random.START, random.WORLD, random.POLICY):
                all_keys.append(random.stream(seed, trial, name))
    return all_keys


def test_random_bits_are_splitmix64():
    # The first outputs of the reference generator, seeded with 0 (Vigna's splitmix64.c).
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert [int(bits) for bits in sequence(np.uint64(0), 3)] == published


def test_streams_of_all_trials_differ():
    all_keys = keys(50, 200)
    assert len(set(all_keys)) == len(all_keys) == 50 * 200 * 3


def test_neighbouring_streams_are_uncorrelated():
    # Pearson's r of n independent pairs has standard error 1/√n.
    n, all_keys = 20_000, keys(2, 2)
    streams = np.array([normals(np.uint64(key), n)[:, 0] for key in all_keys])
    correlations = np.corrcoef(streams)[np.triu_indices(len(all_keys), 1)]
    assert np.abs(correlations).max() < 4.5 / np.sqrt(n)


@pytest.mark.parametrize("column", [0, 1])
def test_normals_are_normal(column):
    draws = normals(np.uint64(1), 100_000)
    assert stats.kstest(draws[:, column], "norm").pvalue > 1e-3
    assert abs(np.corrcoef(draws.T)[0, 1]) < 4 / np.sqrt(len(draws))


def test_picks_are_even():
    counts = np.bincount(picks(np.uint64(2), 70_000, 7), minlength=7)
    assert stats.chisquare(counts).pvalue > 1e-3


@kernel
def steps_of_draws(count):
    """The draws of each step in a row: two uniforms, a pick of 4, two normals, a pick of 4."""
    draws, bits = np.empty((count, 6)), random.empty_bits()
    for i in range(count):
        random.seed_bits(bits, random.random_bits(np.uint64(5), i))
        draws[i, 0], draws[i, 1] = random.uniform(bits), random.uniform(bits)
        draws[i, 2] = random.pick(bits, 4)
        draws[i, 3], draws[i, 4] = random.normal(bits), random.normal(bits)
        draws[i, 5] = random.pick(bits, 4)
    return draws


def test_draws_of_one_step_are_independent():
    # Rank correlations of n independent pairs are 0 with standard error 1/√n, also of distances from the middle.
    n = 40_000
    ranks = stats.rankdata(steps_of_draws(n), axis=0)
    for values in (ranks, np.abs(ranks - ranks.mean(axis=0))):
        correlations = np.corrcoef(values.T)[np.triu_indices(6, 1)]
        assert np.abs(correlations).max() < 4.5 / np.sqrt(n)


def test_pick_is_independent_of_earlier_uniform():
    draws = steps_of_draws(40_000)
    for first in (0, 1):
        counts = np.bincount(draws[draws[:, first] < 0.25, 2].astype(int), minlength=4)
        assert stats.chisquare(counts).pvalue > 1e-3


def test_first_draw_uses_first_bits_of_step():
    # So policies that draw once per step keep the random numbers of earlier versions.
    bits = np.array([2**63 + 2**40, 0, 0], dtype=np.uint64)
    assert first_draws(bits) == (0.5 + 2**-24, 2)


@kernel
def first_draws(bits):
    copy = bits.copy()
    return random.uniform(bits), random.pick(copy, 4)
