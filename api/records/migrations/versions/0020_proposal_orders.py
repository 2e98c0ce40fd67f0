"""Adds the trainings after which labels are proposed."""

from alembic import op

from api.records.tables import proposal_orders

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Adds the table."""
    proposal_orders.create(op.get_bind())
