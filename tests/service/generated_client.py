"""Use a client that openapi-python-client generated: python generated_client.py FOLDER ADDRESS TOKEN.

FOLDER holds the generated package, `decisions_client`. Every operation is called once, on loopback; what it returned is
printed as JSON, by the name of the operation. It runs where the generator is installed, not where larl is.
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
found: dict[str, Any] = {}


def call(operation: Any, *arguments: Any, **options: Any) -> Any:
    """What an operation returned, parsed."""
    name = operation.__name__.rpartition(".")[2]
    answer = operation.sync(*arguments, client=client, **options)
    found[name] = {"type": type(answer).__name__, "value": plain(answer)}
    return answer


def plain(answer: Any) -> Any:
    if isinstance(answer, list):
        return [plain(each) for each in answer]
    return answer.to_dict() if hasattr(answer, "to_dict") else answer


policy = models.NewStudyPolicy.from_dict({"policy": "UCB"})
call(get_health)
call(create_study, body=models.NewStudy(study="sleep", arms=["a", "b"], policy=policy, seed=1))
call(register_unit, "sleep", body=models.NewUnit(unit="u"))
decision = call(decide, "sleep", body=models.DecisionRequest(unit="u", key="1"))
assert decision.source is models.DecisionSource.POLICY
taken = call(record_reward, decision.id, body=models.RewardRequest(key="1", value=0.5))
assert taken.status is models.RewardStatus.LEARNT
call(record_delivery, decision.id, body=models.DeliveryRequest(key="1"))
made = models.ExternalDecisionRequest(unit="u", key="2", arm="b", made=datetime(2026, 11, 16, 8, 30, tzinfo=UTC))
call(ingest_decision, "sleep", body=made)
call(list_studies)
call(get_study, "sleep")
call(list_units, "sleep")
call(get_unit, "sleep", "u")
call(list_decisions, "sleep", unit="u")
call(get_decision, decision.id)
rewards = call(list_rewards, "sleep")
assert [(each.decision, each.value, each.status, each.default) for each in rewards.items] == [
    (decision.id, 0.5, models.RewardStatus.LEARNT, False)
]
call(list_issues, "sleep")
call(export_study, "sleep")
call(get_study_overview, "sleep")
call(get_roster, "sleep")
call(get_unit_overview, "sleep", "u")
call(get_session)
call(log_in, body=models.Login(token=token), x_larl_page="1")
found["log_out"] = {"type": "status", "value": log_out.sync_detailed(client=client, x_larl_page="1").status_code}
changed = models.NewPolicyPolicy.from_dict({"policy": "UCB", "alpha": 2.0})
call(change_policy, "sleep", body=models.NewPolicy(key="3", policy=changed, replaces=1, reason="wider"))
call(resolve_issue, "sleep", 999, body=models.Resolution(note="there is none"))
call(close_study, "sleep", body=models.CloseStudyRequest(reason="done"))
print(json.dumps(found))
