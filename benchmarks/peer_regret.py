"""Regret of other packages' tuned policies and of larl's in the paper's worlds, with the same random numbers.

Contextual peers get LARL's context, which none of them builds: each then is LARL with another width or prior. Settings
and the number of lags are tuned in each world on other seeds.
"""

import argparse
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numba
import numpy as np

import larl
from larl import worlds
from larl.policies._lags import dense, lags_init, push
from larl.simulation.tasks import default_threads
from larl.worlds import Simulator
from measure import save
from peer_packages import LAGS, PEERS, Peer, import_error

HORIZON, SEED, TUNING_SEED = 200, 0, 99
ORDERS = (1, 5, 10)
DISCOUNTS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
Setting = tuple[dict[str, float], int]


@numba.njit
def push_lag(lags: Any, s: int, arms: int, arm: int, reward: float) -> None:
    push(lags, s, arms, arm, reward)


def simulate_regret(peer: Peer, k: int, setting: Setting, seed: int, trial: int) -> float:
    """Return the regret of one trial from step k; the first s steps of a contextual policy are random, as in LARL."""
    settings, s = setting
    d = 4 * s + 1 if peer.contextual else 1
    simulator, lags, rng = Simulator(worlds.paper(k), seed, trial), lags_init(s, 2), np.random.default_rng(trial)
    (choose, learn), total = peer.make(2, d, **settings), 0.0
    for t in range(HORIZON):
        context = dense(lags, s, 2) if peer.contextual else None
        early = peer.contextual and t < s
        arm = int(rng.integers(2)) if early else choose(context)
        means, reward = simulator.means, simulator.reward(arm)
        total += means.max() - means[arm] if t >= k else 0.0
        if not early:
            learn(context, arm, reward)
        push_lag(lags, s, 2, arm, reward)
        simulator.advance(arm)
    return total


def tune_and_measure(number: int, k: int, tuning_trials: int, max_trials: int, seconds: float) -> dict[str, Any]:
    """Return the regret of a peer's best setting, with as many trials as the time allows."""
    warnings.filterwarnings("ignore")
    peer = PEERS[number]
    error = import_error(peer.package)
    if error:
        return {"not_measured": error}
    grid = [(settings, s) for settings in peer.grid for s in (LAGS if peer.contextual else (0,))]
    try:
        started = time.perf_counter()
        simulate_regret(peer, k, grid[0], TUNING_SEED, 0)
        trials = max(4, min(tuning_trials, int(seconds / 2 / len(grid) / (time.perf_counter() - started))))
        tuned = [np.mean([simulate_regret(peer, k, each, TUNING_SEED, i) for i in range(trials)]) for each in grid]
        best, totals, started = grid[int(np.argmin(tuned))], [], time.perf_counter()
        while len(totals) < max_trials and (len(totals) < 20 or time.perf_counter() - started < seconds / 2):
            totals.append(simulate_regret(peer, k, best, SEED, len(totals)))
    except Exception as failure:
        return {"not_measured": f"{type(failure).__name__}: {str(failure)[:80]}"}
    return summarise(np.array(totals)) | {
        "setting": best[0] | ({"s": best[1]} if peer.contextual else {}),
        "tuned_on": trials,
    }


def summarise(totals: np.ndarray) -> dict[str, Any]:
    return {"mean": totals.mean(), "se": totals.std(ddof=1) / len(totals) ** 0.5, "trials": len(totals)}


def larl_regrets(k: int, trials: int) -> dict[str, Any]:
    """Return the regrets of larl's policies; DiscountedUCB is tuned on the peers' tuning seed."""
    world = worlds.paper(k)
    grid = {str(discount): larl.DiscountedUCB(discount) for discount in DISCOUNTS}
    tuned = larl.compare(grid, world, horizon=HORIZON, trials=200, seed=TUNING_SEED, progress=False)
    best = float(tuned.total("k").mean("trial").to_series().idxmin())
    policies = {
        "LARL, s = k": larl.LARL(k),
        "DiscountedUCB, tuned": larl.DiscountedUCB(best),
        "Auto": larl.Auto(),
        "KalmanOracle, true parameters": larl.KalmanOracle(),
    }
    result = larl.compare(policies, world, horizon=HORIZON, trials=trials, seed=SEED, progress=False)
    return {name: summarise(result.total("k").sel(policy=name).values) for name in policies}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--trials", type=int, default=200, help="maximum number of trials of a peer; number of trials of larl"
    )
    parser.add_argument("--seconds", type=float, default=12.0, help="time limit for each peer in each world")
    options = parser.parse_args()
    results: dict[str, Any] = {str(k): {} for k in ORDERS}
    with ProcessPoolExecutor(default_threads()) as pool:
        pending = [
            (k, peer, pool.submit(tune_and_measure, number, k, 20, options.trials, options.seconds))
            for number, peer in enumerate(PEERS)
            for k in ORDERS
        ]
        for k, peer, future in pending:
            results[str(k)][peer.title] = row = future.result()
            text = (
                row.get("not_measured")
                or f"{row['mean']:6.1f} ± {row['se']:.1f} ({row['trials']} trials) {row['setting']}"
            )
            print(f"k = {k:2d}  {peer.title:32s} {text}", flush=True)
    for k in ORDERS:
        for name, row in larl_regrets(k, options.trials).items():
            results[str(k)][name] = row
            print(f"k = {k:2d}  {name:32s} {row['mean']:6.1f} ± {row['se']:.1f} ({row['trials']} trials)", flush=True)
    save("peer_regret", {"worlds": results, "horizon": HORIZON, "peers": [peer.title for peer in PEERS]})


if __name__ == "__main__":
    main()
