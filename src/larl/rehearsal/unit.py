"""A simulated unit: it requests decisions, and sends rewards with the faults of real hosts and networks."""

import json
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from larl._core.random import bits_at, stream_key
from larl.client import Client, RequestRefused, RewardReceipt, ServiceDecision
from larl.rehearsal.ledger import Ledger
from larl.rehearsal.malformed import MalformedRequest, malformed_requests
from larl.rehearsal.plan import Plan
from larl.worlds.simulator import Simulator

TRAFFIC = np.uint64(7)  # random stream of the faults, beside the streams of larl._core.random
# Random events of a step. Their order decides which random bits each of them gets.
EVENTS = ("source", "response", "reward", "delay", "duplicate", "again", "corrected", "malformed", "malformed kind")
CORRECTION = 1.0  # difference between a corrected reward and the first
Value = TypeVar("Value")


class SimulatedUnit:
    """One unit. Its ledger has what was sent; counts and latencies have how the service answered."""

    def __init__(self, plan: Plan, client: Client, number: int, requires_token: bool) -> None:
        self._plan, self._client, self._number, self._requires_token = plan, client, number, requires_token
        self.name = f"unit-{number:04}"
        config = plan.config
        self.ledger = Ledger(self.name, config.max_delay, config.default_reward, config.is_pooled)
        self._simulator = Simulator(plan.world, plan.seed, number)
        self._traffic_key = np.uint64(stream_key(plan.seed, number, TRAFFIC))
        self._rewards: dict[int, float] = {}  # step: reward of the world
        self._due: defaultdict[int, list[int]] = defaultdict(list)  # step: steps whose rewards are sent before it
        self._has_ended = False
        self.regret: list[float] = []
        self.seconds: dict[str, list[float]] = {"decision": [], "reward": []}
        self.sent: Counter[str] = Counter()
        self.refused: Counter[tuple[str, int]] = Counter()

    def step(self, t: int) -> None:
        """Request one decision and send what belongs to it."""
        self._end_if_refused(t, lambda: self._step(t))

    def finish(self) -> None:
        """Send the rewards that are still due."""
        for t in sorted(self._due):
            self._end_if_refused(t, lambda t=t: self._send_due(t))  # type: ignore[misc]

    def _end_if_refused(self, t: int, call: Callable[[], None]) -> None:
        """Stop the unit and note a difference if a correct request is refused."""
        if self._has_ended:
            return
        try:
            call()
        except RequestRefused as error:
            self._has_ended = True
            self.ledger.expect(False, f"a request around step {t} was refused ({error})", "accepted")

    def _uniform(self, t: int, event: str) -> float:
        """Return a random number in [0, 1) for one step and event of this unit."""
        position = t * len(EVENTS) + EVENTS.index(event)
        return (int(bits_at(self._traffic_key, position)) >> 11) * 2.0**-53

    def _step(self, t: int) -> None:
        self._send_due(t)
        decision = self._decide(t, f"{self.name}-{t}")
        self.ledger.add_decision(decision)
        arm = None if decision.arm is None else self._plan.config.arms.index(decision.arm)
        if arm is not None:
            self.regret.append(self._simulator.regret(arm))
            reward = self._simulator.reward(arm)
            if math.isnan(reward):
                self.sent["reward missing in the world"] += 1
            else:
                self._rewards[t] = reward
                self._schedule_reward(t)
        if self._plan.traffic.malformed > 0.0:
            self._send_malformed(t, decision)
        self._simulator.advance(arm)

    def _decide(self, t: int, key: str) -> ServiceDecision:
        plan, traffic, u = self._plan, self._plan.traffic, self._uniform(t, "source")
        study, context = (
            plan.config.study,
            [float(x) for x in self._simulator.context] if plan.config.context_size else None,
        )
        if u < traffic.host:
            self.sent["decision by the host"] += 1
            arm, probabilities = plan.config.draw_fallback(self._number, t, None)
            return self._client.ingest(study, self.name, arm, key=key, probabilities=probabilities, context=context)
        body: dict[str, Any] = {"unit": self.name, "key": key, "context": context}
        if u < traffic.host + traffic.unavailable:
            self.sent["step without an arm"] += 1
            body |= {"available": [], "reason": "asleep"}
        if self._uniform(t, "response") >= traffic.unanswered:
            return self._timed("decision", lambda: self._client.decide(study, **body))
        self.sent["response lost"] += 1
        self._send_without_reading(f"/v1/studies/{study}/decisions", body)
        decision = self._timed("decision", lambda: self._client.decide(study, **body))
        repeated = self._client.decide(study, **body)
        self.ledger.expect(repeated == decision, f"the repeated request of {decision.id} got {repeated}", decision)
        return decision

    def _send_without_reading(self, path: str, body: Any) -> None:
        """Send a request and close the connection before the response."""
        connection = self._client.transport.connect()
        try:
            self._client.transport.write_request(connection, "POST", path, json.dumps(body).encode())
        finally:
            connection.close()

    def _timed(self, kind: str, call: Callable[[], Value]) -> Value:
        start = time.perf_counter()
        value = call()
        self.seconds[kind].append(time.perf_counter() - start)
        return value

    def _schedule_reward(self, t: int) -> None:
        """Send the reward of step t now, later or never."""
        traffic, u = self._plan.traffic, self._uniform(t, "reward")
        if u < traffic.lost:
            self.sent["reward lost"] += 1
        elif u < traffic.lost + traffic.late:
            self.sent["reward sent late"] += 1
            self._due[t + 2 + int(self._uniform(t, "delay") * traffic.latest)].append(t)
        else:
            self.sent["reward sent at once"] += 1
            self._send_reward(t)

    def _send_due(self, t: int) -> None:
        for step in self._due.pop(t, ()):
            self._send_reward(step)

    def _send_reward(self, t: int) -> None:
        """Send a reward, and with some probability repeat or correct it."""
        traffic, value, key = self._plan.traffic, self._rewards[t], f"{self.name}-{t}"
        first = self._observe(t, value, key)
        if self._uniform(t, "duplicate") < traffic.duplicate:
            self.sent["reward repeated with its key"] += 1
            repeated = self._client.observe(first.decision, value, key)
            self.ledger.expect(repeated == first, f"the repeated reward of {first.decision} got {repeated}", first)
        if self._uniform(t, "again") < traffic.again:
            self.sent["reward repeated with another key"] += 1
            self._observe(t, value, f"{key}-again")
        if self._uniform(t, "corrected") < traffic.corrected:
            self.sent["reward corrected"] += 1
            self._observe(t, value + CORRECTION, f"{key}-corrected")

    def _observe(self, t: int, value: float, key: str) -> RewardReceipt:
        name = self.ledger.entries[t].decision.id
        receipt = self._timed("reward", lambda: self._client.observe(name, value, key))
        self.ledger.add_reward(t, value, receipt.status)
        return receipt

    def _send_malformed(self, t: int, decision: ServiceDecision) -> None:
        """Send a random malformed request with some probability; the first unit sends all of them at its last step."""
        requests = malformed_requests(self._plan.config, decision, f"{self.name}-{t}", self._requires_token)
        if self._number == 0 and t == self._plan.steps - 1:
            for each in requests:
                self._expect_refusal(each)
        elif self._uniform(t, "malformed") < self._plan.traffic.malformed:
            self._expect_refusal(requests[int(self._uniform(t, "malformed kind") * len(requests))])

    def _expect_refusal(self, request: MalformedRequest) -> None:
        response = self._client.transport.send("POST", request.path, request.body, request.token)
        while response.status == 429:
            time.sleep(max(response.retry_after, 0.1))
            response = self._client.transport.send("POST", request.path, request.body, request.token)
        self.refused[request.name, response.status] += 1
        is_refused = 400 <= response.status < 500
        self.ledger.expect(is_refused, f"a malformed request ({request.name}) got {response.status}", "4xx")
