"""Adds the settings that were changed while the service ran."""

from alembic import op

from api.records.tables import changed_settings

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Adds the table."""
    changed_settings.create(op.get_bind())
