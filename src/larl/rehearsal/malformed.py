"""Requests that the service must refuse: a fixed list of mistakes that real hosts make."""

import json
from typing import Any, NamedTuple

from larl.client import ServiceDecision
from larl.service.core.study_config import StudyConfig

TOO_LARGE = 70_000  # bytes; the service accepts at most 65,536
UNKNOWN_TOKEN = "larl_0000000000000000_" + "A" * 43


class MalformedRequest(NamedTuple):
    """A request that must be refused."""

    name: str
    path: str
    body: bytes
    token: str | None = None


def malformed_requests(
    config: StudyConfig, decision: ServiceDecision, key: str, requires_token: bool
) -> list[MalformedRequest]:
    """Return all malformed requests, for a decision made with `key`, for a service that requires tokens or not."""
    decide, reward = f"/v1/studies/{config.study}/decisions", f"/v1/decisions/{decision.id}/reward"
    unknown = f"/v1/decisions/{config.study}.0-999999999-{'0' * 16}/reward"
    decide_body: dict[str, Any] = {"unit": decision.unit, "key": f"{key}-malformed"}
    reward_body = {"key": f"{key}-malformed", "value": 1.0}
    too_many_numbers = [0.0] * (config.context_size + 1)
    requests = [
        MalformedRequest("not a number", reward, b'{"key": "malformed", "value": NaN}'),
        MalformedRequest("cut short", decide, json.dumps(decide_body).encode()[:-1]),
        MalformedRequest("text for a number", reward, _json(reward_body | {"value": "1.0"})),
        MalformedRequest("no unit", decide, _json({"key": decide_body["key"]})),
        MalformedRequest("unknown field", decide, _json(decide_body | {"arm": config.arms[0]})),
        MalformedRequest("unknown arm", decide, _json(decide_body | {"available": [f"not {config.arms[0]}"]})),
        MalformedRequest("context of another length", decide, _json(decide_body | {"context": too_many_numbers})),
        MalformedRequest("too large", decide, _json(decide_body | {"reason": "x" * TOO_LARGE})),
        MalformedRequest("unknown decision", unknown, _json(reward_body)),
        MalformedRequest("key of another request", decide, _json(decide_body | {"key": key, "reason": "other"})),
    ]
    if requires_token:
        requests.append(MalformedRequest("wrong token", decide, _json(decide_body), UNKNOWN_TOKEN))
    return requests


def _json(body: Any) -> bytes:
    return json.dumps(body).encode()
