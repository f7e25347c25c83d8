"""The tables of a ledger and the triggers that keep them append-only.

``ledger_entries`` holds the chain. ``ledger_head`` holds one row, the number and hash of the last
entry: it is what PostgreSQL locks while a charge is decided, and a second witness when the tail
of the chain is cut off. Where the data has parts, ``ledger_parts`` says which charges were about a
part, so that its newest one is found at once; the sums are in the chain. The triggers are a seat
belt against accidents (a stray UPDATE, a clean-up job); who can drop tables can drop triggers, and
for that there is the hash chain.
"""

from collections.abc import Iterable

from sqlalchemy import BigInteger, CheckConstraint, Column, Integer, MetaData, SmallInteger, String, Table, Text

__all__ = [
    "DIVIDED_FORMAT",
    "DIVIDED_TABLES",
    "DIVIDED_TRIGGERS",
    "ENTRIES",
    "FORMAT",
    "HEAD",
    "PARTS",
    "TABLES",
    "TRIGGERS",
    "postgresql_triggers",
    "sqlite_triggers",
]

FORMAT = 1
"""The version of this layout."""
DIVIDED_FORMAT = 2
"""The version with ``ledger_parts``, which only a ledger of data with parts has; all others stay as they were."""

TABLES = MetaData()
DIVIDED_TABLES = MetaData()
_COUNTER = BigInteger().with_variant(Integer, "sqlite")

ENTRIES = Table(
    "ledger_entries",
    TABLES,
    Column("sequence", _COUNTER, primary_key=True, autoincrement=False),
    Column("hash", String(64), nullable=False, unique=True),
    Column("kind", String(16), nullable=False),
    Column("charge", _COUNTER, unique=True, comment="the charge that a release belongs to"),
    Column("request", Text, index=True, comment="the caller's name for a repeatable request"),
    Column("body", Text, nullable=False, comment="canonical JSON, the text that is hashed"),
)
HEAD = Table(
    "ledger_head",
    TABLES,
    Column("one", SmallInteger, CheckConstraint("one = 1"), primary_key=True, autoincrement=False),
    Column("sequence", _COUNTER, nullable=False),
    Column("hash", String(64), nullable=False),
)
PARTS = Table(
    "ledger_parts",
    DIVIDED_TABLES,
    Column("part", String(64), primary_key=True, comment="SHA-256 of the label of a part"),
    Column("sequence", _COUNTER, primary_key=True, autoincrement=False, comment="a charge about that part"),
)
DIVIDED_TRIGGERS = frozenset({"ledger_parts_insert", "ledger_parts_update", "ledger_parts_delete"})
TRIGGERS = frozenset(
    {
        "ledger_entries_insert",
        "ledger_entries_update",
        "ledger_entries_delete",
        "ledger_head_update",
        "ledger_head_delete",
    }
)


def sqlite_triggers(*, divided: bool) -> Iterable[str]:
    """The statements that create the triggers on SQLite, those of ``ledger_parts`` included if there is one."""
    refuse = "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"
    # Checking the number on insert also closes INSERT OR REPLACE, which deletes without firing DELETE triggers.
    next_one = "COALESCE((SELECT sequence + 1 FROM ledger_head), 0)"
    yield (
        "CREATE TRIGGER ledger_entries_insert BEFORE INSERT ON ledger_entries "
        f"WHEN NEW.sequence IS NOT {next_one} {refuse}"
    )
    yield f"CREATE TRIGGER ledger_entries_update BEFORE UPDATE ON ledger_entries {refuse}"
    yield f"CREATE TRIGGER ledger_entries_delete BEFORE DELETE ON ledger_entries {refuse}"
    yield (
        "CREATE TRIGGER ledger_head_update BEFORE UPDATE ON ledger_head "
        f"WHEN NEW.sequence IS NOT OLD.sequence + 1 {refuse}"
    )
    yield f"CREATE TRIGGER ledger_head_delete BEFORE DELETE ON ledger_head {refuse}"
    if divided:
        yield (
            "CREATE TRIGGER ledger_parts_insert BEFORE INSERT ON ledger_parts "
            f"WHEN NEW.sequence IS NOT {next_one} {refuse}"
        )
        yield f"CREATE TRIGGER ledger_parts_update BEFORE UPDATE ON ledger_parts {refuse}"
        yield f"CREATE TRIGGER ledger_parts_delete BEFORE DELETE ON ledger_parts {refuse}"


def postgresql_triggers(*, divided: bool) -> Iterable[str]:
    """The statements that create the triggers on PostgreSQL, those of ``ledger_parts`` included if there is one."""
    yield (
        "CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'a ledger is append-only'; END $$"
    )
    yield (
        "CREATE FUNCTION ledger_next() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN IF NEW.sequence IS DISTINCT FROM COALESCE((SELECT sequence + 1 FROM ledger_head), 0) "
        "THEN RAISE EXCEPTION 'a ledger is append-only'; END IF; RETURN NEW; END $$"
    )
    yield (
        "CREATE TRIGGER ledger_entries_insert BEFORE INSERT ON ledger_entries "
        "FOR EACH ROW EXECUTE FUNCTION ledger_next()"
    )
    yield (
        "CREATE TRIGGER ledger_entries_update BEFORE UPDATE ON ledger_entries "
        "FOR EACH ROW EXECUTE FUNCTION ledger_refuse()"
    )
    yield (
        "CREATE TRIGGER ledger_entries_delete BEFORE DELETE OR TRUNCATE ON ledger_entries "
        "FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()"
    )
    yield (
        "CREATE TRIGGER ledger_head_update BEFORE UPDATE ON ledger_head FOR EACH ROW "
        "WHEN (NEW.sequence IS DISTINCT FROM OLD.sequence + 1) EXECUTE FUNCTION ledger_refuse()"
    )
    yield (
        "CREATE TRIGGER ledger_head_delete BEFORE DELETE OR TRUNCATE ON ledger_head "
        "FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()"
    )
    if divided:
        yield (
            "CREATE TRIGGER ledger_parts_insert BEFORE INSERT ON ledger_parts "
            "FOR EACH ROW EXECUTE FUNCTION ledger_next()"
        )
        yield (
            "CREATE TRIGGER ledger_parts_update BEFORE UPDATE ON ledger_parts "
            "FOR EACH ROW EXECUTE FUNCTION ledger_refuse()"
        )
        yield (
            "CREATE TRIGGER ledger_parts_delete BEFORE DELETE OR TRUNCATE ON ledger_parts "
            "FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()"
        )
