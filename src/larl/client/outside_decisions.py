"""The part of `Client` for decisions that are made outside the service."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from larl.client.models import ServiceDecision, parse
from larl.client.offline_queue import FallbackDecision, draw_arm
from larl.client.reader import StudyReader, api_path
from larl.client.transport import RequestRefused


class OutsideDecisions(StudyReader):
    """Reports decisions of the host, and decides with fixed probabilities while the service is unreachable."""

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
    ) -> ServiceDecision:
        """Report a decision that was made outside the service.

        Parameters
        ----------
        study, unit, arm : str
            Names of the study, the unit and the arm.
        made : datetime, optional
            Time of the decision, with its offset from UTC; now by default.
        key : str, optional
            Key of the request: a repetition with the same key returns the same answer. Random by default.
        probabilities : mapping of str to float, optional
            Probability of each arm, if known.
        context : sequence of float, optional
            Context of the step, if the policy uses one.
        reason : str, optional
            Why the decision was made outside the service.

        Returns
        -------
        ServiceDecision

        Raises
        ------
        RequestRefused, ServiceUnreachable
        """
        at = (made or datetime.now(UTC)).isoformat()
        body: dict[str, Any] = {
            "unit": unit,
            "key": new_key(key),
            "arm": arm,
            "made": at,
            "probabilities": probabilities,
        }
        body |= {"context": context, "reason": reason}
        return parse(ServiceDecision, self.transport.request("POST", api_path("studies", study, "ingest"), body))

    def fallback(
        self,
        study: str,
        unit: str,
        key: str | None = None,
        available: Sequence[str] | None = None,
        reason: str | None = None,
        context: Sequence[float] | None = None,
        probabilities: Mapping[str, float] | None = None,
    ) -> FallbackDecision:
        """Decide locally because the service is unreachable.

        The decision is reported to the service by the next ``decide`` in the study, by ``ingest_pending``, or by
        ``observe``. If the service had answered the request after all, its own decision counts.

        Parameters
        ----------
        study, unit : str
            Names of the study and the unit.
        key : str, optional
            Key of the unanswered request.
        available, reason, context
            As in the unanswered request.
        probabilities : mapping of str to float, optional
            Probability of each arm; the study's fallback probabilities by default.

        Returns
        -------
        FallbackDecision

        Raises
        ------
        InvalidValue
            If no arm is available, or one is unknown.
        ServiceUnreachable
            If the client has never read the study and no probabilities are given.
        """
        known = probabilities or self._queue.probabilities.get(study) or self.study(study).fallback
        arm, used = draw_arm(known, available)
        decision = FallbackDecision(
            study=study,
            unit=unit,
            key=new_key(key),
            arm=arm,
            probabilities=used,
            made=datetime.now(UTC).isoformat(),
            available=None if available is None else list(available),
            reason=reason,
            context=None if context is None else list(context),
        )
        self._queue.add(decision)
        return decision

    @property
    def pending(self) -> list[FallbackDecision]:
        """Fallback decisions that the service does not have, oldest first; `refused` says why it refused one."""
        return list(self._queue.decisions.values())

    def ingest_pending(self, study: str | None = None) -> list[ServiceDecision]:
        """Report pending fallback decisions to the service.

        Parameters
        ----------
        study : str, optional
            Only decisions of this study.

        Returns
        -------
        list of ServiceDecision
            The decisions that the service accepted. A refused one stays pending; its ``refused`` is the reason.
        """
        waiting = [each for each in self.pending if each.refused is None and study in (None, each.study)]
        ingested = []
        for each in waiting:
            try:
                ingested.append(self._ingest_fallback(each))
            except RequestRefused as error:
                self._queue.add(each._replace(refused=str(error)))
        return ingested

    def _ingest_fallback(self, decision: FallbackDecision) -> ServiceDecision:
        """Return the service's record of a fallback decision, or its own decision if it had answered after all."""
        try:
            body = decision.ingest_request()
            response = self.transport.request("POST", api_path("studies", decision.study, "ingest"), body)
        except RequestRefused as error:
            if error.field != "key":
                raise
            body = decision.decision_request()
            response = self.transport.request("POST", api_path("studies", decision.study, "decisions"), body)
        self._queue.remove(decision.key)
        return parse(ServiceDecision, response)


def new_key(key: str | None) -> str:
    """Return the given key of a request, or a random one."""
    return str(uuid4()) if key is None else key
