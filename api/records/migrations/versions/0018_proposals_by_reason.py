"""Replaces the index of proposals by one in the order in which photographs are labelled."""

from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Replaces the index; 0017 creates the tables as they are now, so a new database has it already."""
    op.execute("DROP INDEX IF EXISTS data_set_proposals_by_data_set")
    op.execute(
        "CREATE INDEX IF NOT EXISTS data_set_proposals_by_reason "
        "ON data_set_proposals (data_set_id, reason, distance, photograph_id)"
    )
