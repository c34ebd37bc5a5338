"""Commands of the service."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from larl import __version__
from larl._core.validation import InvalidValue

Storage = Annotated[str, typer.Option(help="sqlite:///FILE.db, or postgresql+psycopg://USER@HOST/DATABASE.")]
Place = Annotated[str, typer.Argument(metavar="STORAGE", help="sqlite:///FILE.db, or postgresql+psycopg://…")]
EXTRA = 'the extra "serve": pip install "larl[serve]"'


def mount(app: typer.Typer, guarded: Callable[[Callable[..., None]], Callable[..., None]]) -> None:
    """Add these commands to the command line; `guarded` turns errors into messages."""
    token = typer.Typer(help="Tokens of a service: create, list and revoke.", no_args_is_help=True)
    app.add_typer(token, name="token")
    app.command()(guarded(serve))
    for command in (replay, export, backup, restore):
        app.command()(guarded(command))
    token.command()(guarded(create))
    token.command("list")(guarded(show))
    token.command()(guarded(revoke))


def installed() -> None:
    """Raise InvalidValue if the libraries of the service are not installed."""
    try:
        import fastapi  # noqa: F401
        import sqlalchemy  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise InvalidValue("larl", "extra", error.name, EXTRA) from error


def serve(
    storage: Storage = "sqlite:///study.db",
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0: any that is free.")] = 8080,
    auth: Annotated[bool, typer.Option(help="Require tokens. Without, only on a loopback address.")] = True,
    timeout: Annotated[float, typer.Option(min=0.001, help="Seconds that a policy may take.")] = 2.0,
    rate: Annotated[float, typer.Option(min=0.1, help="Requests a second that one token may make.")] = 500.0,
    memory: Annotated[int, typer.Option(min=1, help="Megabytes for agents.")] = 1536,
    tls: Annotated[
        bool, typer.Option("--behind-tls", help="The page is served over https: its cookie is marked secure.")
    ] = False,
    alert_url: Annotated[str | None, typer.Option(help="Send issues to this address.")] = None,
    alert_command: Annotated[
        str | None, typer.Option(help="Run this command for each issue, with JSON on its input.")
    ] = None,
    proxy: Annotated[
        str | None, typer.Option(help="Address of the reverse proxy; only its X-Forwarded-For is used.")
    ] = None,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Serve an SQLite file that has lost its last rows.")
    ] = False,
) -> None:
    """Serve decisions over HTTP, with a page on the same address."""
    installed()
    from larl.service.server import serve
    from larl.service.settings import Settings

    settings = Settings(
        auth=auth,
        timeout=timeout,
        memory=memory * 2**20,
        rate=rate,
        behind_tls=tls,
        alert_url=alert_url,
        alert_command=alert_command,
        proxy=proxy,
        accept_loss=accept_loss,
    )
    serve(storage, host, port, settings)


def replay(
    storage: Place, study: Annotated[str | None, typer.Option(help="Only this study.", show_default="all")] = None
) -> None:
    """Derive every event again from the journal, and compare byte for byte. Exit code 3: one differs."""
    installed()
    import time

    from larl._core.progress import Progress
    from larl.service.ops.integrity import Mismatch, check_complete
    from larl.service.ops.replay import Replay
    from larl.service.storage.database import Database
    from larl.service.storage.journal import Journal

    began, database = time.monotonic(), Database(storage)
    try:
        check_complete(database)
        replay = Replay(Journal(database), study)
        with Progress(replay.count(), shown=True) as progress:
            done = replay.run(progress.finish_steps)
    except Mismatch as error:
        print(f"mismatch: {error}", file=sys.stderr)
        raise typer.Exit(3) from error
    finally:
        database.close()
    seconds = time.monotonic() - began
    print(f"replayed exactly: {done.events:,} rows, {done.decisions:,} decisions, {seconds:.1f} s")
    for version, count in done.other_versions.items():
        print(f"note: {count:,} of the decisions were made by larl {version}; this is {__version__}")


def export(
    storage: Place,
    study: Annotated[str, typer.Option(help="Which study.")],
    out: Annotated[Path, typer.Option(help="File to write.")],
    kind: Annotated[str, typer.Option("--format", help="csv, parquet, vw (Vowpal Wabbit) or lifejacket.")] = "csv",
    fill: Annotated[float | None, typer.Option(help="lifejacket: replaces missing rewards.")] = None,
) -> None:
    """Write the decisions of a study, with their rewards, to a file."""
    installed()
    from larl._core.progress import Progress
    from larl.service.export.files import export
    from larl.service.export.table import Table
    from larl.service.storage.database import Database
    from larl.service.storage.journal import Journal

    database = Database(storage)
    try:
        table = Table(Journal(database), study)
        passes = 2 if kind == "lifejacket" else 1  # it checks everything before it writes
        with Progress(max(passes * table.count(), 1), shown=True) as progress:
            table.step = progress.finish_steps
            left_out = export(table, kind, out, fill)
    finally:
        database.close()
    print(f"written: {out}, {table.count() - sum(left_out.values()):,} decisions")
    for reason, count in left_out.items():
        print(f"left out: {count:,}, {reason}")


def backup(storage: Place, out: Annotated[Path, typer.Option(help="File to write, such as study.backup.gz.")]) -> None:
    """Write the journal and the tokens' hashes to one file, also while the storage is served."""
    installed()
    from larl._core.progress import Progress
    from larl.service.ops.backup import backup
    from larl.service.ops.integrity import Mismatch, check_complete
    from larl.service.storage.database import Database, StorageError

    database = Database(storage)
    try:
        with Progress(max(check_complete(database), 1), shown=True) as progress:
            counts = backup(database, out, progress.finish_steps)
    except Mismatch as error:
        raise StorageError(database.display_url, f"the journal is not complete: {error}") from error
    finally:
        database.close()
    print(f"written and read back: {out}, {counts.rows:,} rows of the journal, {counts.tokens:,} tokens")


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `larl backup` wrote.")],
    storage: Annotated[str, typer.Option(help="An empty storage; an SQLite file is created.")],
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Restore the tokens too, and list them: anyone can edit a file.")
    ] = False,
) -> None:
    """Fill an empty storage from a backup, completely or not at all."""
    installed()
    from larl._core.progress import Progress
    from larl.service.ops.backup import read_tokens, restore, verify

    counts = verify(file)
    with Progress(max(counts.rows + tokens * counts.tokens, 1), shown=True) as progress:
        restored = restore(file, storage, counts, progress.finish_steps, with_tokens=tokens)
    print(f"restored and compared: {restored.rows:,} rows of the journal, {restored.tokens:,} tokens")
    if tokens:
        _print_tokens(read_tokens(file))
    elif counts.tokens:
        print(f"not restored: {counts.tokens:,} tokens; `larl token create` creates new ones, --tokens restores them")


