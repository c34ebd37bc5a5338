"""A decision and its learning in other packages, on the same contexts and rewards, beside larl's in the same run."""

import time
import warnings
from typing import Any

import numba
import numpy as np

import larl
from adapters import PEERS, Peer, missing, release
from larl.policies._lags import dense_context, lags_init
from larl.policies._lags import push as _push
from measure import play, quickest, save, world_of

SIZES = [(2, 5), (2, 15), (10, 5)]  # arms, s
STEPS, BEFORE = 60, 20
OURS = {"pymab SW-UCB": larl.SlidingWindowUCB(20), "pymab D-UCB": larl.DiscountedUCB(0.9)}


@numba.njit
def push(lags: Any, s: int, arms: int, arm: int, reward: float) -> None:
    _push(lags, s, arms, arm, reward)


def decisions(arms: int, s: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Contexts, arms and rewards of a trial of LARL(s)."""
    played = larl.compare({"it": larl.LARL(s)}, world_of(arms), horizon=s + BEFORE + STEPS, trials=1)
    picks, rewards = played.arm.values[0, 0].astype(int), played.reward.values[0, 0]
    lags, contexts = lags_init(s, arms), []
    for pick, reward in zip(picks, rewards, strict=True):
        contexts.append(dense_context(lags, s, arms))
        push(lags, s, arms, pick, reward)
    return np.array(contexts)[s:], picks[s:], rewards[s:]


def peer_step(peer: Peer, arms: int, s: int) -> float:
    """µs of choosing and learning, after some steps that are not counted."""
    contexts, picks, rewards = decisions(arms, s)
    choose, teach = peer.make(arms, contexts.shape[1])
    started = 0.0
    for t in range(BEFORE + STEPS):
        if t == BEFORE:
            started = time.process_time()
        choose(contexts[t])
        teach(contexts[t], int(picks[t]), float(rewards[t]))
    return (time.process_time() - started) / STEPS * 1e6


def our_live(spec: larl.policies.Policy, arms: int, s: int) -> float:
    """µs of an agent's decide + observe on the same arms and rewards."""
    _, picks, rewards = decisions(arms, s)
    agent, started = larl.Agent(spec, arms), 0.0
    for t in range(BEFORE + STEPS):
        if t == BEFORE:
            started = time.process_time()
        agent.observe(agent.decide(), float(rewards[t]), arm=agent.arms[picks[t]])
    return (time.process_time() - started) / STEPS * 1e6


def row_of(peer: Peer, arms: int, s: int, repeats: int = 3) -> dict[str, Any]:
    """One peer at one size, larl live and larl in its engine; the three take turns."""
    row: dict[str, Any] = {
        "title": peer.title,
        "arms": arms,
        "s": s,
        "d": 2 * s * arms + 1 if peer.contextual else None,
    }
    why = missing(peer.package)
    if why:
        return row | {"missing": why}
    spec = OURS.get(peer.title, larl.LARL(s) if peer.contextual else larl.DiscountedUCB(0.9))
    engine, theirs, ours, batched = play(spec, world_of(arms), 200, 100, 1), [], [], []
    try:
        for _ in range(repeats):
            theirs.append(peer_step(peer, arms, s))
            ours.append(our_live(spec, arms, s))
            batched.append(quickest({"it": engine}, 1)["it"] / 20_000 * 1e6)
    except Exception as error:
        return row | {"missing": f"{type(error).__name__}: {str(error)[:80]}"}
    return row | {"spec": str(spec), "peer": min(theirs), "live": min(ours), "engine": min(batched)}


def main() -> None:
    warnings.filterwarnings("ignore")
    our_live(larl.LARL(5), 2, 5)
    rows = []
    for arms, s in SIZES:
        for peer in PEERS:
            if not peer.contextual and (arms, s) != SIZES[0]:
                continue
            rows.append(row_of(peer, arms, s))
            print({key: round(value, 2) if isinstance(value, float) else value for key, value in rows[-1].items()})
    save("peers", {"rows": rows, "releases": {peer.package: release(peer.package) for peer in PEERS}})


if __name__ == "__main__":
    main()
