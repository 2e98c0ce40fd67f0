"""Creates the tables of the first release."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
"""Databases of the development versions have this revision. Revision 0001 was never released."""
down_revision = None

IDENTITY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)

REFUSAL = "the audit log is append-only"
SQLITE = """
CREATE TRIGGER audit_{name} BEFORE {verb} ON audit
BEGIN SELECT RAISE(ABORT, '{refusal}'); END
"""
POSTGRESQL = f"""
CREATE FUNCTION refuse_to_change_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '{REFUSAL}'; END $$;
CREATE TRIGGER audit_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_audit()
"""


def upgrade() -> None:
    """Creates the tables."""
    _create_inspections()
    _create_inspection_indexes()
    _create_review_tables()
    _create_line_tables()
    if op.get_bind().dialect.name == "postgresql":
        op.execute(POSTGRESQL)
    else:
        for name, verb in (("is_not_updated", "UPDATE"), ("is_not_deleted", "DELETE")):
            op.execute(SQLITE.format(name=name, verb=verb, refusal=REFUSAL))


def _create_inspections() -> None:
    op.create_table(
        "audit",
        sa.Column("id", IDENTITY, autoincrement=True, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("record_id", sa.BigInteger(), nullable=True),
        sa.Column("before", sa.Text(), nullable=True),
        sa.Column("after", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("audit_by_record", "audit", ["record_id", "id"])
    op.create_table(
        "hours",
        sa.Column("hour", MOMENT, nullable=False),
        sa.Column("station", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("log_odds_sum", sa.Double(), nullable=False),
        sa.Column("log_odds_squares", sa.Double(), nullable=False),
        sa.Column("first_id", sa.BigInteger(), nullable=False),
        sa.Column("last_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hour", "station", "model", "version", "label"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "pictures",
        sa.Column("sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("worth", sa.SmallInteger(), nullable=False),
        sa.Column("stored_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("sha256"),
    )
    expiring = sa.text("state = 'expiring'")
    op.create_index(
        "pictures_expiring", "pictures", ["sha256"], sqlite_where=expiring, postgresql_where=expiring
    )
    kept = sa.text("state = 'kept'")
    op.create_index(
        "pictures_by_worth", "pictures", ["worth", "stored_at"], sqlite_where=kept, postgresql_where=kept
    )
    op.create_table(
        "store",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "inspections",
        sa.Column("id", IDENTITY, autoincrement=True, nullable=False),
        sa.Column("token", sa.LargeBinary(length=16), nullable=False),
        sa.Column("request_key", sa.LargeBinary(length=16), nullable=True),
        sa.Column("part_key", sa.LargeBinary(length=16), nullable=True),
        sa.Column("inspected_at", MOMENT, nullable=False),
        sa.Column("station", sa.Text(), nullable=False),
        sa.Column("part_id", sa.Text(), nullable=True),
        sa.Column("client", sa.Text(), nullable=False),
        sa.Column("picture", sa.LargeBinary(length=32), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("manifest_sha256", sa.Text(), nullable=True),
        sa.Column("engine", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("log_odds", sa.Double(), nullable=False),
        sa.Column("threshold", sa.Double(), nullable=False),
        sa.Column("review_threshold", sa.Double(), nullable=True),
        sa.Column("draw", sa.Double(), nullable=True),
        sa.Column("draw_probability", sa.Double(), nullable=True),
        sa.Column("draw_reason", sa.Text(), nullable=True),
        sa.Column("reviewed_label", sa.Text(), nullable=True),
        sa.Column("reviewed_at", MOMENT, nullable=True),
        sa.Column("reviewer", sa.Text(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("mask", sa.Text(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("review_reason", sa.Text(), nullable=True),
        sa.Column("reviewed_mask", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["picture"], ["pictures.sha256"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("part_key"),
        sa.UniqueConstraint("request_key"),
        sa.UniqueConstraint("token"),
        sqlite_autoincrement=True,
    )


def _create_inspection_indexes() -> None:
    op.create_index("inspections_by_label", "inspections", ["label", "id", "reviewed_label"])
    op.create_index("inspections_by_part", "inspections", ["part_id", "id"])
    op.create_index("inspections_by_picture", "inspections", ["picture"])
    op.create_index("inspections_by_station", "inspections", ["station", "id"])
    op.create_index(
        "inspections_by_station_and_label", "inspections", ["station", "label", "id", "reviewed_label"]
    )
    reviewed = sa.text("reviewed_label IS NOT NULL")
    op.create_index(
        "inspections_reviewed",
        "inspections",
        ["id", "station", "label"],
        sqlite_where=reviewed,
        postgresql_where=reviewed,
    )
    is_sampled = sa.text("draw < draw_probability")
    op.create_index(
        "inspections_drawn",
        "inspections",
        ["id", "inspected_at", "station", "draw", "draw_probability", "draw_reason", "reviewed_label"],
        sqlite_where=is_sampled,
        postgresql_where=is_sampled,
    )


def _create_review_tables() -> None:
    op.create_table(
        "review_queue",
        sa.Column("record_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("priority", sa.SmallInteger(), nullable=False),
        sa.Column("station", sa.Text(), nullable=False),
        sa.Column("leased_to", sa.Text(), nullable=True),
        sa.Column("leased_until", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(["record_id"], ["inspections.id"]),
        sa.PrimaryKeyConstraint("record_id"),
    )
    op.create_index("review_queue_by_priority", "review_queue", ["priority", "record_id"])
    op.create_index("review_queue_by_station", "review_queue", ["station", "priority", "record_id"])
    op.create_index(
        "review_queue_leased",
        "review_queue",
        ["leased_to"],
        sqlite_where=sa.text("leased_to IS NOT NULL"),
        postgresql_where=sa.text("leased_to IS NOT NULL"),
    )
    op.create_table(
        "shadows",
        sa.Column("id", IDENTITY, autoincrement=True, nullable=False),
        sa.Column("record_id", sa.BigInteger(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("manifest_sha256", sa.Text(), nullable=True),
        sa.Column("inspected_at", MOMENT, nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("log_odds", sa.Double(), nullable=False),
        sa.Column("differs", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["record_id"], ["inspections.id"]),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("shadows_by_record", "shadows", ["record_id"])
    op.create_index(
        "shadows_by_candidate", "shadows", ["model", "version", "manifest_sha256", "differs", "record_id"]
    )
    op.create_table(
        "draws",
        sa.Column("hour", MOMENT, nullable=False),
        sa.Column("station", sa.Text(), nullable=False),
        sa.Column("draw_reason", sa.Text(), nullable=False),
        sa.Column("draw_probability", sa.Double(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("hour", "station", "draw_reason", "draw_probability"),
        sqlite_with_rowid=False,
    )


def _create_line_tables() -> None:
    op.create_table(
        "misses",
        sa.Column("id", IDENTITY, autoincrement=True, nullable=False),
        sa.Column("missed_at", MOMENT, nullable=False),
        sa.Column("station", sa.Text(), nullable=False),
        sa.Column("part_id", sa.Text(), nullable=True),
        sa.Column("client", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("misses_by_time", "misses", ["missed_at"])
    op.create_table(
        "outbox",
        sa.Column("id", IDENTITY, autoincrement=True, nullable=False),
        sa.Column("sink", sa.Text(), nullable=False),
        sa.Column("station", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", MOMENT, nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("outbox_by_station", "outbox", ["sink", "state", "station", "id"])
