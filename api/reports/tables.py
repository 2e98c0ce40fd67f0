"""The table of scheduled reports."""

from sqlalchemy import Column, Table, Text

from api.database.schema import UtcDateTime, metadata

scheduled_reports = Table(
    "scheduled_reports",
    metadata,
    Column("kind", Text, primary_key=True, doc="shift, day, week"),
    Column("begin", UtcDateTime, primary_key=True, doc="of the period"),
    Column("claimed_at", UtcDateTime, nullable=False, doc="when a replica began to make it"),
    Column("made_at", UtcDateTime, doc="null: not finished"),
)
"""Reports that were made at the end of a period, so that each is made once."""
