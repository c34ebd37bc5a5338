"""What must be refused: a fixed repertoire of bodies that real hosts send by mistake."""

import json
from typing import Any, NamedTuple

from larl.client import ServiceDecision
from larl.service.terms import Terms

TOO_LARGE = 70_000  # bytes; a service takes 65,536
NOBODY = "larl_0000000000000000_" + "A" * 43  # a token that nobody was given


class Malformed(NamedTuple):
    """A request that must be refused."""

    name: str
    path: str
    body: bytes
    token: str | None = None


def repertoire(terms: Terms, decision: ServiceDecision, key: str, guarded: bool) -> list[Malformed]:
    """All of them, around a decision that was made by `key`. `guarded`: the service asks for tokens."""
    decide, reward = f"/v1/studies/{terms.study}/decisions", f"/v1/decisions/{decision.id}/reward"
    nowhere = f"/v1/decisions/{terms.study}.0-999999999-{'0' * 16}/reward"
    moment: dict[str, Any] = {"unit": decision.unit, "key": f"{key}-malformed"}
    outcome = {"key": f"{key}-malformed", "value": 1.0}
    found = [
        Malformed("not a number", reward, b'{"key": "malformed", "value": NaN}'),
        Malformed("cut short", decide, json.dumps(moment).encode()[:-1]),
        Malformed("text for a number", reward, _body(outcome | {"value": "1.0"})),
        Malformed("no unit", decide, _body({"key": moment["key"]})),
        Malformed("unknown field", decide, _body(moment | {"arm": terms.arms[0]})),
        Malformed("unknown arm", decide, _body(moment | {"available": [f"not {terms.arms[0]}"]})),
        Malformed("context of another length", decide, _body(moment | {"context": [0.0] * (terms.width + 1)})),
        Malformed("too large", decide, _body(moment | {"reason": "x" * TOO_LARGE})),
        Malformed("unknown decision", nowhere, _body(outcome)),
        Malformed("key of another request", decide, _body(moment | {"key": key, "reason": "something else"})),
    ]
    return [*found, Malformed("wrong token", decide, _body(moment), NOBODY)] if guarded else found


def _body(words: Any) -> bytes:
    return json.dumps(words).encode()
