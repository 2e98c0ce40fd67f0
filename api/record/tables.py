"""The tables of the record. A change here needs a migration, which converts existing databases."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
)

from api.database.append_only import reject_changes
from api.database.schema import Identity, UtcDateTime, metadata, partial_index

store = Table(
    "store",
    metadata,
    Column("id", Text, primary_key=True, doc="the picture store has the same id"),
    Column("bytes", BigInteger, nullable=False, doc="size of all kept pictures"),
)

pictures = Table(
    "pictures",
    metadata,
    Column("sha256", LargeBinary(32), primary_key=True),
    Column("bytes", BigInteger, nullable=False),
    Column("format", Text, nullable=False, doc="jpeg, png, …, detected from the content"),
    Column("state", Text, nullable=False, doc="kept, expiring, expired or lost"),
    Column("worth", SmallInteger, nullable=False, doc="`RetentionClass`; the lowest is deleted first"),
    Column("stored_at", UtcDateTime, nullable=False, doc="when it last arrived"),
    Column("deleted_at", UtcDateTime, doc="null: not deleted, or by an earlier version"),
    Column("deleted_by", Text, doc="a person; null with `deleted_at`: the retention rules"),
    partial_index("pictures_expiring", "state = 'expiring'", "sha256"),
    partial_index("pictures_by_worth", "state = 'kept'", "worth", "stored_at"),
)

UNUSUAL_DISTANCE = 0.5
"""Distance to the training, as a multiple of its limit, from which photographs can be searched."""

DRAWN_COLUMNS = ("id", "inspected_at", "station", "draw", "draw_probability", "draw_reason", "reviewed_label")

inspections = Table(
    "inspections",
    metadata,
    Column("id", Identity, primary_key=True, autoincrement=True, doc="in the order of storing"),
    Column("token", LargeBinary(16), nullable=False, unique=True, doc="random id of the attempt to store it"),
    Column("request_key", LargeBinary(16), unique=True, doc="of `repeats`, from the Idempotency-Key"),
    Column("part_key", LargeBinary(16), unique=True, doc="of `repeats`, from part and verdict"),
    Column("inspected_at", UtcDateTime, nullable=False),
    Column("station", Text, nullable=False, doc="empty if not given"),
    Column("part_id", Text),
    Column("client", Text, nullable=False, doc="name of the API key; empty without one"),
    Column("picture", LargeBinary(32), ForeignKey("pictures.sha256"), nullable=False),
    Column("model", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("manifest_sha256", Text),
    Column("engine", Text, nullable=False),
    Column("label", Text, nullable=False, doc="the verdict: good, review, a defect class; or not_inspected"),
    Column("score", Double, nullable=False),
    Column("log_odds", Double, nullable=False),
    Column("threshold", Double, nullable=False),
    Column("review_threshold", Double),
    Column("draw", Double, doc="random number; queued for review if it is below the probability"),
    Column("draw_probability", Double, doc="sampling probability"),
    Column("draw_reason", Text),
    Column("reviewed_label", Text, doc="review: good, a defect class, or unsure"),
    Column("reviewed_at", UtcDateTime),
    Column("reviewer", Text),
    Column("revision", Integer, nullable=False, default=0, doc="number of changes of the review"),
    Column("answer", Text, nullable=False, doc="JSON: the answer without its mask, or the refusal"),
    Column("mask", Text, nullable=False, doc="JSON: run lengths of the mask"),
    Column("details", Text, nullable=False, doc="JSON: metadata of the client"),
    Column("review_reason", Text),
    Column("reviewed_mask", Text, doc="JSON: run lengths of the corrected mask"),
    Column("distances", Text, doc="JSON: of each measure to the training, as a multiple of its limit"),
    Column("highest_distance", Double, doc="of `distances`"),
    Column("unlike", Text, doc="JSON: base64 of the measures beyond their limits; null: none, or no verdict"),
    Column("heat_map", LargeBinary, doc="PNG of the mask scores; deleted with the picture"),
    Column("model_label", Text, doc="label of the model; null: no inspection plan decided"),
    Column("plan", Text, doc="name of the inspection plan that decided"),
    Column("plan_version", Integer),
    Column("plan_sha256", Text),
    Column("plan_severity", Text, doc="`Severity`: accept, note, review, reject or stop"),
    Column("plan_finding", Text, doc="why it decided so, with the measure; empty: no defect"),
    Index("inspections_by_station", "station", "id"),
    Index("inspections_by_label", "label", "id", "reviewed_label"),
    Index("inspections_by_station_and_label", "station", "label", "id", "reviewed_label"),
    Index("inspections_by_part", "part_id", "id"),
    Index("inspections_by_picture", "picture"),
    partial_index("inspections_unusual", f"highest_distance >= {UNUSUAL_DISTANCE}", "id"),
    # Each contains all columns that its queries name, so that they read no row of the table.
    partial_index("inspections_drawn", "draw < draw_probability", *DRAWN_COLUMNS),
    partial_index("inspections_reviewed", "reviewed_label IS NOT NULL", "id", "station", "label"),
    partial_index("inspections_reviewed_again", "revision >= 2", "id"),
    partial_index("inspections_by_reviewer", "reviewer IS NOT NULL", "reviewer", "id"),
    partial_index("inspections_by_reviewer_and_label", "reviewer IS NOT NULL", "reviewer", "label", "id"),
    sqlite_autoincrement=True,
)

is_sampled = inspections.c.draw < inspections.c.draw_probability

tags = Table(
    "tags",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, primary_key=True),
    Column("record_id", BigInteger, ForeignKey("inspections.id"), primary_key=True),
    sqlite_with_rowid=False,
)
"""Metadata of inspections that can be searched, for example lots; see `tagging`."""


def _sum_columns() -> Iterator[Column[Any]]:
    yield Column("count", Integer, nullable=False)
    for name in ("log_odds_sum", "log_odds_squares"):
        yield Column(name, Double, nullable=False)
    for name in ("first_id", "last_id"):
        yield Column(name, BigInteger, nullable=False)


hours = Table(
    "hours",
    metadata,
    Column("hour", UtcDateTime, primary_key=True),
    Column("station", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("label", Text, primary_key=True),
    *_sum_columns(),
    Index("hours_by_station", "station", "hour"),
    sqlite_with_rowid=False,  # all hours of a year are read in a third of the time
)
"""Inspections per hour and kind, so that sums over days do not count rows."""

hour_totals = Table(
    "hour_totals",
    metadata,
    Column("hour", UtcDateTime, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("label", Text, primary_key=True),
    *_sum_columns(),
    sqlite_with_rowid=False,
)
"""The table `hours` summed over the stations: fewer rows for what is about all of them."""

station_days = Table(
    "station_days",
    metadata,
    Column("day", UtcDateTime, primary_key=True, doc="begin, in UTC"),
    Column("station", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("label", Text, primary_key=True),
    Column("count", Integer, nullable=False),
    Index("station_days_by_station", "station", "day"),
    sqlite_with_rowid=False,
)
"""The table `hours` summed over days, for trends of a year."""

draws = Table(
    "draws",
    metadata,
    Column("hour", UtcDateTime, primary_key=True),
    Column("station", Text, primary_key=True),
    Column("draw_reason", Text, primary_key=True),
    Column("draw_probability", Double, primary_key=True),
    Column("count", Integer, nullable=False),
    sqlite_with_rowid=False,
)
"""Inspections per hour, sampling reason and probability, sampled or not."""

audit = Table(
    "audit",
    metadata,
    Column("id", Identity, primary_key=True, autoincrement=True),
    Column("at", UtcDateTime, nullable=False),
    Column("who", Text, nullable=False),
    Column("what", Text, nullable=False, doc="review, undo, promote, roll back, expire, …"),
    Column("record_id", BigInteger),
    Column("before", Text, doc="JSON"),
    Column("after", Text, doc="JSON"),
    Index("audit_by_record", "record_id", "id"),
    sqlite_autoincrement=True,
)
"""Append-only: triggers reject changes."""
reject_changes(audit, "the audit log")

review_queue = Table(
    "review_queue",
    metadata,
    Column("record_id", BigInteger, ForeignKey("inspections.id"), primary_key=True, autoincrement=False),
    Column("priority", SmallInteger, nullable=False, doc="the lowest is shown first"),
    Column("station", Text, nullable=False, doc="of the inspection"),
    Column("leased_to", Text, doc="session of the reviewer who looks at it"),
    Column("leased_until", UtcDateTime),
    Column("lease_client", Text, doc="key or address of the reviewer"),
    Column("lease_person", Text, doc="client and name of the reviewer"),
    Index("review_queue_by_priority", "priority", "record_id"),
    Index("review_queue_by_station", "station", "priority", "record_id"),
    partial_index("review_queue_leased", "leased_to IS NOT NULL", "leased_to"),
)
"""Inspections that wait for a review, and only these, so that the next one is found fast in any record."""

shadows = Table(
    "shadows",
    metadata,
    Column("id", Identity, primary_key=True, autoincrement=True),
    Column("record_id", BigInteger, ForeignKey("inspections.id"), nullable=False),
    Column("model", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("manifest_sha256", Text),
    Column("inspected_at", UtcDateTime, nullable=False),
    Column("label", Text, nullable=False),
    Column("score", Double, nullable=False),
    Column("log_odds", Double, nullable=False),
    Column("differs", Boolean, nullable=False, doc="from the verdict that was answered"),
    Index("shadows_by_record", "record_id"),
    Index("shadows_by_candidate", "model", "version", "manifest_sha256", "differs", "record_id"),
    sqlite_autoincrement=True,
)
"""Predictions of candidates in shadow mode."""

uninspected = Table(
    "uninspected",
    metadata,
    Column("id", Identity, primary_key=True, autoincrement=True),
    Column("at", UtcDateTime, nullable=False),
    Column("station", Text, nullable=False, doc="empty if unknown"),
    Column("part_id", Text),
    Column("client", Text, nullable=False, doc="name of the API key; empty without one"),
    Column("status", Integer, nullable=False, doc="of HTTP"),
    Column("code", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("count", Integer, nullable=False, default=1, doc="photographs that this row counts"),
    Index("uninspected_by_time", "at"),
    sqlite_autoincrement=True,
)
"""Photographs that arrived and were not inspected."""

outbox = Table(
    "outbox",
    metadata,
    Column("id", Identity, primary_key=True, autoincrement=True),
    Column("sink", Text, nullable=False, doc="receiver"),
    Column("station", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("event", Text, nullable=False, doc="JSON of the CloudEvent"),
    Column("state", Text, nullable=False, doc="waiting or dead; delivered events are deleted"),
    Column("attempts", Integer, nullable=False),
    Column("next_at", UtcDateTime, nullable=False, doc="earliest time of the next attempt"),
    Column("error", Text, doc="of the last attempt"),
    Column("record_id", BigInteger, doc="of the inspection; null: the event is about none"),
    Column("kind", Text, doc="inspected, reviewed or not_inspected"),
    Index("outbox_by_station", "sink", "state", "station", "id"),
    partial_index("outbox_by_record", "record_id IS NOT NULL", "record_id"),
    sqlite_autoincrement=True,
)
"""Events to be sent, written in the transaction of the change they report."""

deliveries = Table(
    "deliveries",
    metadata,
    Column("record_id", BigInteger, primary_key=True),
    Column("message_id", BigInteger, primary_key=True, doc="of the outbox"),
    Column("sink", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("delivered_at", UtcDateTime, nullable=False),
    sqlite_with_rowid=False,
)
"""Events about inspections that were delivered."""

changed_settings = Table(
    "changed_settings",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False, doc="JSON"),
    Column("who", Text, nullable=False),
    Column("at", UtcDateTime, nullable=False),
)
"""Settings that were changed while the service ran."""
