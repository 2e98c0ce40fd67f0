"""Adds users, their sessions, links for screens, and failed attempts to log in."""

from alembic import op

from api.records.tables import failed_log_ins, log_in_links, sessions, users

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Adds the tables."""
    for table in (users, sessions, log_in_links, failed_log_ins):
        table.create(op.get_bind())
