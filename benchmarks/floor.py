"""LARL's step beside the bare d×d rank-one update, which any exact ridge regression pays, and what the step is made of.

Both go through as many matrices, in the order that LARL chose in its last pass, so that caches are met alike. The parts
are ablations: the step without choosing, without changing the matrix, without anything but moving the lags.
"""

from typing import Any

import numba
import numpy as np

import larl
from larl._core.compile import OPTIONS, copy_fields
from larl._core.random import empty_bits, random_bits, seed_bits
from larl.policies._contract import act, update
from larl.policies._lags import pair_count, push
from larl.policies._linalg.packed_ridge import solve
from measure import play, quickest, save, state_bytes, world_of

SIZES = [(arms, s) for arms in (2, 5, 10, 50) for s in (1, 5, 15, 30)]
LIMIT = 1e9  # bytes of matrices
TARGET, FROM = 2.0, 21


@numba.njit(**OPTIONS)
def bare(matrices: Any, vector: Any, picks: Any) -> None:
    for t in range(picks.size):
        matrix = matrices[picks[t]]
        for i in range(vector.size):
            weight = vector[i]
            for j in range(vector.size):
                matrix[i, j] -= weight * vector[j]


@numba.njit(**OPTIONS)
def steps(state: Any, picks: Any, rewards: Any) -> None:
    bits = empty_bits()
    for t in range(rewards.size):
        seed_bits(bits, random_bits(np.uint64(1), t))
        picks[t] = act(state, bits)
        update(state, picks[t], rewards[t])


@numba.njit(**OPTIONS)
def updates(state: Any, picks: Any, rewards: Any) -> None:
    for t in range(rewards.size):
        update(state, picks[t], rewards[t])


@numba.njit(**OPTIONS)
def columns(state: Any, picks: Any, rewards: Any) -> float:
    total, s = 0.0, state.lags.indices.size - 1
    for t in range(rewards.size):
        leverage, _ = solve(state.ridge, picks[t], state.lags, s + 1, pair_count(s, state.arms), rewards[t])
        total += leverage
        push(state.lags, s, state.arms, picks[t], rewards[t])
    return total


@numba.njit(**OPTIONS)
def moves(state: Any, picks: Any, rewards: Any) -> None:
    for t in range(rewards.size):
        push(state.lags, state.lags.indices.size - 1, state.arms, picks[t], rewards[t])


@numba.njit(**OPTIONS)
def copies(state: Any, times: int) -> float:
    total = 0.0
    for _ in range(times):
        total += copy_fields(state).ridge.inverse[0, 0]
    return total


def measured(arms: int, s: int) -> dict[str, Any]:
    """µs of LARL's step, of the floor, and of the step's parts."""
    d, rng = 2 * s * arms + 1, np.random.default_rng(0)
    size = {"arms": arms, "s": s, "d": d}
    if arms * d * d * 8 > LIMIT:
        return size | {"skipped": f"{arms} matrices of {d}×{d} would take {arms * d * d * 8 / 1e9:.1f} GB"}
    count = max(2 * s + 20, int(3e6 / d**2))
    picks, rewards = np.zeros(count, dtype=np.int64), rng.normal(size=count)
    matrices, vector = np.ones((arms, d, d)), np.full(d, 1e-9)
    state, other = larl.LARL(s).init(arms), larl.LARL(s).init(arms)
    found = quickest(
        {
            "step": lambda: steps(state, picks, rewards),
            "bare": lambda: bare(matrices, vector, picks),
            "update": lambda: updates(other, picks, rewards),
            "column": lambda: columns(other, picks, rewards),
            "move": lambda: moves(other, picks, rewards),
        },
        repeats=15 if d < 200 else 7,
    )
    found = {name: value / count * 1e6 for name, value in found.items()}
    return size | found | {"bytes": state_bytes(state)}


def circumstances() -> dict[str, float]:
    """µs a step of the world alone (round robin), of world and LARL(5), and of copying its State, a step of 200."""
    world, lengths, state = world_of(2), (200, 500), larl.LARL(5).init(2)
    works = {name: play(spec, world, *lengths, 1) for name, spec in SPECS.items()}
    found = quickest(works | {"copy": lambda: copies(state, lengths[1])})
    return {name: value / (lengths[0] * lengths[1]) * 1e6 for name, value in found.items()}


SPECS = {"world": larl.RoundRobin(), "both": larl.LARL(5)}


def main() -> None:
    rows = []
    print("arms   s    d     step     bare   ratio   widths  column  matrix  (µs)")
    for arms, s in SIZES:
        row = measured(arms, s)
        rows.append(row)
        print(f"{arms:4d} {s:3d} {row['d']:4d} ", end="")
        if "skipped" in row:
            print(row["skipped"])
            continue
        parts = (row["step"] - row["update"], row["column"], row["update"] - row["column"])
        print(
            f"{row['step']:8.3f} {row['bare']:8.3f} {row['step'] / row['bare']:6.2f}  ", *(f"{x:7.3f}" for x in parts)
        )
    save("floor", {"rows": rows, "target": TARGET, "from": FROM, "around": circumstances()})


if __name__ == "__main__":
    main()
