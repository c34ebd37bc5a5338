"""Authentication and permissions: tokens, of which only hashes are stored, and sessions of the page."""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import anyio
import sqlalchemy as sql
from anyio import to_thread

from larl._core.validation import InvalidValue, one_of
from larl.service.clock import now, stamp
from larl.service.core.problems import Problem
from larl.service.schemas.requests import NAME, NAME_WORDS
from larl.service.storage.database import Database
from larl.service.storage.tables import sessions, tokens

ROLES = {
    "host": {"see", "write"},
    "analyst": {"see", "read", "resolve"},
    "admin": {"see", "write", "read", "resolve", "manage"},
}
PERMISSIONS = {  # as verbs for messages
    "see": "see",
    "read": "read",
    "write": "write to",
    "resolve": "resolve issues of",
    "manage": "create or change",
}
STUDY = re.compile(NAME)
TOKEN = re.compile(r"larl_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
CACHED = 2.0  # seconds for which a revoked token may still work
SESSION = timedelta(hours=12)
LOOKUPS = 4  # at the same time; each takes a thread and a connection


class Principal(NamedTuple):
    """The token that a request is made with."""

    id: str
    study: str  # * for all
    role: str

    def may(self, what: str, study: str) -> bool:
        """Return whether the principal has a permission (see, read, write, resolve, manage) for a study, * for all."""
        return what in ROLES[self.role] and self.study in ("*", study)


ANONYMOUS_ADMIN = Principal("anybody", "*", "admin")  # of a service without authentication


def check_token(study: str, role: str) -> None:
    """Raise InvalidValue if no token can be created for this study and role."""
    one_of(*ROLES)("token", "role", role)
    if study != "*" and not STUDY.fullmatch(study):
        raise InvalidValue("token", "study", study, f"{NAME_WORDS}; or * for all studies")


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class Auth:
    """The tokens and sessions of a storage."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cache: dict[str, tuple[float, Principal | None]] = {}  # with the time until which an entry is valid
        self._limiter = anyio.CapacityLimiter(LOOKUPS)
        self._ended = 0  # number of ended sessions: a lookup that began before the end of one is not cached

    def create(self, study: str, role: str) -> str:
        """Create a token and return it; only its hash is stored."""
        check_token(study, role)
        name, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
        with self._database.writing() as connection:
            values = {"id": name, "hash": _hash(secret), "study": study, "role": role, "made": now()}
            connection.execute(tokens.insert().values(values))
        return f"larl_{name}_{secret}"

    def revoke(self, name: str) -> None:
        """Revoke a token, by its id, and end its sessions."""
        with self._database.writing() as connection:
            found = connection.execute(
                tokens.update().where(tokens.c.id == name, tokens.c.revoked.is_(None)).values(revoked=now())
            )
            connection.execute(sessions.delete().where(sessions.c.token == name))
        if not found.rowcount:
            raise InvalidValue("token", "id", name, "the id of a valid token; `larl token list` shows them")

    def list(self) -> list[dict[str, str | None]]:
        """Return all tokens, without their secrets."""
        shown = (tokens.c.id, tokens.c.study, tokens.c.role, tokens.c.made, tokens.c.revoked)
        with self._database.reading() as connection:
            return [dict(row) for row in connection.execute(sql.select(*shown).order_by(tokens.c.made)).mappings()]

    def any(self) -> bool:
        """Return whether there is a token that is not revoked."""
        return any(token["revoked"] is None for token in self.list())

    async def token_principal(self, token: str) -> Principal | None:
        """Return the principal of a token."""
        return await self._cached(f"token {_hash(token)}", lambda: self._find_token(token))

    def _find_token(self, token: str) -> Principal | None:
        parts = TOKEN.fullmatch(token)
        if parts is None:
            return None
        with self._database.reading() as connection:
            row = connection.execute(sql.select(tokens).where(tokens.c.id == parts[1])).first()
        is_valid = hmac.compare_digest(_hash(parts[2]), row.hash if row else _hash(""))
        return Principal(row.id, row.study, row.role) if row and is_valid and row.revoked is None else None

    def log_in(self, principal: Principal) -> str:
        """Start a session; return the value of its cookie."""
        secret = secrets.token_urlsafe(32)
        with self._database.writing() as connection:
            connection.execute(sessions.delete().where(sessions.c.ends < now()))
            ends = stamp(datetime.now(UTC) + SESSION)
            connection.execute(sessions.insert().values(hash=_hash(secret), token=principal.id, ends=ends))
        return secret

    def log_out(self, secret: str) -> None:
        """End a session."""
        with self._database.writing() as connection:
            connection.execute(sessions.delete().where(sessions.c.hash == _hash(secret)))
        self._ended += 1
        self._cache.clear()

    async def session_principal(self, secret: str) -> Principal | None:
        """Return the principal of a session."""
        return await self._cached(f"session {_hash(secret)}", lambda: self._find_session(secret))

    def _find_session(self, secret: str) -> Principal | None:
        here = sql.select(tokens).join(sessions, sessions.c.token == tokens.c.id)
        where = (sessions.c.hash == _hash(secret), sessions.c.ends > now(), tokens.c.revoked.is_(None))
        with self._database.reading() as connection:
            row = connection.execute(here.where(*where)).first()
        return Principal(row.id, row.study, row.role) if row else None

    async def _cached(self, name: str, find: Callable[[], Principal | None]) -> Principal | None:
        """Look up in the database at most every CACHED seconds, on a thread that is only used for this."""
        until, principal = self._cache.get(name, (0.0, None))
        if time.monotonic() > until:
            if len(self._cache) > 10_000:
                self._cache.clear()
            ended = self._ended
            principal = await to_thread.run_sync(find, limiter=self._limiter)
            if ended == self._ended:
                self._cache[name] = time.monotonic() + CACHED, principal
        return principal


def require(principal: Principal, permission: str, study: str) -> None:
    """Raise 403 unless the principal has the permission for the study."""
    if not principal.may(permission, study):
        roles = " or ".join(role for role, permitted in ROLES.items() if permission in permitted)
        accepted = f"a token with role {roles} for study {study}"
        scope = "all studies" if principal.study == "*" else f"study {principal.study}"
        detail = f"this token cannot {PERMISSIONS[permission]} study {study}: it has role {principal.role} for {scope}"
        raise Problem(403, f"{detail}; accepted: {accepted}", field="role", value=principal.role, accepted=accepted)
