"""Running moments of curves."""

import numpy as np

from larl.simulation.moments import add_curves, empty_moments


def test_largest_values_are_counted_in_the_last_bin():
    moments = empty_moments(1)
    add_curves(moments, np.array([[1e13], [1.7e308], [np.inf]]))
    assert moments.bins[0, -1] == moments.bins.sum() == 3
