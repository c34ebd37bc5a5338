"""The part of `Client` that reads studies, units, decisions, rewards and issues."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from larl.client.models import DecisionRecord, Health, Issue, RewardRecord, StudyInfo, UnitInfo, parse
from larl.client.offline_queue import OfflineQueue
from larl.client.transport import Transport

PAGE_SIZE = 1_000  # items per request
Kind = TypeVar("Kind")


class StudyReader:
    """Reads the records of a service."""

    transport: Transport
    _queue: OfflineQueue

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.transport!r})"

    def health(self) -> Health:
        """Check that the service can read its storage."""
        return parse(Health, self.transport.request("GET", "/v1/health"))

    def studies(self) -> list[StudyInfo]:
        """Return the studies that the token may read."""
        return [self._study_info(each) for each in self.transport.request("GET", "/v1/studies")]

    def study(self, study: str) -> StudyInfo:
        """Return the settings of a study, with all versions of its policy."""
        return self._study_info(self.transport.request("GET", api_path("studies", study)))

    def units(self, study: str) -> Iterator[UnitInfo]:
        """Yield the units of a study, in order of registration.

        Parameters
        ----------
        study : str
            Name of the study.

        Yields
        ------
        UnitInfo
        """
        return self._pages(UnitInfo, api_path("studies", study, "units"))

    def decisions(self, study: str, unit: str | None = None) -> Iterator[DecisionRecord]:
        """Yield the decisions of a study or of one unit, with their rewards, oldest first.

        Parameters
        ----------
        study : str
            Name of the study.
        unit : str, optional
            Only decisions of this unit.

        Yields
        ------
        DecisionRecord
        """
        return self._pages(DecisionRecord, api_path("studies", study, "decisions"), unit)

    def rewards(self, study: str, unit: str | None = None) -> Iterator[RewardRecord]:
        """Yield the rewards of a study or of one unit, in order of arrival, with default rewards.

        Parameters
        ----------
        study : str
            Name of the study.
        unit : str, optional
            Only rewards of this unit.

        Yields
        ------
        RewardRecord
        """
        return self._pages(RewardRecord, api_path("studies", study, "rewards"), unit)

    def issues(self, study: str) -> Iterator[Issue]:
        """Yield the issues of a study, oldest first.

        Parameters
        ----------
        study : str
            Name of the study.

        Yields
        ------
        Issue
        """
        return self._pages(Issue, api_path("studies", study, "issues"))

    def _study_info(self, values: Mapping[str, Any]) -> StudyInfo:
        """Return a response as StudyInfo; its fallback probabilities are kept for decisions without the service."""
        info = parse(StudyInfo, values)
        self._queue.set_probabilities(info.study, info.fallback)
        return info

    def _pages(self, kind: type[Kind], path: str, unit: str | None = None) -> Iterator[Kind]:
        """Yield all items of a list, requested page by page."""
        after: int | None = 0
        while after is not None:
            query = {"after": after, "limit": PAGE_SIZE} | ({} if unit is None else {"unit": unit})
            page = self.transport.request("GET", f"{path}?{urlencode(query)}")
            yield from (parse(kind, each) for each in page["items"])
            after = page["next"]


def api_path(*parts: object) -> str:
    """Return the path of a resource; parts are percent-encoded."""
    return "/v1/" + "/".join(quote(str(part), safe="") for part in parts)
