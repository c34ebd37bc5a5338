"""Regret of the peers' policies, tuned, beside larl's in the paper's worlds, on the same luck.

Peers with contexts are handed LARL's, which none of them makes: each then is LARL with another width or prior. Settings
(and how many lags) are chosen on seeds of their own, world by world.
"""

import argparse
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numba
import numpy as np

import larl
from adapters import LAGS, PEERS, Peer, missing
from larl import worlds
from larl.policies._lags import dense_context, lags_init
from larl.policies._lags import push as _push
from larl.simulation.tasks import default_threads
from larl.worlds import Simulator
from measure import save

HORIZON, SEED, TUNING = 200, 0, 99
ORDERS = (1, 5, 10)
DISCOUNTS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
Setting = tuple[dict[str, float], int]


@numba.njit
def push(lags: Any, s: int, arms: int, arm: int, reward: float) -> None:
    _push(lags, s, arms, arm, reward)


def regret_of(peer: Peer, k: int, setting: Setting, seed: int, trial: int) -> float:
    """Regret of one trial from step k on; the first s steps of a policy with a context are random, as LARL's."""
    settings, s = setting
    d = 4 * s + 1 if peer.contextual else 1
    walk, lags, rng = Simulator(worlds.paper(k), seed, trial), lags_init(s, 2), np.random.default_rng(trial)
    (choose, learn), total = peer.make(2, d, **settings), 0.0
    for t in range(HORIZON):
        context = dense_context(lags, s, 2) if peer.contextual else None
        early = peer.contextual and t < s
        arm = int(rng.integers(2)) if early else choose(context)
        means, reward = walk.means, walk.reward(arm)
        total += means.max() - means[arm] if t >= k else 0.0
        if not early:
            learn(context, arm, reward)
        push(lags, s, 2, arm, reward)
        walk.advance(arm)
    return total


def best_of(number: int, k: int, tuning: int, most: int, seconds: float) -> dict[str, Any]:
    """The setting with the least regret on tuning seeds, then its regret: as many trials as there is time for."""
    warnings.filterwarnings("ignore")
    peer = PEERS[number]
    why = missing(peer.package)
    if why:
        return {"missing": why}
    grid = [(settings, s) for settings in peer.grid for s in (LAGS if peer.contextual else (0,))]
    try:
        started = time.perf_counter()
        regret_of(peer, k, grid[0], TUNING, 0)
        tries = max(4, min(tuning, int(seconds / 2 / len(grid) / (time.perf_counter() - started))))
        tuned = [np.mean([regret_of(peer, k, each, TUNING, i) for i in range(tries)]) for each in grid]
        best, totals, started = grid[int(np.argmin(tuned))], [], time.perf_counter()
        while len(totals) < most and (len(totals) < 20 or time.perf_counter() - started < seconds / 2):
            totals.append(regret_of(peer, k, best, SEED, len(totals)))
    except Exception as error:
        return {"missing": f"{type(error).__name__}: {str(error)[:80]}"}
    return _row(np.array(totals)) | {
        "setting": best[0] | ({"s": best[1]} if peer.contextual else {}),
        "tuned_on": tries,
    }


def _row(totals: np.ndarray) -> dict[str, Any]:
    return {"mean": totals.mean(), "se": totals.std(ddof=1) / len(totals) ** 0.5, "trials": len(totals)}


def ours(k: int, trials: int) -> dict[str, Any]:
    """larl's own: told s = k, tuned on the peers' tuning seed, told nothing, told everything."""
    world = worlds.paper(k)
    grid = {str(discount): larl.DiscountedUCB(discount) for discount in DISCOUNTS}
    tuned = larl.compare(grid, world, horizon=HORIZON, trials=200, seed=TUNING, progress=False)
    best = float(tuned.total("k").mean("trial").to_series().idxmin())
    policies = {
        "LARL, told s = k": larl.LARL(k),
        "DiscountedUCB, tuned": larl.DiscountedUCB(best),
        "Auto, told nothing": larl.Auto(),
        "KalmanOracle, told everything": larl.KalmanOracle(),
    }
    result = larl.compare(policies, world, horizon=HORIZON, trials=trials, seed=SEED, progress=False)
    return {name: _row(result.total("k").sel(policy=name).values) for name in policies}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--trials", type=int, default=200, help="at most so many trials of a peer, and so many of larl's"
    )
    parser.add_argument("--seconds", type=float, default=12.0, help="for each peer in each world")
    options = parser.parse_args()
    found: dict[str, Any] = {str(k): {} for k in ORDERS}
    with ProcessPoolExecutor(default_threads()) as pool:
        waiting = [
            (k, peer, pool.submit(best_of, number, k, 20, options.trials, options.seconds))
            for number, peer in enumerate(PEERS)
            for k in ORDERS
        ]
        for k, peer, future in waiting:
            found[str(k)][peer.title] = row = future.result()
            words = (
                row.get("missing") or f"{row['mean']:6.1f} ± {row['se']:.1f} ({row['trials']} trials) {row['setting']}"
            )
            print(f"k = {k:2d}  {peer.title:32s} {words}", flush=True)
    for k in ORDERS:
        for name, row in ours(k, options.trials).items():
            found[str(k)][name] = row
            print(f"k = {k:2d}  {name:32s} {row['mean']:6.1f} ± {row['se']:.1f} ({row['trials']} trials)", flush=True)
    save("regret", {"worlds": found, "horizon": HORIZON, "peers": [peer.title for peer in PEERS]})


if __name__ == "__main__":
    main()
