"""Who may do what: tokens, of which only hashes are kept, and the sessions of people who look at the page."""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import sqlalchemy as sql
from starlette.concurrency import run_in_threadpool

from larl._core.validation import InvalidValue, one_of
from larl.service.asked import NAME, NAME_WORDS
from larl.service.clock import now, stamp
from larl.service.database import Database, sessions, tokens

ROLES = {
    "host": {"see", "write"},
    "analyst": {"see", "read", "resolve"},
    "admin": {"see", "write", "read", "resolve", "manage"},
}
STUDY = re.compile(NAME)
TOKEN = re.compile(r"larl_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
REMEMBERED = 2.0  # seconds that a revoked token may still work
SESSION = timedelta(hours=12)


class Holder(NamedTuple):
    """Who asks."""

    id: str
    study: str  # * for all
    role: str

    def may(self, what: str, study: str) -> bool:
        """Whether this holder may see the terms of a study, read it, write, resolve or manage; "*" is all of them."""
        return what in ROLES[self.role] and self.study in ("*", study)


ANYBODY = Holder("anybody", "*", "admin")  # where no tokens are asked for


def check_token(study: str, role: str) -> None:
    """Raise InvalidValue if no token can be made for this study and role."""
    one_of(*ROLES)("token", "role", role)
    if study != "*" and not STUDY.fullmatch(study):
        raise InvalidValue("token", "study", study, f"{NAME_WORDS}; or * for all studies")


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class Access:
    """The tokens and sessions of a storage."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._remembered: dict[str, tuple[float, Holder | None]] = {}
        self._ended = 0  # sessions that were ended here: a lookup that began before one is not remembered after it

    def create(self, study: str, role: str) -> str:
        """A new token; this is the only time that it is seen."""
        check_token(study, role)
        name, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
        with self._database.writing() as connection:
            values = {"id": name, "hash": _hash(secret), "study": study, "role": role, "made": now()}
            connection.execute(tokens.insert().values(values))
        return f"larl_{name}_{secret}"

    def revoke(self, name: str) -> None:
        """End a token, by its id, and its sessions."""
        with self._database.writing() as connection:
            found = connection.execute(
                tokens.update().where(tokens.c.id == name, tokens.c.revoked.is_(None)).values(revoked=now())
            )
            connection.execute(sessions.delete().where(sessions.c.token == name))
        if not found.rowcount:
            raise InvalidValue("token", "id", name, "the id of a token that is in force; `larl token list` shows them")

    def list(self) -> list[dict[str, str | None]]:
        """All tokens, without what is secret."""
        shown = (tokens.c.id, tokens.c.study, tokens.c.role, tokens.c.made, tokens.c.revoked)
        with self._database.reading() as connection:
            return [dict(row) for row in connection.execute(sql.select(*shown).order_by(tokens.c.made)).mappings()]

    def any(self) -> bool:
        """Whether there is a token that is in force."""
        return any(token["revoked"] is None for token in self.list())

    async def holder(self, token: str) -> Holder | None:
        """Who holds this token."""
        return await self._remember(f"token {_hash(token)}", lambda: self._of_token(token))

    def _of_token(self, token: str) -> Holder | None:
        parts = TOKEN.fullmatch(token)
        if parts is None:
            return None
        with self._database.reading() as connection:
            row = connection.execute(sql.select(tokens).where(tokens.c.id == parts[1])).first()
        right = hmac.compare_digest(_hash(parts[2]), row.hash if row else _hash(""))
        return Holder(row.id, row.study, row.role) if row and right and row.revoked is None else None

    def enter(self, holder: Holder) -> str:
        """Begin a session; returns what its cookie holds."""
        secret = secrets.token_urlsafe(32)
        with self._database.writing() as connection:
            connection.execute(sessions.delete().where(sessions.c.ends < now()))
            ends = stamp(datetime.now(UTC) + SESSION)
            connection.execute(sessions.insert().values(hash=_hash(secret), token=holder.id, ends=ends))
        return secret

    def leave(self, secret: str) -> None:
        """End a session."""
        with self._database.writing() as connection:
            connection.execute(sessions.delete().where(sessions.c.hash == _hash(secret)))
        self._ended += 1
        self._remembered.clear()

    async def visitor(self, secret: str) -> Holder | None:
        """Who is in this session."""
        return await self._remember(f"session {_hash(secret)}", lambda: self._of_session(secret))

    def _of_session(self, secret: str) -> Holder | None:
        here = sql.select(tokens).join(sessions, sessions.c.token == tokens.c.id)
        where = (sessions.c.hash == _hash(secret), sessions.c.ends > now(), tokens.c.revoked.is_(None))
        with self._database.reading() as connection:
            row = connection.execute(here.where(*where)).first()
        return Holder(row.id, row.study, row.role) if row else None

    async def _remember(self, what: str, find: Callable[[], Holder | None]) -> Holder | None:
        """The database is asked once in a while, not for every request, and nobody else waits for it."""
        until, holder = self._remembered.get(what, (0.0, None))
        if time.monotonic() > until:
            if len(self._remembered) > 10_000:
                self._remembered.clear()
            ended = self._ended
            holder = await run_in_threadpool(find)
            if ended == self._ended:
                self._remembered[what] = time.monotonic() + REMEMBERED, holder
        return holder
