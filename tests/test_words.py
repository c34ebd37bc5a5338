"""The random words: splitmix64 exactly, and draws with the right laws."""

import numba
import numpy as np
import pytest
from scipy import stats

from larl import _words


@numba.njit
def sequence(key, count):
    return [_words.word(key, i) for i in range(count)]


@numba.njit
def normals(key, count):
    draws = np.empty((count, 2))
    for i in range(count):
        draws[i] = _words.normal_pair(key, i)
    return draws


@numba.njit
def picks(key, count, arms):
    return np.array([_words.pick(_words.word(key, i), arms) for i in range(count)])


@numba.njit
def keys(seeds, trials):
    found = []
    for seed in range(seeds):
        for trial in range(trials):
            for name in (_words.START, _words.WORLD, _words.POLICY):
                found.append(_words.stream(seed, trial, name))
    return found


def test_words_are_splitmix64():
    # The first outputs of the reference generator, seeded with 0 (Vigna's splitmix64.c).
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert [int(word) for word in sequence(np.uint64(0), 3)] == published


def test_streams_of_all_trials_differ():
    found = keys(50, 200)
    assert len(set(found)) == len(found) == 50 * 200 * 3


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
