"""Adds the proposals of data sets."""

from alembic import op

from api.records.tables import data_set_proposal_runs, data_set_proposals

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Adds the tables."""
    data_set_proposal_runs.create(op.get_bind())
    data_set_proposals.create(op.get_bind())
