"""A rehearsal: simulated units use a running service, and its records are compared with what was sent.

Rewards are lost, late, repeated or corrected; responses are lost; hosts send malformed requests. At the end the
service's decisions and rewards must be exactly those that were sent.
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
from larl.rehearsal.report import Estimate, Report
from larl.rehearsal.unit import SimulatedUnit

Record = TypeVar("Record", DecisionRecord, RewardRecord)


def rehearse(plan: Plan, client: Client, *, requires_token: bool = False, progress: bool | None = None) -> Report:
    """Run a plan against the service of a client. `requires_token`: whether the service requires tokens."""
    study = client.create_study(**plan.study_request).study
    if next(client.decisions(study), None) is not None:
        accepted = "a study of its own: a name that is new to the service"
        raise InvalidValue("rehearsal", "study", study, accepted)
    units = [SimulatedUnit(plan, client, number, requires_token) for number in range(plan.units)]
    start = time.monotonic()
    _run_units(plan, client, units, progress)
    return _report(plan, client, units, time.monotonic() - start)


def _run_units(plan: Plan, client: Client, units: Sequence[SimulatedUnit], progress: bool | None) -> None:
    """Run all units step by step, with up to `plan.clients` requests at a time."""
    if plan.config.registration == "explicit":
        for unit in units:
            client.register(plan.config.study, unit.name)
    with ThreadPoolExecutor(plan.clients) as pool, Progress(plan.units * plan.steps, progress) as bar:

        def for_all_units(call: Callable[[SimulatedUnit], None]) -> None:
            finished: SimpleQueue[Future[None]] = SimpleQueue()
            try:
                with DeferInterrupt():
                    for unit in units:
                        pool.submit(call, unit).add_done_callback(finished.put)
                for _ in units:
                    done = finished.get()
                    with DeferInterrupt():
                        done.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

        for unit in units:  # one after another: the service numbers units by their first decision
            unit.step(0)
        bar.finish_steps(plan.units)
        for t in range(1, plan.steps):
            for_all_units(lambda unit, t=t: unit.step(t))  # type: ignore[misc]
            bar.finish_steps(plan.units)
        for_all_units(SimulatedUnit.finish)


def _report(plan: Plan, client: Client, units: Sequence[SimulatedUnit], seconds: float) -> Report:
    """Read the service's records, compare them with the ledgers, and summarise both."""
    config, study = plan.config, plan.config.study
    decisions, rewards = list(client.decisions(study)), list(client.rewards(study))
    decisions_by_unit, rewards_by_unit = _by_unit(decisions), _by_unit(rewards)
    for unit in units:
        unit.ledger.compare(decisions_by_unit.get(unit.name, []), rewards_by_unit.get(unit.name, []))
    names = {unit.name for unit in units}
    unknown = [f"{each.unit}: an unknown unit" for each in client.units(study) if each.unit not in names]
    return Report(
        study=study,
        policy=config.policy,
        units=plan.units,
        steps=plan.steps,
        seed=plan.seed,
        seconds=seconds,
        decisions=len(decisions),
        sources=Counter(each.source for each in decisions),
        states=Counter(each.state for each in decisions),
        statuses=Counter("filled in" if each.default else each.status for each in rewards),
        sent=sum((unit.sent for unit in units), Counter()),
        arms={arm: _arm_share(arm, decisions_by_unit) for arm in config.arms},
        reward=_mean_reward(decisions_by_unit),
        regret=Estimate.of([float(np.mean(unit.regret)) for unit in units if unit.regret]),
        fallbacks=sum(each.fallback for each in decisions) / max(len(decisions), 1),
        issues=Counter(f"{each.severity}: {each.code}" for each in client.issues(study)),
        latency={kind: _latency(units, kind) for kind in ("decision", "reward")},
        refused=_refusals(units),
        differences=[each for unit in units for each in unit.ledger.differences] + unknown,
    )


def _by_unit(records: Sequence[Record]) -> dict[str, list[Record]]:
    by_unit: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_unit[record.unit].append(record)
    return by_unit


def _arm_share(arm: str, by_unit: dict[str, list[DecisionRecord]]) -> Estimate:
    """Return the share of an arm among decisions with an available arm."""
    chosen = [[each.arm == arm for each in decisions if each.arm is not None] for decisions in by_unit.values()]
    return Estimate.of([float(np.mean(each)) for each in chosen if each])


def _mean_reward(by_unit: dict[str, list[DecisionRecord]]) -> Estimate:
    rewards = [[each.reward for each in decisions if each.reward is not None] for decisions in by_unit.values()]
    return Estimate.of([float(np.mean(each)) for each in rewards if each])


def _latency(units: Sequence[SimulatedUnit], kind: str) -> dict[str, float]:
    """Return percentiles of the milliseconds from request to response."""
    seconds = [each for unit in units for each in unit.seconds[kind]]
    if not seconds:
        return {}
    return {f"p{percent}": 1e3 * float(np.percentile(seconds, percent)) for percent in (50, 99)}


def _refusals(units: Sequence[SimulatedUnit]) -> Counter[str]:
    """Return the number of malformed requests by status and kind."""
    counts: Counter[str] = Counter()
    for unit in units:
        for (name, status), count in unit.refused.items():
            counts[f"{status}: {name}"] += count
    return counts
