"""A service that requires tokens, with one token for each role and study."""

from typing import Any

from starlette.testclient import TestClient

from larl.service.app import make_app
from larl.service.http.auth import Auth
from larl.service.settings import Settings
from larl.service.storage.database import Database
from tests.service.host import UCB

STUDY = {"study": "sleep", "arms": ["a", "b"], "policy": UCB, "seed": 1}
ROLES = ("host", "analyst", "admin")


class TokenService:
    """A service in this process; `tokens` are by role and study, "*" for all studies."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.auth = Auth(database)
        self.tokens = {(role, of): self.auth.create(of, role) for role in ROLES for of in ("sleep", "other", "*")}
        self.client = TestClient(make_app(database, settings), raise_server_exceptions=False)

    @property
    def admin(self) -> str:
        """The token of an admin of all studies."""
        return self.tokens["admin", "*"]

    def request(self, token: str | None, method: str, path: str, **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self.client.request(method, path, headers=headers, **more)