def create(
    storage: Storage = "sqlite:///study.db",
    study: Annotated[str, typer.Option(help="Study that the token is for; * for all.")] = "*",
    role: Annotated[str, typer.Option(help="host, analyst or admin.")] = "host",
) -> None:
    """Create a token. It is shown once; only its hash is stored."""
    installed()
    from larl.service.http.auth import Auth, check_token
    from larl.service.storage.database import Database

    check_token(study, role)  # before a storage is created
    with closing(Database(storage, create=True)) as database:
        print(Auth(database).create(study, role))


def show(storage: Storage = "sqlite:///study.db") -> None:
    """List tokens, without their secrets."""
    installed()
    from larl.service.http.auth import Auth
    from larl.service.storage.database import Database

    with closing(Database(storage)) as database:
        found = Auth(database).list()
    _print_tokens(found)


def _print_tokens(tokens: Sequence[Mapping[str, str | None]]) -> None:
    for each in tokens:
        ended = f"revoked {each['revoked']}" if each["revoked"] else "valid"
        print(f"{each['id']}  {each['role']:8}  {each['study']:20}  created {each['made']}  {ended}")


def revoke(
    name: Annotated[str, typer.Argument(help="The token's id.")], storage: Storage = "sqlite:///study.db"
) -> None:
    """Revoke a token and end its sessions. It works for two seconds more at most."""
    installed()
    from larl.service.http.auth import Auth
    from larl.service.storage.database import Database

    with closing(Database(storage)) as database:
        Auth(database).revoke(name)
