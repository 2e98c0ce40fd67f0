"""Adds what messages are about, the delivered ones, and an index of inspections that were reviewed again."""

from alembic import op
from sqlalchemy import BigInteger, Column, Text, text

from api.records.tables import deliveries

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Adds columns, index and table; messages that wait already are not shown beside their inspection."""
    op.add_column("outbox", Column("record_id", BigInteger))
    op.add_column("outbox", Column("kind", Text))
    known = text("record_id IS NOT NULL")
    op.create_index("outbox_by_record", "outbox", ["record_id"], sqlite_where=known, postgresql_where=known)
    again = text("revision >= 2")
    op.create_index(
        "inspections_reviewed_again", "inspections", ["id"], sqlite_where=again, postgresql_where=again
    )
    op.create_index("failed_log_ins_by_time", "failed_log_ins", ["last_at"], if_not_exists=True)
    deliveries.create(op.get_bind())
