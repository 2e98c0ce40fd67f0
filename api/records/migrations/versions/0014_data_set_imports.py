"""Adds the list of archives that were imported into data sets."""

from alembic import op

from api.records.tables import data_set_imports

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Adds the table."""
    data_set_imports.create(op.get_bind())
