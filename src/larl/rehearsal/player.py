"""A unit of a rehearsal: it lives in its world, asks for decisions, and sends rewards as hosts do in real life."""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from larl._core.random import bits_at, stream_key
from larl.client import Client, RequestRefused, RewardReceipt, ServiceDecision
from larl.rehearsal.ledger import Ledger
from larl.rehearsal.malformed import Malformed, repertoire
from larl.rehearsal.plan import Plan
from larl.worlds.simulator import Simulator

TRAFFIC = np.uint64(7)  # the stream of what happens to requests, beside those of larl._core.random
CHANCES = ("moment", "answer", "reward", "delay", "duplicate", "again", "corrected", "malformed", "which")
CORRECTION = 1.0  # is added to a reward that is corrected
Found = TypeVar("Found")


class Player:
    """One unit: what it sent is in its ledger, what it met in the counts and latencies."""

    def __init__(self, plan: Plan, client: Client, number: int, guarded: bool) -> None:
        self._plan, self._client, self._number, self._guarded = plan, client, number, guarded
        self.name = f"unit-{number:04}"
        terms = plan.terms
        self.ledger = Ledger(self.name, terms.patience, terms.default_reward, terms.pooled)
        self._walk, self._words = (
            Simulator(plan.world, plan.seed, number),
            np.uint64(stream_key(plan.seed, number, TRAFFIC)),
        )
        self._values: dict[int, float] = {}  # rewards of the world
        self._due: defaultdict[int, list[int]] = defaultdict(list)  # step: steps whose rewards are sent before it
        self._ended = False
        self.regret: list[float] = []
        self.seconds: dict[str, list[float]] = {"decision": [], "reward": []}
        self.sent: Counter[str] = Counter()
        self.refused: Counter[tuple[str, int]] = Counter()

    def step(self, t: int) -> None:
        """One decision, and what is sent around it."""
        self._unless_refused(t, lambda: self._step(t))

    def finish(self) -> None:
        """Send the rewards that are still due."""
        for t in sorted(self._due):
            self._unless_refused(t, lambda t=t: self._send_due(t))  # type: ignore[misc]

    def _unless_refused(self, t: int, do: Callable[[], None]) -> None:
        """A request that should be accepted and is not ends the unit's part."""
        if self._ended:
            return
        try:
            do()
        except RequestRefused as error:
            self._ended = True
            self.ledger.expect(False, f"a request around step {t} was refused ({error})", "accepted")

    def _chance(self, t: int, name: str) -> float:
        """A number in [0, 1) that is this unit's, step's and purpose's own."""
        position = t * len(CHANCES) + CHANCES.index(name)
        return (int(bits_at(self._words, position)) >> 11) * 2.0**-53

    def _step(self, t: int) -> None:
        self._send_due(t)
        answer = self._decide(t, f"{self.name}-{t}")
        self.ledger.decided(answer)
        arm = None if answer.arm is None else self._plan.terms.arms.index(answer.arm)
        if arm is not None:
            means = self._walk.means
            self.regret.append(float(means.max() - means[arm]))
            self._values[t] = self._walk.reward(arm)
            self._plan_reward(t)
        if self._plan.traffic.malformed > 0.0:
            self._send_malformed(t, answer)
        self._walk.advance(arm)

    def _decide(self, t: int, key: str) -> ServiceDecision:
        plan, traffic, chance = self._plan, self._plan.traffic, self._chance(t, "moment")
        study, context = plan.terms.study, [float(x) for x in self._walk.context] if plan.terms.width else None
        if chance < traffic.host:
            self.sent["decision by the host"] += 1
            arm, odds = plan.terms.fall_back(self._number, t, None)
            return self._client.ingest(study, self.name, arm, key=key, probabilities=odds, context=context)
        words: dict[str, Any] = {"unit": self.name, "key": key, "context": context}
        if chance < traffic.host + traffic.unavailable:
            self.sent["moment without an arm"] += 1
            words |= {"available": [], "reason": "asleep"}
        if self._chance(t, "answer") >= traffic.unanswered:
            return self._timed("decision", lambda: self._client.decide(study, **words))
        self.sent["answer lost"] += 1
        self._abandon(f"/v1/studies/{study}/decisions", words)
        answer = self._timed("decision", lambda: self._client.decide(study, **words))
        again = self._client.decide(study, **words)
        self.ledger.expect(again == answer, f"the request of {answer.id} when repeated got {again}", answer)
        return answer

    def _abandon(self, path: str, words: Any) -> None:
        """Send a request, and be gone before its answer."""
        line = self._client.transport.connect()
        try:
            self._client.transport.write_request(line, "POST", path, json.dumps(words).encode())
        finally:
            line.close()

    def _timed(self, kind: str, call: Callable[[], Found]) -> Found:
        began = time.perf_counter()
        answer = call()
        self.seconds[kind].append(time.perf_counter() - began)
        return answer

    def _plan_reward(self, t: int) -> None:
        """Send the reward of step t now, later or never."""
        traffic, chance = self._plan.traffic, self._chance(t, "reward")
        if chance < traffic.lost:
            self.sent["reward lost"] += 1
        elif chance < traffic.lost + traffic.late:
            self.sent["reward sent late"] += 1
            self._due[t + 2 + int(self._chance(t, "delay") * traffic.latest)].append(t)
        else:
            self.sent["reward sent at once"] += 1
            self._send_reward(t)

    def _send_due(self, t: int) -> None:
        for step in self._due.pop(t, ()):
            self._send_reward(step)

    def _send_reward(self, t: int) -> None:
        """Send a reward, and perhaps once more in one way or another."""
        traffic, value, key = self._plan.traffic, self._values[t], f"{self.name}-{t}"
        first = self._observe(t, value, key)
        if self._chance(t, "duplicate") < traffic.duplicate:
            self.sent["reward repeated by its key"] += 1
            again = self._client.observe(first.decision, value, key)
            self.ledger.expect(again == first, f"the reward of {first.decision} when repeated got {again}", first)
        if self._chance(t, "again") < traffic.again:
            self.sent["reward repeated by another key"] += 1
            self._observe(t, value, f"{key}-again")
        if self._chance(t, "corrected") < traffic.corrected:
            self.sent["reward corrected"] += 1
            self._observe(t, value + CORRECTION, f"{key}-corrected")

    def _observe(self, t: int, value: float, key: str) -> RewardReceipt:
        name = self.ledger.entries[t].answer.id
        answer = self._timed("reward", lambda: self._client.observe(name, value, key))
        self.ledger.sent(t, value, answer.taken)
        return answer

    def _send_malformed(self, t: int, answer: ServiceDecision) -> None:
        """Now and then something that must be refused; the first unit tries all of it in the end."""
        known = repertoire(self._plan.terms, answer, f"{self.name}-{t}", self._guarded)
        if self._number == 0 and t == self._plan.steps - 1:
            for each in known:
                self._try(each)
        elif self._chance(t, "malformed") < self._plan.traffic.malformed:
            self._try(known[int(self._chance(t, "which") * len(known))])

    def _try(self, each: Malformed) -> None:
        answer = self._client.transport.send("POST", each.path, each.body, each.token)
        while answer.status == 429:
            time.sleep(max(answer.retry_after, 0.1))
            answer = self._client.transport.send("POST", each.path, each.body, each.token)
        self.refused[each.name, answer.status] += 1
        self.ledger.expect(400 <= answer.status < 500, f"what is malformed ({each.name}) got {answer.status}", "4xx")
