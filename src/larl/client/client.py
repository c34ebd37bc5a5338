"""`Client`: a client of the decision service, built on the standard library only."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from larl.client.history import HistoryImport
from larl.client.models import (
    ClosedStudy,
    DecisionRecord,
    DeliveryReceipt,
    PolicyChange,
    ResolvedIssue,
    RewardReceipt,
    ServiceDecision,
    StudyInfo,
    UnitInfo,
    decision_id,
    json_settings,
    parse,
    policy_spec,
    reward_number,
)
from larl.client.offline_queue import FallbackDecision, OfflineQueue
from larl.client.outside_decisions import OutsideDecisions, new_key
from larl.client.reader import api_path
from larl.client.transport import Transport

if TYPE_CHECKING:
    from larl.policies import Policy


class Client(OutsideDecisions, HistoryImport):
    """A client of the decision service. Threads can share it.

    A request without an answer, or with status 429, 502, 503 or 504, is repeated with the same key and increasing
    pauses, so that no decision is lost or made twice. Then it raises ``ServiceUnreachable``. A request that the service
    refuses raises ``RequestRefused``.

    Parameters
    ----------
    url : str
        Address of the service, such as ``"http://127.0.0.1:8080"``.
    token : str, optional
        Token that ``larl token create`` printed; None for a service without authentication.
    timeout : float, > 0, default 10.0
        Seconds to wait for each answer.
    retries : int, >= 0, default 5
        Number of repetitions of an unanswered request.
    pending : str or Path, optional
        File for decisions of ``fallback`` that the service does not have yet. Without it they are kept in memory.

    Raises
    ------
    InvalidValue
        If an argument is not usable.

    Examples
    --------
    >>> import larl
    >>> with larl.Client("http://127.0.0.1:8080", token) as client:  # doctest: +SKIP
    ...     client.create_study("sleep", ["nothing", "prompt"], larl.LARL(s=5))
    ...     decision = client.decide("sleep", "unit-17")
    ...     client.observe(decision, 0.4)

    An address without a scheme is refused:

    >>> larl.Client("127.0.0.1")
    Traceback (most recent call last):
    ...
    larl._core.validation.InvalidValue: Client: url = '127.0.0.1' is not usable; accepted: the address of a service, \
