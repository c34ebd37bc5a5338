"""A dress rehearsal: units of a simulated world use a running service as real ones will, and its records are checked.

Rewards get lost, come late, twice or corrected; answers get lost; hosts send nonsense. In the end what the service
says of decisions and rewards must be what was sent, exactly.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeVar

import numpy as np

from larl._core.interrupt import DeferInterrupt
from larl._core.progress import Progress
from larl._core.validation import InvalidValue
from larl.client import Client, DecisionRecord, RewardRecord
from larl.rehearsal.plan import Plan
from larl.rehearsal.player import Player
from larl.rehearsal.report import Estimate, Report

Item = TypeVar("Item", DecisionRecord, RewardRecord)


def rehearse(plan: Plan, client: Client, *, guarded: bool = False, progress: bool | None = None) -> Report:
    """Play a plan at the service of a client. `guarded`: the service asks for tokens."""
    study = client.create_study(**plan.words).study
    if next(client.decisions(study), None) is not None:
        accepted = "a study of its own: a name that is new to the service"
        raise InvalidValue("rehearsal", "study", study, accepted)
    players = [Player(plan, client, number, guarded) for number in range(plan.units)]
    began = time.monotonic()
    _play(plan, client, players, progress)
    return _report(plan, client, players, time.monotonic() - began)


def _play(plan: Plan, client: Client, players: Sequence[Player], progress: bool | None) -> None:
    """Step by step, all units at each; so many requests at a time as the plan has clients."""
    if plan.terms.registration == "explicit":
        for player in players:
            client.register(plan.terms.study, player.name)
    with ThreadPoolExecutor(plan.clients) as pool, Progress(plan.units * plan.steps, progress) as bar:

        def all_do(do: Callable[[Player], None]) -> None:
            finished: SimpleQueue[Future[None]] = SimpleQueue()
            try:
                with DeferInterrupt():
                    for player in players:
                        pool.submit(do, player).add_done_callback(finished.put)
                for _ in players:
                    done = finished.get()
                    with DeferInterrupt():
                        done.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

        for player in players:  # one by one: units are numbered as they come
            player.step(0)
        bar.worked(plan.units)
        for t in range(1, plan.steps):
            all_do(lambda player, t=t: player.step(t))  # type: ignore[misc]
            bar.worked(plan.units)
        all_do(Player.finish)


def _report(plan: Plan, client: Client, players: Sequence[Player], seconds: float) -> Report:
    """Ask the service what it knows, and compare."""
    terms, study = plan.terms, plan.terms.study
    decisions, rewards = list(client.decisions(study)), list(client.rewards(study))
    made, told = _by_unit(decisions), _by_unit(rewards)
    for player in players:
        player.ledger.compare(made.get(player.name, []), told.get(player.name, []))
    names = {player.name for player in players}
    strangers = [f"{each.unit}: a unit that was not sent" for each in client.units(study) if each.unit not in names]
    return Report(
        study,
        terms.policy,
        plan.units,
        plan.steps,
        plan.seed,
        seconds,
        len(decisions),
        sources=Counter(each.source for each in decisions),
        states=Counter(each.state for each in decisions),
        taken=Counter("filled in" if each.default else each.taken for each in rewards),
        sent=sum((player.sent for player in players), Counter()),
        arms={arm: _share(arm, made) for arm in terms.arms},
        reward=_mean_reward(made),
        regret=Estimate.of([float(np.mean(player.regret)) for player in players if player.regret]),
        fallbacks=sum(each.fallback for each in decisions) / max(len(decisions), 1),
        issues=Counter(f"{each.severity}: {each.code}" for each in client.issues(study)),
        latency={kind: _latency(players, kind) for kind in ("decision", "reward")},
        refused=_refused(players),
        differences=[each for player in players for each in player.ledger.differences] + strangers,
    )


def _by_unit(items: Sequence[Item]) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        found[item.unit].append(item)
    return found


def _share(arm: str, made: dict[str, list[DecisionRecord]]) -> Estimate:
    """How often an arm was decided on, where there was one."""
    chosen = [[each.arm == arm for each in decisions if each.arm is not None] for decisions in made.values()]
    return Estimate.of([float(np.mean(each)) for each in chosen if each])


def _mean_reward(made: dict[str, list[DecisionRecord]]) -> Estimate:
    known = [[each.reward for each in decisions if each.reward is not None] for decisions in made.values()]
    return Estimate.of([float(np.mean(each)) for each in known if each])


def _latency(players: Sequence[Player], kind: str) -> dict[str, float]:
    """Milliseconds from a request to its answer."""
    seconds = [each for player in players for each in player.seconds[kind]]
    if not seconds:
        return {}
    return {f"p{part}": 1e3 * float(np.percentile(seconds, part)) for part in (50, 99)}


def _refused(players: Sequence[Player]) -> Counter[str]:
    """Malformed requests, by the status that they got and what was wrong with them."""
    found: Counter[str] = Counter()
    for player in players:
        for (name, status), count in player.refused.items():
            found[f"{status}: {name}"] += count
    return found
