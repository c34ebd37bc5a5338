"""Time of a decision with its update in other packages and in larl, on the same contexts and rewards."""

import time
import warnings
from typing import Any

import numba
import numpy as np

import larl
from larl.policies._lags import dense, lags_init, push
from measure import make_run, save, shortest_times, world_with_arms
from peer_packages import PEERS, Peer, import_error, installed_version

SIZES = [(2, 5), (2, 15), (10, 5)]  # arms, s
STEPS, UNCOUNTED = 60, 20  # counted steps, and steps before them
SAME_KIND = {"pymab SW-UCB": larl.SlidingWindowUCB(20), "pymab D-UCB": larl.DiscountedUCB(0.9)}


@numba.njit
def push_lag(lags: Any, s: int, arms: int, arm: int, reward: float) -> None:
    push(lags, s, arms, arm, reward)


def simulate_decisions(arms: int, s: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return contexts, arms and rewards of a trial of LARL(s)."""
    result = larl.compare({"policy": larl.LARL(s)}, world_with_arms(arms), horizon=s + UNCOUNTED + STEPS, trials=1)
    picks, rewards = result.arm.values[0, 0].astype(int), result.reward.values[0, 0]
    lags, contexts = lags_init(s, arms), []
    for pick, reward in zip(picks, rewards, strict=True):
        contexts.append(dense(lags, s, arms))
        push_lag(lags, s, arms, pick, reward)
    return np.array(contexts)[s:], picks[s:], rewards[s:]


def peer_step_time(peer: Peer, arms: int, s: int) -> float:
    """Return the µs of a peer's choice and update, without the first steps."""
    contexts, picks, rewards = simulate_decisions(arms, s)
    choose, learn = peer.make(arms, contexts.shape[1])
    started = 0.0
    for t in range(UNCOUNTED + STEPS):
        if t == UNCOUNTED:
            started = time.process_time()
        choose(contexts[t])
        learn(contexts[t], int(picks[t]), float(rewards[t]))
    return (time.process_time() - started) / STEPS * 1e6


def agent_step_time(spec: larl.policies.Policy, arms: int, s: int) -> float:
    """Return the µs of an agent's decide + observe on the same arms and rewards."""
    _, picks, rewards = simulate_decisions(arms, s)
    agent, started = larl.Agent(spec, arms), 0.0
    for t in range(UNCOUNTED + STEPS):
        if t == UNCOUNTED:
            started = time.process_time()
        agent.observe(agent.decide(), float(rewards[t]), arm=agent.arms[picks[t]])
    return (time.process_time() - started) / STEPS * 1e6


def measure_peer(peer: Peer, arms: int, s: int, repeats: int = 3) -> dict[str, Any]:
    """Return the times of one peer, of a larl agent and of larl's engine at one size; the three alternate."""
    row: dict[str, Any] = {
        "title": peer.title,
        "arms": arms,
        "s": s,
        "d": 2 * s * arms + 1 if peer.contextual else None,
    }
    error = import_error(peer.package)
    if error:
        return row | {"not_measured": error}
    spec = SAME_KIND.get(peer.title, larl.LARL(s) if peer.contextual else larl.DiscountedUCB(0.9))
    engine, peer_times, agent_times, engine_times = make_run(spec, world_with_arms(arms), 200, 100, 1), [], [], []
    try:
        for _ in range(repeats):
            peer_times.append(peer_step_time(peer, arms, s))
            agent_times.append(agent_step_time(spec, arms, s))
            engine_times.append(shortest_times({"policy": engine}, 1)["policy"] / 20_000 * 1e6)
    except Exception as failure:
        return row | {"not_measured": f"{type(failure).__name__}: {str(failure)[:80]}"}
    return row | {"spec": str(spec), "peer": min(peer_times), "agent": min(agent_times), "engine": min(engine_times)}


def main() -> None:
    warnings.filterwarnings("ignore")
    agent_step_time(larl.LARL(5), 2, 5)
    rows = []
    for arms, s in SIZES:
        for peer in PEERS:
            if not peer.contextual and (arms, s) != SIZES[0]:
                continue
            rows.append(measure_peer(peer, arms, s))
            print({key: round(value, 2) if isinstance(value, float) else value for key, value in rows[-1].items()})
    save("peer_speed", {"rows": rows, "versions": {peer.package: installed_version(peer.package) for peer in PEERS}})


if __name__ == "__main__":
    main()
