"""Adds the reports that were made by schedule."""

from alembic import op

from api.records.tables import scheduled_reports

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Adds the table."""
    scheduled_reports.create(op.get_bind())
