"""The random words: splitmix64 exactly, and draws with the right laws."""

import numba
import numpy as np
import pytest
from scipy import stats

from larl._core import random as _words


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
    return np.array([_words.word_to_index(_words.word(key, i), arms) for i in range(count)])


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


@numba.njit
def steps_of_draws(count):
    """What a step draws, in turns: two uniforms, a pick of 4, two normals, a pick of 4; a row for each step."""
    draws, bits = np.empty((count, 6)), _words.no_bits()
    for i in range(count):
        _words.seed_bits(bits, _words.word(np.uint64(5), i))
        draws[i, 0], draws[i, 1] = _words.uniform(bits), _words.uniform(bits)
        draws[i, 2] = _words.pick(bits, 4)
        draws[i, 3], draws[i, 4] = _words.normal(bits), _words.normal(bits)
        draws[i, 5] = _words.pick(bits, 4)
    return draws


def test_draws_of_a_step_are_independent():
    # Ranks of n independent pairs have correlation 0 with standard error 1/√n; so have distances from the middle.
    n = 40_000
    ranks = stats.rankdata(steps_of_draws(n), axis=0)
    for seen in (ranks, np.abs(ranks - ranks.mean(axis=0))):
        correlations = np.corrcoef(seen.T)[np.triu_indices(6, 1)]
        assert np.abs(correlations).max() < 4.5 / np.sqrt(n)


def test_an_arm_picked_after_a_rare_event_is_any_arm():
    draws = steps_of_draws(40_000)
    for first in (0, 1):
        counts = np.bincount(draws[draws[:, first] < 0.25, 2].astype(int), minlength=4)
        assert stats.chisquare(counts).pvalue > 1e-3


def test_a_first_draw_is_the_word_of_its_step():
    # So are policies that draw once a step bound to the engine's words of earlier versions.
    bits = np.array([2**63 + 2**40, 0, 0], dtype=np.uint64)
    assert first_draws(bits) == (0.5 + 2**-24, 2)


@numba.njit
def first_draws(bits):
    again = bits.copy()
    return _words.uniform(bits), _words.pick(again, 4)
