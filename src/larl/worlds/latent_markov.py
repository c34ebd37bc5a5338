"""A bandit whose means depend on a hidden Markov chain with finitely many states."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import implement, inline, kernel
from larl._core.random import GOLDEN, START, WORLD, bits_to_uniform, normal_pair, random_bits, stream
from larl._core.validation import (
    InvalidValue,
    Matrix,
    Vector,
    check_fields,
    checked,
    integer,
    matrix,
    number,
    numbers,
    required,
    spec,
)
from larl.worlds.base import World
from larl.worlds.kernels import Floats, advance, begin

TOLERANCE = 1e-9  # of the sum of probabilities


class MarkovState(NamedTuple):
    """A `LatentMarkov` world inside a kernel."""

    means: Floats  # (arms,) at the current state
    sd: Floats  # (arms,)
    state: NDArray[np.int64]  # (1,)
    start: Floats  # (n,) cumulative probabilities of the first state
    transition: Floats  # (n, n) cumulative probabilities of the next state
    table: Floats  # (n, arms) the means in each state


@inline
def draw_state(cumulative: Floats, uniform: float) -> int:
    """Return the first state whose cumulative probability exceeds `uniform`, a number in [0, 1)."""
    state = 0
    while cumulative[state] <= uniform:
        state += 1
    return state


def markov_begin(latent: MarkovState, seed: int, trial: int) -> None:
    """Draw the first state."""
    latent.state[0] = draw_state(latent.start, bits_to_uniform(random_bits(stream(seed, trial, START), 0)))


def markov_advance(latent: MarkovState, key: np.uint64, t: int) -> float:
    """Draw the state of step t, set the means, and return the standard normal noise of step t."""
    if t > 0:
        uniform = bits_to_uniform(random_bits(key ^ GOLDEN, t))
        latent.state[0] = draw_state(latent.transition[latent.state[0]], uniform)
    for arm in range(latent.means.size):
        latent.means[arm] = latent.table[latent.state[0], arm]
    _, noise = normal_pair(key, t)
    return noise


implement(begin, MarkovState, markov_begin)
implement(advance, MarkovState, markov_advance)


@kernel
def trace_states(latent: MarkovState, seed: int, trial: int, path: NDArray[np.int64]) -> None:
    """Write x_0, x_1, … of one trial into `path`."""
    begin(latent, seed, trial)
    key = stream(seed, trial, WORLD)
    for t in range(path.size):
        advance(latent, key, t)
        path[t] = latent.state[0]


def is_distribution(probabilities: Vector) -> bool:
    """Return whether numbers are ≥ 0 and sum to 1."""
    return min(probabilities) >= 0.0 and abs(sum(probabilities) - 1.0) <= TOLERANCE


def cumulative(probabilities: Floats) -> Floats:
    """Return cumulative probabilities along the last axis; from the last positive one on they are 1."""
    sums = np.cumsum(probabilities, axis=-1)
    return np.where(sums >= sums[..., -1:], 1.0, sums / sums[..., -1:])


def closed_classes(transition: Floats) -> list[NDArray[np.int64]]:
    """Return the sets of states that reach each other and that the chain never leaves."""
    size = len(transition)
    reaches = (transition > 0.0) | np.eye(size, dtype=bool)
    for middle in range(size):
        reaches |= np.outer(reaches[:, middle], reaches[middle])
    closed = [state for state in range(size) if np.all(reaches[reaches[state], state])]
    return [np.flatnonzero(reaches[state]) for state in closed if state == np.flatnonzero(reaches[state])[0]]


def stationary_distribution(transition: Floats) -> Floats:
    """Return the stationary distribution of an irreducible chain.

    States are eliminated one after another without subtractions (Grassmann, Taksar & Heyman 1985), which is accurate
    for chains that almost never leave a state.
    """
    rates, size = transition.copy(), len(transition)
    for last in range(size - 1, 0, -1):
        rates[:last, last] /= rates[last, :last].sum()
        rates[:last, :last] += np.outer(rates[:last, last], rates[last, :last])
    weights = np.ones(size)
    for state in range(1, size):
        weights[state] = weights[:state] @ rates[:state, state]
    return weights / weights.sum()


@spec
class LatentMarkov(World):
    """A bandit whose means depend on a hidden state x_t in {0 … n−1}, a Markov chain.

    P(x_t = j | x_{t−1} = i) = ``transition[i][j]``; r_t(a) = ``means[x_t][a]`` + N(0, σ_r²). The state does not
    depend on the arms that are played.

    Parameters
    ----------
    transition : matrix, n × n
        Row i has the probabilities of the next state after state i; each row sums to 1.
    means : matrix, n × arms (2 or more)
        Mean reward of each arm in each state, in units of the reward.
    sigma_r : float, >= 0, default 1.0
        Standard deviation of the reward noise, in units of the reward.
    start : "stationary" or n probabilities, default "stationary"
        Distribution of x_0. ``"stationary"`` needs a chain with a unique stationary distribution.

    Raises
    ------
    InvalidValue
        If a value is not accepted.

    Examples
    --------
    >>> import larl
    >>> world = larl.worlds.LatentMarkov(transition=((0.9, 0.1), (0.3, 0.7)), means=((0.0, 1.0), (1.0, -1.0)))
    >>> world.stationary.round(3).tolist()
    [0.75, 0.25]
    >>> world.path(12, seed=3).tolist()
    [0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    """

    transition: Matrix = required(matrix())
    means: Matrix = required(matrix())
    sigma_r: float = checked(number(0.0), 1.0)
    start: str | Vector = "stationary"
    k = 1

    def __post_init__(self) -> None:
        check_fields(self)
        size = len(self.transition)
        matrix(size, size)("LatentMarkov", "transition", self.transition)
        for i, row in enumerate(self.transition):
            if not is_distribution(row):
                raise InvalidValue("LatentMarkov", f"transition[{i}]", row, "numbers ≥ 0 that sum to 1")
        if len(self.means) != size or len(self.means[0]) < 2:
            accepted = f"{size} rows, one for each row of transition, of 2 or more means, one for each arm"
            raise InvalidValue("LatentMarkov", "means", self.means, accepted)
        if isinstance(self.start, str):
            self._check_stationary_start()
        else:
            start = numbers()("LatentMarkov", "start", self.start)
            if len(start) != size or not is_distribution(start):
                raise InvalidValue("LatentMarkov", "start", start, f"'stationary' or {size} numbers ≥ 0 that sum to 1")
            object.__setattr__(self, "start", start)

    def _check_stationary_start(self) -> None:
        """Raise InvalidValue unless `start` is "stationary" and the chain has one stationary distribution."""
        if self.start != "stationary":
            raise InvalidValue("LatentMarkov", "start", self.start, f"'stationary' or {self.states} probabilities")
        if len(closed_classes(self._rows)) > 1:
            accepted = f"{self.states} probabilities, because the chain has several stationary distributions"
            raise InvalidValue("LatentMarkov", "start", self.start, accepted)

    @property
    def states(self) -> int:
        """Number of states n."""
        return len(self.transition)

    @property
    def arms(self) -> int:  # type: ignore[override]
        """Number of arms."""
        return len(self.means[0])

    @property
    def _rows(self) -> Floats:
        """The transition matrix with rows that sum to 1 to the last digits, (n, n)."""
        rows = np.array(self.transition)
        return rows / rows.sum(axis=1, keepdims=True)

    @cached_property
    def stationary(self) -> Floats:
        """The stationary distribution of the chain, (n,); InvalidValue if there are several."""
        classes = closed_classes(self._rows)
        if len(classes) > 1:
            accepted = "a chain with one stationary distribution: from all states, it reaches one common set of states"
            raise InvalidValue("LatentMarkov", "transition", self.transition, accepted)
        result = np.zeros(self.states)
        result[classes[0]] = stationary_distribution(self._rows[np.ix_(classes[0], classes[0])])
        return result

    @property
    def start_probabilities(self) -> Floats:
        """Distribution of x_0, (n,)."""
        return self.stationary if isinstance(self.start, str) else np.array(self.start) / sum(self.start)

    def latent(self) -> MarkovState:
        """Return the State of the world before a trial: its parameters and arrays, for kernels."""
        return MarkovState(
            means=np.zeros(self.arms),
            sd=np.full(self.arms, self.sigma_r),
            state=np.zeros(1, dtype=np.int64),
            start=cumulative(self.start_probabilities),
            transition=cumulative(self._rows),
            table=np.array(self.means),
        )

    def state_of(self, latent: Any) -> int:
        """Return x_t."""
        return int(latent.state[0])

    def path(self, horizon: int, seed: int = 0, trial: int = 0) -> NDArray[np.int64]:
        """Return x_0 … x_{horizon−1} of one trial, the path that `compare` uses for the same seed and trial."""
        path = np.empty(integer(1)("path", "horizon", horizon), dtype=np.int64)
        seed, trial = (integer(0, 2**63 - 1)("path", *each) for each in (("seed", seed), ("trial", trial)))
        trace_states(self.latent(), seed, trial, path)
        return path
