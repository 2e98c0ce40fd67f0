"""Adds the versions of models whose training jobs were deleted."""

from alembic import op

from api.records.tables import deleted_model_versions

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Adds the table."""
    deleted_model_versions.create(op.get_bind(), checkfirst=True)
