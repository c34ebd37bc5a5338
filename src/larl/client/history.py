"""The part of `Client` that imports the steps of a pilot."""

import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

from larl._core.validation import InvalidValue
from larl.client.models import HistoryReceipt, parse, reward_number
from larl.client.reader import StudyReader, api_path
from larl.client.transport import RequestRefused, encode

MAX_STEPS = 250  # of a request: fewer than the service accepts, because the study answers no other request meanwhile
MAX_BYTES = 60_000  # of a request's steps; the service accepts bodies of 65,536 bytes


class HistoryImport(StudyReader):
    """Imports steps that were made before a study."""

    def import_history(self, study: str, steps: Iterable[Mapping[str, Any]]) -> HistoryReceipt:
        """Import the steps of a pilot, before the first decisions of their units.

        Many steps are sent in several requests, of which each is imported completely or not at all. Repeating the call
        with the same steps changes nothing: the service recognises each request.

        Parameters
        ----------
        study : str
            Name of the study.
        steps : iterable of mapping
            Steps in order of time, as ``larl.logs.read_steps`` returns them: ``id``, ``unit``, ``arm`` (None: no arm
            was available), ``reward`` (None: missing; True and False count as 1 and 0), and optionally ``made`` (time
            with UTC offset), ``probabilities`` and ``context``.

        Returns
        -------
        HistoryReceipt
            Number of steps and units, of all requests.

        Raises
        ------
        InvalidValue
            If there is no step, or one is not a mapping.
        RequestRefused
            If the service does not accept a step. ``field`` names it: ``steps[3].arm`` is the arm of the fourth.
            Requests before the refused one are imported.
        ServiceUnreachable

        Examples
        --------
        With a service at this address:

        >>> import larl
        >>> with larl.Client("http://127.0.0.1:8080", token) as client:  # doctest: +SKIP
        ...     client.import_history("sleep", larl.logs.read_steps("pilot.csv"))
        """
        given = list(steps)
        for i, step in enumerate(given):
            if not isinstance(step, Mapping):
                raise InvalidValue(
                    "import_history", f"steps[{i}]", step, "a mapping, such as those of larl.logs.read_steps"
                )
        if not given:
            raise InvalidValue("import_history", "steps", given, "one or more steps")
        first, at = 0, ""
        for part in _parts([_plain(step) for step in given]):
            key = f"history-{sha256(encode(part)).hexdigest()[:32]}"
            try:
                response = self.transport.request(
                    "POST", api_path("studies", study, "history"), {"key": key, "steps": part}
                )
            except RequestRefused as error:
                raise _renumbered(error, first) from error
            first, at = first + len(part), parse(HistoryReceipt, response).at
        return HistoryReceipt(study=study, steps=first, units=len({step["unit"] for step in given}), at=at)


def _plain(step: Mapping[str, Any]) -> dict[str, Any]:
    """Return a step with its reward as a number."""
    return {name: reward_number(value) if name == "reward" else value for name, value in step.items()}


def _parts(steps: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield the steps of each request. Equal steps give equal requests."""
    part: list[dict[str, Any]] = []
    size = 0
    for step in steps:
        length = len(encode(step)) + len(", ")
        if part and (len(part) == MAX_STEPS or size + length > MAX_BYTES):
            yield part
            part, size = [], 0
        part.append(step)
        size += length
    yield part


def _renumbered(error: RequestRefused, first: int) -> RequestRefused:
    """Return a refusal that counts steps from the first one of all requests."""

    def add(match: re.Match[str]) -> str:
        return f"steps[{first + int(match[1])}]"

    field, detail = (re.sub(r"\bsteps\[(\d+)\]", add, text or "", count=1) for text in (error.field, error.detail))
    return RequestRefused(error.status, detail, field or None, error.value, error.accepted)
