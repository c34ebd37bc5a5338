"""LARL's step compared with the bare d×d rank-one update that any exact ridge regression needs, and its parts.

Both use the same number of matrices in the order that LARL chose in its last pass, so that caches behave alike. The
parts are ablations: the step without the choice, without the matrix update, and with the shift of the lags only.
"""

from typing import Any

import numba
import numpy as np

import larl
from larl._core.compile import OPTIONS
from larl._core.random import empty_bits, random_bits, seed_bits
from larl._core.states import Memory, copy_words
from larl.policies._contract import act, update
from larl.policies._lags import pair_count, push
from larl.policies._linalg.packed_ridge import solve
from measure import make_run, save, shortest_times, state_bytes, world_with_arms

SIZES = [(arms, s) for arms in (2, 5, 10, 50) for s in (1, 5, 15, 30)]
MAX_BYTES = 1e9  # of all matrices
TARGET, TARGET_FROM = 2.0, 21  # maximum ratio of LARL's step to the bare kernel, and the smallest d it applies to


@numba.njit(**OPTIONS)
def rank_one_updates(matrices: Any, vector: Any, picks: Any) -> None:
    for t in range(picks.size):
        matrix = matrices[picks[t]]
        for i in range(vector.size):
            weight = vector[i]
            for j in range(vector.size):
                matrix[i, j] -= weight * vector[j]


@numba.njit(**OPTIONS)
def larl_steps(state: Any, picks: Any, rewards: Any) -> None:
    bits = empty_bits()
    for t in range(rewards.size):
        seed_bits(bits, random_bits(np.uint64(1), t))
        picks[t] = act(state, bits)
        update(state, picks[t], rewards[t])


@numba.njit(**OPTIONS)
def larl_updates(state: Any, picks: Any, rewards: Any) -> None:
    for t in range(rewards.size):
        update(state, picks[t], rewards[t])


@numba.njit(**OPTIONS)
def solves(state: Any, picks: Any, rewards: Any) -> float:
    total, s = 0.0, state.lags.indices.size - 1
    for t in range(rewards.size):
        leverage, _ = solve(state.ridge, picks[t], state.lags, s + 1, pair_count(s, state.arms), rewards[t])
        total += leverage
        push(state.lags, s, state.arms, picks[t], rewards[t])
    return total


@numba.njit(**OPTIONS)
def lag_shifts(state: Any, picks: Any, rewards: Any) -> None:
    for t in range(rewards.size):
        push(state.lags, state.lags.indices.size - 1, state.arms, picks[t], rewards[t])


@numba.njit(**OPTIONS)
def state_copies(target: int, source: int, words: int, times: int) -> None:
    for _ in range(times):
        copy_words(target, source, words)


def measure_size(arms: int, s: int) -> dict[str, Any]:
    """Return the µs of LARL's step, of the bare kernel, and of the step's parts."""
    d, rng = 2 * s * arms + 1, np.random.default_rng(0)
    size = {"arms": arms, "s": s, "d": d}
    if arms * d * d * 8 > MAX_BYTES:
        return size | {"skipped": f"{arms} matrices of {d}×{d} would take {arms * d * d * 8 / 1e9:.1f} GB"}
    count = max(2 * s + 20, int(3e6 / d**2))
    picks, rewards = np.zeros(count, dtype=np.int64), rng.normal(size=count)
    matrices, vector = np.ones((arms, d, d)), np.full(d, 1e-9)
    state, other = larl.LARL(s).init(arms), larl.LARL(s).init(arms)
    times = shortest_times(
        {
            "step": lambda: larl_steps(state, picks, rewards),
            "bare_kernel": lambda: rank_one_updates(matrices, vector, picks),
            "update": lambda: larl_updates(other, picks, rewards),
            "solve": lambda: solves(other, picks, rewards),
            "shift": lambda: lag_shifts(other, picks, rewards),
        },
        repeats=15 if d < 200 else 7,
    )
    times = {name: value / count * 1e6 for name, value in times.items()}
    return size | times | {"bytes": state_bytes(state)}


def measure_engine() -> dict[str, float]:
    """Return the µs per step of the world (round robin), of world and LARL(5), and of copying the State."""
    world, lengths, state = world_with_arms(2), (200, 500), larl.LARL(5).init(2)
    calls = {name: make_run(spec, world, *lengths, 1) for name, spec in SPECS.items()}
    blocks = [Memory(state).own for _ in range(2)]
    places = [block.ctypes.data for block in blocks]
    times = shortest_times(calls | {"copy": lambda: state_copies(*places, blocks[0].size, lengths[1])})
    return {name: value / (lengths[0] * lengths[1]) * 1e6 for name, value in times.items()}


SPECS = {"world": larl.RoundRobin(), "both": larl.LARL(5)}


def main() -> None:
    rows = []
    print("arms   s    d     step     bare   ratio   choice   solve  update  (µs)")
    for arms, s in SIZES:
        row = measure_size(arms, s)
        rows.append(row)
        print(f"{arms:4d} {s:3d} {row['d']:4d} ", end="")
        if "skipped" in row:
            print(row["skipped"])
            continue
        parts = (row["step"] - row["update"], row["solve"], row["update"] - row["solve"])
        print(
            f"{row['step']:8.3f} {row['bare_kernel']:8.3f} {row['step'] / row['bare_kernel']:6.2f}  ",
            *(f"{x:7.3f}" for x in parts),
        )
    save("bare_kernel", {"rows": rows, "target": TARGET, "from": TARGET_FROM, "engine": measure_engine()})


if __name__ == "__main__":
    main()
