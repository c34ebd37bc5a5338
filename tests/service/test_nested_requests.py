"""Deeply nested JSON in a request is refused: with 422, and with 400 where the JSON parser gives up."""

import pytest

from tests.service.token_service import TokenService


@pytest.mark.parametrize(("depth", "status"), [(50, 422), (190, 422), (1000, 400), (10_000, 400)])
@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("policy", ["{}", '{{"policy": "LARL", "s": {}}}', '{{"policy": {}}}'])
def test_nested_policy_is_refused(
    service: TokenService, depth: int, status: int, opened: str, closed: str, policy: str
) -> None:
    nested = policy.format(f"{opened * depth}1{closed * depth}")
    body = f'{{"study": "nested", "arms": ["a", "b"], "seed": 1, "policy": {nested}}}'
    headers = {"Authorization": f"Bearer {service.admin}", "Content-Type": "application/json"}
    response = service.client.post("/v1/studies", content=body, headers=headers)
    assert (response.status_code, response.json()["status"]) == (status, status)
