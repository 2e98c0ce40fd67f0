"""Adds the tables for the review queue, shadow predictions, photographs that were not inspected, and the
outbox.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

IDENTITY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)

DRAWN = """
INSERT INTO review_queue (record_id, priority, station)
SELECT id, CASE draw_reason WHEN 'chance' THEN 1 WHEN 'review' THEN 2 WHEN 'near' THEN 2 ELSE 3 END, station
FROM inspections JOIN pictures ON picture = sha256
WHERE draw < draw_probability AND reviewed_label IS NULL AND state = 'kept'
"""
"""Queues inspections that were sampled before this migration and still have a picture."""

HOURS = {
    "postgresql": "date_trunc('hour', inspected_at)",
    "sqlite": "strftime('%Y-%m-%d %H:00:00.000000', inspected_at)",
}
COUNTED = """
INSERT INTO draws (hour, station, draw_reason, draw_probability, count)
SELECT {hour}, station, draw_reason, draw_probability, count(*)
FROM inspections WHERE draw_reason IS NOT NULL GROUP BY 1, 2, 3, 4
"""
"""Counts inspections that were recorded before this migration, by sampling stratum."""


def upgrade() -> None:
    """Creates the tables and queues the sampled inspections."""
    if op.get_bind().dialect.name == "postgresql":  # a large record takes longer than a request may
        op.execute("SET LOCAL statement_timeout = 0")
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
    _count_draws()
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
    _index_filters()
    if op.get_bind().dialect.name == "sqlite":
        _put_hours_in_order()
    op.execute(DRAWN)


def _put_hours_in_order() -> None:
    """Keeps their rows in the index itself, as PostgreSQL cannot: a range of them is read in one go."""
    op.rename_table("hours", "hours_in_a_heap")
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
    op.execute("INSERT INTO hours SELECT * FROM hours_in_a_heap")
    op.drop_table("hours_in_a_heap")


def _index_filters() -> None:
    op.drop_index("inspections_by_label", "inspections")
    op.create_index("inspections_by_label", "inspections", ["label", "id", "reviewed_label"])
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


def _count_draws() -> None:
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
    op.execute(COUNTED.format(hour=HOURS[op.get_bind().dialect.name]))
    is_drawn = sa.text("draw < draw_probability")
    op.create_index(
        "inspections_drawn",
        "inspections",
        ["id", "inspected_at", "station", "draw", "draw_probability", "draw_reason", "reviewed_label"],
        sqlite_where=is_drawn,
        postgresql_where=is_drawn,
    )
