"""Call every operation with a client of openapi-python-client: python generated_client.py FOLDER ADDRESS TOKEN.

FOLDER has the generated package `decisions_client`. The responses are printed as JSON, by the name of the operation.
This runs with the Python of the generator, which does not have larl.
"""

import json
import sys
from datetime import UTC, datetime
from typing import Any

folder, address, token = sys.argv[1:]
sys.path.insert(0, folder)

from decisions_client import AuthenticatedClient, models  # noqa: E402
from decisions_client.api.decisions import (  # noqa: E402
    decide,
    export_study,
    get_decision,
    import_history,
    ingest_decision,
    list_decisions,
    list_rewards,
    record_delivery,
    record_reward,
)
from decisions_client.api.issues import list_issues, resolve_issue  # noqa: E402
from decisions_client.api.service import get_health  # noqa: E402
from decisions_client.api.session import get_session, log_in, log_out  # noqa: E402
from decisions_client.api.studies import (  # noqa: E402
    change_policy,
    close_study,
    create_study,
    get_study,
    get_study_overview,
    list_studies,
)
from decisions_client.api.units import (  # noqa: E402
    get_roster,
    get_unit,
    get_unit_overview,
    list_units,
    register_unit,
)

client = AuthenticatedClient(base_url=address, token=token)
responses: dict[str, Any] = {}


def call(operation: Any, *arguments: Any, **options: Any) -> Any:
    """Call an operation; return the parsed response."""
    name = operation.__name__.rpartition(".")[2]
    response = operation.sync(*arguments, client=client, **options)
    responses[name] = {"type": type(response).__name__, "value": plain(response)}
    return response


def plain(response: Any) -> Any:
    """Return a response as JSON types."""
    if isinstance(response, list):
        return [plain(each) for each in response]
    return response.to_dict() if hasattr(response, "to_dict") else response


policy = models.NewStudyPolicy.from_dict({"policy": "UCB"})
call(get_health)
call(create_study, body=models.NewStudy(study="sleep", arms=["a", "b"], policy=policy, seed=1))
call(register_unit, "sleep", body=models.NewUnit(unit="u"))
history = [models.HistoryStep(id="p0", unit="pilot", arm="a", reward=0.5)]
call(import_history, "sleep", body=models.HistoryRequest(key="h", steps=history))
decision = call(decide, "sleep", body=models.DecisionRequest(unit="u", key="1"))
assert decision.source is models.DecisionSource.POLICY
receipt = call(record_reward, decision.id, body=models.RewardRequest(key="1", value=0.5))
assert receipt.status is models.RewardStatus.LEARNT
call(record_delivery, decision.id, body=models.DeliveryRequest(key="1"))
external = models.ExternalDecisionRequest(unit="u", key="2", arm="b", made=datetime(2026, 11, 16, 8, 30, tzinfo=UTC))
call(ingest_decision, "sleep", body=external)
call(list_studies)
call(get_study, "sleep")
call(list_units, "sleep")
call(get_unit, "sleep", "u")
call(list_decisions, "sleep", unit="u")
call(get_decision, decision.id)
rewards = call(list_rewards, "sleep")
assert [(each.decision, each.value, each.status, each.default) for each in rewards.items][1:] == [
    (decision.id, 0.5, models.RewardStatus.LEARNT, False)
]
call(list_issues, "sleep")
call(export_study, "sleep")
call(get_study_overview, "sleep")
call(get_roster, "sleep")
call(get_unit_overview, "sleep", unit="u")
call(get_session)
call(log_in, body=models.Login(token=token), x_larl_page="1")
responses["log_out"] = {"type": "status", "value": log_out.sync_detailed(client=client, x_larl_page="1").status_code}
policy = models.NewPolicyPolicy.from_dict({"policy": "UCB", "alpha": 2.0})
call(change_policy, "sleep", body=models.NewPolicy(key="3", policy=policy, replaces=1, reason="wider"))
call(resolve_issue, "sleep", 999, body=models.Resolution(note="does not exist"))
call(close_study, "sleep", body=models.CloseStudyRequest(reason="done"))
print(json.dumps(responses))
