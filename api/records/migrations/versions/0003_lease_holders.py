"""Adds the reviewer and the client of a lease."""

from alembic import op
from sqlalchemy import Column, Text

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Adds the columns."""
    for name in ("lease_client", "lease_person"):
        op.add_column("review_queue", Column(name, Text))
