"""The service's part of the command line."""

import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from larl import __version__
from larl._core.validation import InvalidValue

Storage = Annotated[str, typer.Option(help="sqlite:///FILE.db, or postgresql+psycopg://USER@HOST/DATABASE.")]
Place = Annotated[str, typer.Argument(metavar="STORAGE", help="sqlite:///FILE.db, or postgresql+psycopg://…")]
NEEDS = 'the extra "serve": pip install "larl[serve]"'


def mount(app: typer.Typer, guarded: Callable[[Callable[..., None]], Callable[..., None]]) -> None:
    """Add these commands to the command line; `guarded` turns errors into messages."""
    token = typer.Typer(help="Who may use a service: make, list and end tokens.", no_args_is_help=True)
    app.add_typer(token, name="token")
    app.command()(guarded(serve))
    for command in (replay, export, backup, restore):
        app.command()(guarded(command))
    token.command()(guarded(create))
    token.command("list")(guarded(show))
    token.command()(guarded(revoke))


def installed() -> None:
    """Refuse where the service's libraries are not installed."""
    try:
        import fastapi  # noqa: F401
        import sqlalchemy  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise InvalidValue("larl", "extra", error.name, NEEDS) from error


def serve(
    storage: Storage = "sqlite:///study.db",
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0: any that is free.")] = 8080,
    auth: Annotated[bool, typer.Option(help="Ask for tokens; without, on this machine only.")] = True,
    timeout: Annotated[float, typer.Option(min=0.001, help="Seconds that a policy may take.")] = 2.0,
    rate: Annotated[float, typer.Option(min=0.1, help="Requests a second that one token may make.")] = 500.0,
    memory: Annotated[int, typer.Option(min=1, help="Megabytes for what policies have learnt.")] = 512,
    tls: Annotated[
        bool, typer.Option("--behind-tls", help="The page is reached by https: mark its cookie so.")
    ] = False,
    alert_url: Annotated[str | None, typer.Option(help="Send issues to this address.")] = None,
    alert_command: Annotated[str | None, typer.Option(help="Run this for each issue, which it gets as JSON.")] = None,
) -> None:
    """Serve decisions over HTTP, with a page on the same address."""
    installed()
    from larl.service.door import Settings
    from larl.service.server import serve

    settings = Settings(
        auth=auth,
        seconds=timeout,
        memory=memory * 2**20,
        rate=rate,
        secure=tls,
        alert_url=alert_url,
        alert_command=alert_command,
    )
    serve(storage, host, port, settings)


def replay(
    storage: Place, study: Annotated[str | None, typer.Option(help="Only this study.", show_default="all")] = None
) -> None:
    """Derive every decision once more from the journal, and compare byte for byte. Exit code 3: one is not the same."""
    installed()
    import time

    from larl._core.progress import Progress
    from larl.service.database import Database
    from larl.service.integrity import Mismatch, whole
    from larl.service.journal import Journal
    from larl.service.replay import Replay

    began, database = time.monotonic(), Database(storage)
    try:
        whole(database)
        again = Replay(Journal(database), study)
        with Progress(again.count(), shown=True) as progress:
            done = again.run(progress.finish_steps)
    except Mismatch as error:
        print(f"mismatch: {error}", file=sys.stderr)
        raise typer.Exit(3) from error
    finally:
        database.close()
    seconds = time.monotonic() - began
    print(f"replayed exactly: {done.rows:,} rows, {done.decisions:,} decisions, {seconds:.1f} s")
    for made, count in done.others.items():
        print(f"note: {count:,} of the decisions were made by larl {made}; this is {__version__}")


def export(
    storage: Place,
    study: Annotated[str, typer.Option(help="Which study.")],
    out: Annotated[Path, typer.Option(help="File to write.")],
    kind: Annotated[str, typer.Option("--format", help="csv, parquet, vw (Vowpal Wabbit) or lifejacket.")] = "csv",
    fill: Annotated[float | None, typer.Option(help="lifejacket: what counts where there is no reward.")] = None,
) -> None:
    """Write a study to a file: one row for each unit and decision, and what became of it."""
    installed()
    from larl._core.progress import Progress
    from larl.service.database import Database
    from larl.service.export import export
    from larl.service.journal import Journal
    from larl.service.table import Table

    database = Database(storage)
    try:
        table = Table(Journal(database), study)
        readings = 2 if kind == "lifejacket" else 1  # it looks through all before it writes
        with Progress(max(readings * table.count(), 1), shown=True) as progress:
            table.step = progress.finish_steps
            left = export(table, kind, out, fill)
    finally:
        database.close()
    print(f"written: {out}, {table.count() - sum(left.values()):,} decisions")
    for reason, count in left.items():
        print(f"left out: {count:,}, {reason}")


def backup(storage: Place, out: Annotated[Path, typer.Option(help="File to write, such as study.backup.gz.")]) -> None:
    """Write the journal and the tokens' hashes to one file, also while the storage is served."""
    installed()
    from larl._core.progress import Progress
    from larl.service.backup import backup
    from larl.service.database import Database, StorageError
    from larl.service.integrity import Mismatch, whole

    database = Database(storage)
    try:
        with Progress(max(whole(database), 1), shown=True) as progress:
            counts = backup(database, out, progress.finish_steps)
    except Mismatch as error:
        raise StorageError(database.shown, f"the journal is not complete: {error}") from error
    finally:
        database.close()
    print(f"written and read back: {out}, {counts.rows:,} rows of the journal, {counts.tokens:,} tokens")


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `larl backup` wrote.")],
    storage: Annotated[str, typer.Option(help="An empty storage; an SQLite one is made.")],
) -> None:
    """Fill an empty storage from a backup: all of it, or nothing."""
    installed()
    from larl._core.progress import Progress
    from larl.service.backup import restore, verify

    counts = verify(file)
    with Progress(max(sum(counts), 1), shown=True) as progress:
        restore(file, storage, counts, progress.finish_steps)
    print(f"restored and compared: {counts.rows:,} rows of the journal, {counts.tokens:,} tokens")


def create(
    storage: Storage = "sqlite:///study.db",
    study: Annotated[str, typer.Option(help="Study that the token is for; * for all.")] = "*",
    role: Annotated[str, typer.Option(help="host, analyst or admin.")] = "host",
) -> None:
    """Make a token. It is shown once; only a hash of it is kept."""
    installed()
    from larl.service.access import Access, check_token
    from larl.service.database import Database

    check_token(study, role)  # before a storage is made
    with closing(Database(storage, create=True)) as database:
        print(Access(database).create(study, role))


def show(storage: Storage = "sqlite:///study.db") -> None:
    """List tokens, without their secrets."""
    installed()
    from larl.service.access import Access
    from larl.service.database import Database

    with closing(Database(storage)) as database:
        found = Access(database).list()
    for each in found:
        ended = f"revoked {each['revoked']}" if each["revoked"] else "in force"
        print(f"{each['id']}  {each['role']:8}  {each['study']:20}  made {each['made']}  {ended}")


def revoke(
    name: Annotated[str, typer.Argument(help="The token's id.")], storage: Storage = "sqlite:///study.db"
) -> None:
    """End a token, and what was opened with it. It works for two seconds more at most."""
    installed()
    from larl.service.access import Access
    from larl.service.database import Database

    with closing(Database(storage)) as database:
        Access(database).revoke(name)
