"""Adds the checks of data sets."""

from alembic import op

from api.records.tables import data_set_checks

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Adds the table."""
    data_set_checks.create(op.get_bind())