such as http://127.0.0.1:8080
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
        self.transport = Transport(url, token, timeout, retries)
        self._queue = OfflineQueue(pending)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self.transport.close()

    def create_study(
        self, study: str, arms: Sequence[str], policy: "Policy | Mapping[str, Any]", **settings: Any
    ) -> StudyInfo:
        """Create a study. Repeating the call with the same values returns the same study.

        Parameters
        ----------
        study : str
            Its name: a–z, 0–9, ``-`` and ``_``, at most 64 characters.
        arms : sequence of str
            Names of two or more arms.
        policy : Policy or mapping
            ``larl.LARL(s=5)``, or its spec, ``{"policy": "LARL", "s": 5}``.
        **settings
            ``seed``, ``min_probability``, ``allocation``, ``max_delay``, ``pooling`` and the other fields of a study in
            docs/service.md.

        Returns
        -------
        StudyInfo
            The study as the service created it.

        Raises
        ------
        RequestRefused
            If the service does not accept a value, or has a study of this name with other settings.
        """
        body = {"study": study, "arms": list(arms), "policy": policy_spec(policy), **json_settings(settings)}
        return self._study_info(self.transport.request("POST", "/v1/studies", body))

    def change_policy(
        self,
        study: str,
        policy: "Policy | Mapping[str, Any]",
        replaces: int,
        reason: str,
        min_probability: float | Mapping[str, float] | None = None,
        allocation: str | Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> PolicyChange:
        """Replace a study's policy. The new policy learns from all earlier decisions.

        Parameters
        ----------
        study : str
            Name of the study.
        policy : Policy or mapping
            As for ``create_study``.
        replaces : int
            Version of the policy to be replaced: the study's ``policy_version``.
        reason : str
            Reason, for the record.
        min_probability, allocation : optional
            As for ``create_study``; unchanged by default.
        key : str, optional
            Key of the request: a repetition with the same key returns the same answer. Random by default.

        Returns
        -------
        PolicyChange

        Raises
        ------
        RequestRefused
            If the policy is not usable or another version is in force.
        """
        body = {"key": new_key(key), "policy": policy_spec(policy), "replaces": replaces}
        given = {} if allocation is None else json_settings({"allocation": allocation})
        body |= {"reason": reason, "min_probability": min_probability, **given}
        return parse(PolicyChange, self.transport.request("POST", api_path("studies", study, "policy"), body))

    def close_study(self, study: str, reason: str = "") -> ClosedStudy:
        """Close a study: it accepts no more decisions and rewards, and can still be read.

        Parameters
        ----------
        study : str
            Name of the study.
        reason : str, default ""
            Reason, for the record.
        """
        body = {"reason": reason}
        return parse(ClosedStudy, self.transport.request("POST", api_path("studies", study, "close"), body))

    def register(self, study: str, unit: str) -> UnitInfo:
        """Register a unit.

        Parameters
        ----------
        study, unit : str
            Names of the study and the unit.
        """
        return parse(UnitInfo, self.transport.request("POST", api_path("studies", study, "units"), {"unit": unit}))

    def decide(
        self,
        study: str,
        unit: str,
        key: str | None = None,
        available: Sequence[str] | None = None,
        reason: str | None = None,
        context: Sequence[float] | None = None,
    ) -> ServiceDecision:
        """Request a decision for a unit; pending fallback decisions of the study are reported first.

        Parameters
        ----------
        study, unit : str
            Names of the study and the unit.
        key : str, optional
            Key of the request: a repetition with the same key returns the same decision. Random by default. Choose
            your own if you may repeat the request after a crash or replace it by ``fallback``.
        available : sequence of str, optional
            Arms that can be chosen; all by default.
        reason : str, optional
            Why not all arms are available.
        context : sequence of float, optional
            Context of the step, if the policy uses one.

        Returns
        -------
        ServiceDecision

        Raises
        ------
        RequestRefused, ServiceUnreachable
        """
        if self._queue.decisions:
            self.ingest_pending(study)
        fields = {"unit": unit, "key": new_key(key), "available": available, "reason": reason, "context": context}
        body = {name: value for name, value in fields.items() if value is not None}
        return parse(ServiceDecision, self.transport.request("POST", api_path("studies", study, "decisions"), body))

    def observe(
        self,
        decision: ServiceDecision | DecisionRecord | FallbackDecision | str,
        value: float | None,
        key: str | None = None,
        arm: str | None = None,
    ) -> RewardReceipt:
        """Report the reward of a decision.

        Parameters
        ----------
        decision : ServiceDecision, DecisionRecord, FallbackDecision or str
            The decision or its id.
        value : float, bool or None
            The reward; None if there is none. True and False count as 1 and 0.
        key : str, optional
            Key of the request: a repetition with the same key returns the same answer. Random by default.
        arm : str, optional
            The arm that was played, if it is not the one that was chosen.

        Returns
        -------
        RewardReceipt
            Its ``status`` is a value of ``larl.RewardStatus``, or ``"stored"`` if the policy
            has failed.

        Raises
        ------
        RequestRefused, ServiceUnreachable
        """
        key = new_key(key)
        if isinstance(decision, FallbackDecision):
            arm, decision = arm or decision.arm, self._ingest_fallback(decision)
        body = {"key": key, "value": reward_number(value), "arm": arm}
        path = api_path("decisions", decision_id(decision), "reward")
        return parse(RewardReceipt, self.transport.request("POST", path, body))

    def delivered(
        self, decision: ServiceDecision | DecisionRecord | str, delivered: bool = True, key: str | None = None
    ) -> DeliveryReceipt:
        """Report whether a decision reached the unit.

        Parameters
        ----------
        decision : ServiceDecision, DecisionRecord or str
            The decision or its id.
        delivered : bool, default True
            Whether it reached the unit.
        key : str, optional
            As for ``observe``.
        """
        body = {"key": new_key(key), "delivered": delivered}
        path = api_path("decisions", decision_id(decision), "delivered")
        return parse(DeliveryReceipt, self.transport.request("POST", path, body))

    def resolve(self, study: str, issue: int, note: str) -> ResolvedIssue:
        """Mark an issue as resolved.

        Parameters
        ----------
        study : str
            Name of the study.
        issue : int
            Number of the issue, as ``issues`` returns it.
        note : str
            How it was resolved.
        """
        path = api_path("studies", study, "issues", issue, "resolved")
        return parse(ResolvedIssue, self.transport.request("POST", path, {"note": note}))
