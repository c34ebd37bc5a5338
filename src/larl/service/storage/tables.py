"""Tables of a storage. The journal is append-only, which triggers of the database enforce."""

import sqlalchemy as sql

SCHEMA = 1  # version of the tables

metadata = sql.MetaData()
about = sql.Table("about", metadata, sql.Column("schema", sql.Integer, nullable=False))
journal = sql.Table(
    "journal",
    metadata,
    sql.Column("seq", sql.BigInteger().with_variant(sql.Integer, "sqlite"), primary_key=True, autoincrement=False),
    sql.Column("study", sql.Text, nullable=False),
    sql.Column("kind", sql.Text, nullable=False),
    sql.Column("unit", sql.Text),
    sql.Column("ref", sql.Text),  # id of the decision, code of the issue, or secret of the study (core/streams)
    sql.Column("number", sql.Integer),  # step of a decision, number of a unit or issue, version of a policy
    sql.Column("key", sql.Text),  # idempotency key of the request
    sql.Column("at", sql.Text, nullable=False),
    sql.Column("request", sql.Text, nullable=False),
    sql.Column("answer", sql.Text, nullable=False),
)
sql.Index("once", journal.c.study, journal.c.kind, journal.c.key, unique=True)
sql.Index("steps", journal.c.study, journal.c.unit, journal.c.seq)
sql.Index("about_decision", journal.c.ref)
sql.Index("kinds", journal.c.study, journal.c.kind, journal.c.seq)
for kind, columns in {
    "decision": ("study", "unit", "number"),
    "unit": ("study", "number"),
    "study": ("study",),
}.items():
    only = journal.c.kind == kind
    unique = [journal.c[name] for name in columns]
    sql.Index(f"one_{kind}", *unique, unique=True, sqlite_where=only, postgresql_where=only)
snapshots = sql.Table(  # a cache of agents, so that not every event has to be read again
    "snapshots",
    metadata,
    sql.Column("study", sql.Text, primary_key=True),
    sql.Column("unit", sql.Text, primary_key=True),  # empty for a cohort
    sql.Column("seq", sql.BigInteger, nullable=False),
    sql.Column("made_by", sql.Text, nullable=False),
    sql.Column("state", sql.LargeBinary, nullable=False),
)
tokens = sql.Table(
    "tokens",
    metadata,
    sql.Column("id", sql.Text, primary_key=True),
    sql.Column("hash", sql.Text, nullable=False),
    sql.Column("study", sql.Text, nullable=False),  # * for all
    sql.Column("role", sql.Text, nullable=False),
    sql.Column("made", sql.Text, nullable=False),
    sql.Column("revoked", sql.Text),
)
sessions = sql.Table(  # of the page
    "sessions",
    metadata,
    sql.Column("hash", sql.Text, primary_key=True),
    sql.Column("token", sql.Text, nullable=False),
    sql.Column("ends", sql.Text, nullable=False),
)

APPEND_ONLY = {
    "sqlite": [
        f"CREATE TRIGGER IF NOT EXISTS no_{what.lower()} BEFORE {what} ON journal "
        "BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END"
        for what in ("UPDATE", "DELETE")
    ],
    "postgresql": [
        "CREATE OR REPLACE FUNCTION journal_is_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        "$$BEGIN RAISE EXCEPTION 'the journal is append-only'; END$$",
        "CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON journal "
        "EXECUTE FUNCTION journal_is_append_only()",
    ],
}
