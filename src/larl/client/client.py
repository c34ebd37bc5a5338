"""A client of the decision service, of the standard library's parts.

    client = larl.Client("http://127.0.0.1:8080", token)
    decision = client.decide("sleep", "unit-17")
    client.observe(decision, 0.4)

A request that is not answered is repeated with the same key, so that what is decided is neither lost nor doubled.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode
from uuid import uuid4

from larl._core.validation import InvalidValue
from larl.client.models import (
    Closed,
    Decided,
    Delivered,
    Health,
    Issue,
    Outcome,
    PolicyChange,
    Resolved,
    Reward,
    Study,
    Taken,
    Unit,
    read,
)
from larl.client.offline_queue import Fallback, Pending, draw
from larl.client.transport import RequestRefused, Wire

if TYPE_CHECKING:
    from larl.policies import Policy

PAGE = 1_000  # items asked for at once
Kind = TypeVar("Kind")


class Client:
    """Asks a service. Threads may share it.

    A request waits `timeout` seconds for its answer; one that gets none, or is told to try again (429, 502, 503, 504),
    is repeated up to `retries` times, with longer and longer pauses. Then it raises `ServiceUnreachable`. A refused
    request raises `RequestRefused`. `pending`: a file for decisions that the host makes itself (`fallback`).
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        timeout: float = 10.0,
        retries: int = 5,
        *,
        pending: str | Path | None = None,
    ) -> None:
        self.wire = Wire(url, token, timeout, retries)
        self._pending = Pending(pending)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self.wire.close()

    def health(self) -> Health:
        """Whether the service can read its storage."""
        return read(Health, self.wire.call("GET", "/v1/health"))

    def create_study(
        self, study: str, arms: Sequence[str], policy: "Policy | Mapping[str, Any]", **terms: Any
    ) -> Study:
        """Make a study; the same again gets the same answer.

        Parameters
        ----------
        study : str
            Its name: a–z, 0–9, ``-`` and ``_``, at most 64 characters.
        arms : sequence of str
            Names of two or more arms.
        policy : Policy or mapping
            ``larl.LARL(s=5)``, or its spec, ``{"policy": "LARL", "s": 5}``.
        **terms
            ``seed``, ``floor``, ``patience``, ``pooling``, ``horizon``, ``default_reward``, ``fallback``,
            ``registration``: see docs/service.md.

        Raises
        ------
        RequestRefused
            If the service does not accept a value, or has a study of this name with other terms.
        """
        words = {"study": study, "arms": list(arms), "policy": _spec(policy), **terms}
        return self._known(self.wire.call("POST", "/v1/studies", words))

    def studies(self) -> list[Study]:
        """The studies that the token may read."""
        return [self._known(each) for each in self.wire.call("GET", "/v1/studies")]

    def study(self, study: str) -> Study:
        """A study, and the policies that it had."""
        return self._known(self.wire.call("GET", _path("studies", study)))

    def _known(self, values: Mapping[str, Any]) -> Study:
        found = read(Study, values)
        self._pending.learn(found.study, found.fallback)
        return found

    def change_policy(
        self,
        study: str,
        policy: "Policy | Mapping[str, Any]",
        replaces: int,
        reason: str,
        floor: float | None = None,
        key: str | None = None,
    ) -> PolicyChange:
        """Put another policy in force instead of version `replaces`; it is given as to `make_study`."""
        words = {"key": _key(key), "policy": _spec(policy), "replaces": replaces, "reason": reason, "floor": floor}
        return read(PolicyChange, self.wire.call("POST", _path("studies", study, "policy"), words))

    def close_study(self, study: str, reason: str = "") -> Closed:
        """End a study: it stays to be read."""
        return read(Closed, self.wire.call("POST", _path("studies", study, "close"), {"reason": reason}))

    def register(self, study: str, unit: str) -> Unit:
        """Register a unit."""
        return read(Unit, self.wire.call("POST", _path("studies", study, "units"), {"unit": unit}))

    def decide(
        self,
        study: str,
        unit: str,
        key: str | None = None,
        available: Sequence[str] | None = None,
        reason: str | None = None,
        context: Sequence[float] | None = None,
    ) -> Decided:
        """Decide for a unit, once it is known what the host decided itself before.

        Who may have to make up for this decision (`fallback`), or to repeat it after a crash, gives a `key` of its own.
        """
        if self._pending.held:
            self.ingest_pending(study)
        words = {"unit": unit, "key": _key(key), "available": available, "reason": reason, "context": context}
        given = {name: value for name, value in words.items() if value is not None}
        return read(Decided, self.wire.call("POST", _path("studies", study, "decisions"), given))

    def observe(
        self,
        decision: Decided | Outcome | Fallback | str,
        value: float | None,
        key: str | None = None,
        arm: str | None = None,
    ) -> Taken:
        """Say what came of a decision; None: nothing did. `arm`: what was done in fact, if not what was decided."""
        key = _key(key)
        if isinstance(decision, Fallback):
            arm, decision = arm or decision.arm, self._take_in(decision)
        name = decision if isinstance(decision, str) else decision.id
        words = {"key": key, "value": value, "arm": arm}
        return read(Taken, self.wire.call("POST", _path("decisions", name, "reward"), words))

    def delivered(self, decision: Decided | Outcome | str, delivered: bool = True, key: str | None = None) -> Delivered:
        """Say whether what was decided reached the unit."""
        name = decision if isinstance(decision, str) else decision.id
        words = {"key": _key(key), "delivered": delivered}
        return read(Delivered, self.wire.call("POST", _path("decisions", name, "delivered"), words))

    def ingest(
        self,
        study: str,
        unit: str,
        arm: str,
        made: datetime | None = None,
        key: str | None = None,
        probabilities: Mapping[str, float] | None = None,
        context: Sequence[float] | None = None,
        reason: str | None = None,
    ) -> Decided:
        """Tell of a decision that the host made itself, now or at `made`."""
        at = (made or datetime.now(UTC)).isoformat()
        words = {"unit": unit, "key": _key(key), "arm": arm, "made": at, "probabilities": probabilities}
        more = {"context": context, "reason": reason}
        return read(Decided, self.wire.call("POST", _path("studies", study, "ingest"), words | more))

    def fallback(
        self,
        study: str,
        unit: str,
        key: str | None = None,
        available: Sequence[str] | None = None,
        reason: str | None = None,
        context: Sequence[float] | None = None,
        probabilities: Mapping[str, float] | None = None,
    ) -> Fallback:
        """Decide here, by the study's fallback probabilities or those given, as the service cannot be reached.

        Give the `key` of the request that was not answered. The service is told when it is back: before its next
        decision in this study, by `ingest_pending`, or when the reward is observed.
        """
        arm, chances = draw(probabilities or self._pending.odds.get(study) or self.study(study).fallback, available)
        made = Fallback(
            study,
            unit,
            _key(key),
            arm,
            chances,
            datetime.now(UTC).isoformat(),
            None if available is None else list(available),
            reason,
            None if context is None else list(context),
        )
        self._pending.hold(made)
        return made

    @property
    def pending(self) -> list[Fallback]:
        """Decisions made here that the service does not know of, oldest first; those that it refused say why."""
        return list(self._pending.held.values())

    def ingest_pending(self, study: str | None = None) -> list[Decided]:
        """Tell the service what was decided here, in one study or in all. What it refuses stays, and says why."""
        waiting = [each for each in self.pending if each.refused is None and study in (None, each.study)]
        taken = []
        for each in waiting:
            try:
                taken.append(self._take_in(each))
            except RequestRefused as error:
                self._pending.hold(each._replace(refused=str(error)))
        return taken

    def _take_in(self, made: Fallback) -> Decided:
        """The decision that stands for one made here: if the service had decided after all, its own."""
        try:
            answer = self.wire.call("POST", _path("studies", made.study, "ingest"), made.said())
        except RequestRefused as error:
            if error.field != "key":
                raise
            answer = self.wire.call("POST", _path("studies", made.study, "decisions"), made.asked())
        self._pending.drop(made.key)
        return read(Decided, answer)

    def units(self, study: str) -> Iterator[Unit]:
        """The units of a study, as they entered."""
        return self._all(Unit, _path("studies", study, "units"))

    def decisions(self, study: str, unit: str | None = None) -> Iterator[Outcome]:
        """Decisions, and what became of them."""
        return self._all(Outcome, _path("studies", study, "decisions"), unit)

    def rewards(self, study: str, unit: str | None = None) -> Iterator[Reward]:
        """Rewards as they came, or as they were filled in."""
        return self._all(Reward, _path("studies", study, "rewards"), unit)

    def issues(self, study: str) -> Iterator[Issue]:
        """What went wrong, and what was done."""
        return self._all(Issue, _path("studies", study, "issues"))

    def resolve(self, study: str, issue: int, note: str) -> Resolved:
        """Say that an issue is dealt with."""
        return read(
            Resolved, self.wire.call("POST", _path("studies", study, "issues", issue, "resolved"), {"note": note})
        )

    def _all(self, kind: type[Kind], path: str, unit: str | None = None) -> Iterator[Kind]:
        """All items of a list, asked for page by page."""
        after: int | None = 0
        while after is not None:
            query = {"after": after, "limit": PAGE} | ({} if unit is None else {"unit": unit})
            page = self.wire.call("GET", f"{path}?{urlencode(query)}")
            yield from (read(kind, each) for each in page["items"])
            after = page["next"]


def _spec(policy: Any) -> dict[str, Any]:
    """The spec of a policy as JSON types, from a Policy or a mapping."""
    if isinstance(policy, Mapping):
        return dict(policy)
    to_dict = getattr(policy, "to_dict", None)  # larl.policies is not imported here: a client needs no compiler
    if to_dict is None or isinstance(policy, type):
        accepted = 'a policy such as larl.LARL(s=5), or its spec, {"policy": "LARL", "s": 5}'
        raise InvalidValue("Client", "policy", policy, accepted)
    found: dict[str, Any] = to_dict()
    return found


def _key(given: str | None) -> str:
    return str(uuid4()) if given is None else given


def _path(*parts: object) -> str:
    return "/v1/" + "/".join(quote(str(part), safe="") for part in parts)
