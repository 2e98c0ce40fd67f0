"""Inspections, their pictures, and who changed what."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

IDENTITY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)

KEPT = sa.text("state = 'kept'")

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
    """Makes the tables."""
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
    op.create_index("audit_by_record", "audit", ["record_id", "id"], unique=False)
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
    op.create_index(
        "pictures_by_worth",
        "pictures",
        ["worth", "stored_at"],
        unique=False,
        sqlite_where=KEPT,
        postgresql_where=KEPT,
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
        sa.ForeignKeyConstraint(
            ["picture"],
            ["pictures.sha256"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("part_key"),
        sa.UniqueConstraint("request_key"),
        sa.UniqueConstraint("token"),
        sqlite_autoincrement=True,
    )
    op.create_index("inspections_by_label", "inspections", ["label", "id"], unique=False)
    op.create_index("inspections_by_part", "inspections", ["part_id", "id"], unique=False)
    op.create_index("inspections_by_picture", "inspections", ["picture"], unique=False)
    op.create_index("inspections_by_station", "inspections", ["station", "id"], unique=False)
    if op.get_bind().dialect.name == "postgresql":
        op.execute(POSTGRESQL)
    else:
        for name, verb in (("is_not_updated", "UPDATE"), ("is_not_deleted", "DELETE")):
            op.execute(SQLITE.format(name=name, verb=verb, refusal=REFUSAL))
