"""Arguments of the client: policies, addresses, tokens and contexts."""

from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

import larl
from larl.client import Client
from larl.service.http.auth import Auth
from larl.service.storage.database import Database
from tests.service.openapi import DESCRIPTION
from tests.service.service_process import serving_folder


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving_folder(tmp_path_factory.mktemp("served"), "--no-auth") as address, Client(address, retries=1) as found:
        yield found


def test_policy_can_be_an_object_or_a_spec(client: Client) -> None:
    name = f"s{uuid4().hex[:12]}"
    info = client.create_study(name, ["a", "b"], larl.UCB(alpha=0.5), seed=1)
    assert info.policy == larl.UCB(alpha=0.5).to_dict()
    assert client.create_study(name, ["a", "b"], policy=larl.UCB(alpha=0.5).to_dict(), seed=1) == info
    client.change_policy(name, larl.UCB(alpha=2.0), replaces=1, reason="wider")
    client.change_policy(name, MappingProxyType({"policy": "UCB", "alpha": 3.0}), replaces=2, reason="wider still")
    assert [each["alpha"] for each in client.study(name).versions] == [0.5, 2.0, 3.0]


@pytest.mark.parametrize("policy", ["UCB", larl.UCB, None, 5])
def test_invalid_policy_is_refused_before_it_is_sent(policy: Any) -> None:
    nowhere = Client("http://127.0.0.1:9", retries=0)
    with pytest.raises(larl.InvalidValue, match=r"policy = .* accepted: a policy such as larl\.LARL\(s=5\)"):
        nowhere.create_study("s", ["a", "b"], policy)
    with pytest.raises(larl.InvalidValue, match=r"policy = .* accepted: a policy such as larl\.LARL\(s=5\)"):
        nowhere.change_policy("s", policy, 1, "")


def test_class_in_place_of_a_policy_gets_a_hint() -> None:
    nowhere = Client("http://127.0.0.1:9", retries=0)
    for create in (lambda kind: nowhere.create_study("s", ["a", "b"], kind), lambda kind: larl.Agent(kind, 2)):
        with pytest.raises(larl.InvalidValue, match=r"; UCB is the class, write UCB\(…\)$"):
            create(larl.UCB)
    with pytest.raises(larl.InvalidValue, match=r"; LARL is the class, write LARL\(…\)$"):
        larl.Cohort(larl.LARL, 2)  # type: ignore[arg-type]


def test_text_of_a_client_has_its_address_and_not_its_token() -> None:
    assert repr(Client("http://127.0.0.1:9/", "secret")) == "Client('http://127.0.0.1:9', token=…)"
    assert repr(Client("http://127.0.0.1:9")) == "Client('http://127.0.0.1:9')"
    assert repr(Client("http://me:secret@127.0.0.1:9/larl")) == "Client('http://127.0.0.1:9/larl')"


def test_context_can_be_an_array(client: Client) -> None:
    name = f"s{uuid4().hex[:12]}"
    client.create_study(name, ["a", "b"], larl.LARL(0, context=2), seed=1)
    assert client.decide(name, "u", context=np.array([0.5, 1.0])).t == 0


REWARDS = [(True, 1.0), (False, 0.0), (np.True_, 1.0), (np.float32(0.5), 0.5), (np.int64(2), 2.0), (None, None)]


def test_rewards_can_be_booleans_and_numbers_of_numpy(client: Client) -> None:
    name = f"s{uuid4().hex[:12]}"
    client.create_study(name, ["a", "b"], larl.UCB(), seed=1)
    for value, stored in REWARDS:
        receipt = client.observe(client.decide(name, "u"), value)
        assert (receipt.value, receipt.status) == (stored, "missing" if value is None else "learnt")
    assert client.observe(client.fallback(name, "u"), np.True_).value == 1.0
    assert [each.reward for each in client.decisions(name)] == [*(stored for _, stored in REWARDS), 1.0]


def test_imported_rewards_can_be_booleans_and_numbers_of_numpy(client: Client) -> None:
    name = f"s{uuid4().hex[:12]}"
    client.create_study(name, ["a", "b"], larl.UCB(), seed=1)
    steps = [{"id": f"{i}", "unit": "u", "arm": "a", "reward": value} for i, (value, _) in enumerate(REWARDS)]
    assert client.import_history(name, steps).steps == len(REWARDS)
    assert [each.reward for each in client.decisions(name)] == [stored for _, stored in REWARDS]
    assert steps[0]["reward"] is True  # the caller's steps are not changed


def test_the_service_says_that_it_wants_one_or_zero() -> None:
    schemas = DESCRIPTION["components"]["schemas"]
    for schema, field in (("RewardRequest", "value"), ("HistoryStep", "reward")):
        assert "Send 1 or 0 for true or false" in schemas[schema]["properties"][field]["description"]


def test_token_can_end_with_a_newline(tmp_path: Path) -> None:
    """As a token that was read from a file, or printed by a command."""
    database = Database(f"sqlite:///{tmp_path / 'study.db'}", create=True)
    token = Auth(database).create("*", "admin")
    database.close()
    with serving_folder(tmp_path) as address, Client(address, f"{token}\n") as client:
        assert client.studies() == []


def test_invalid_addresses_and_tokens_are_refused_at_once() -> None:
    for url in ("127.0.0.1:80", "ftp://there", "http://"):
        with pytest.raises(larl.InvalidValue, match="url"):
            Client(url)
    with pytest.raises(larl.InvalidValue, match="token") as refused:
        Client("http://127.0.0.1", "sec\nret")
    assert "ret" not in str(refused.value).replace("create", "")
    with pytest.raises(larl.InvalidValue, match="token = ''"):
        Client("http://127.0.0.1", "\n")
