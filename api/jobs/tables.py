"""The table of jobs."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Table, Text

from api.database.schema import Identity, UtcDateTime, metadata

jobs = Table(
    "jobs",
    metadata,
    Column("id", Identity, primary_key=True, autoincrement=True),
    Column("kind", Text, nullable=False, doc="name of its `JobKind`"),
    Column("data_set_id", BigInteger, ForeignKey("data_sets.id"), nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("started_by", Text, nullable=False),
    Column("alive_at", UtcDateTime, nullable=False, doc="the service that runs it renews this time"),
    Column("state", Text, nullable=False, doc="running, done or failed"),
    Column("finished_at", UtcDateTime),
    Column("progress", Text, nullable=False, doc="JSON: what it has done so far, by its kind"),
    Column("error", Text),
    Column("error_cause", Text, doc="JSON: code and values of the error"),
    Index("jobs_by_data_set", "data_set_id", "kind", "id"),
    sqlite_autoincrement=True,
)
