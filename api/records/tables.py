"""The tables of the record. A change here needs a migration, which converts existing databases."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)

from api.records.append_only import ANNOTATIONS_DELETION, VERSIONS_DELETION, reject_changes

metadata = MetaData()

Identity = BigInteger().with_variant(Integer, "sqlite")
"""SQLite increments only INTEGER columns automatically."""


class UtcDateTime(TypeDecorator[datetime]):
    """A time in UTC: `timestamp with time zone`, or for SQLite a text that sorts in order of time."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Converts a time with a zone to UTC."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Adds the zone that SQLite does not store."""
        if value is None:
            return None
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _partial_index(name: str, condition: str, *columns: str) -> Index:
    where = text(condition)
    return Index(name, *columns, sqlite_where=where, postgresql_where=where)


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
    _partial_index("pictures_expiring", "state = 'expiring'", "sha256"),
    _partial_index("pictures_by_worth", "state = 'kept'", "worth", "stored_at"),
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
    Column("heat_map", LargeBinary, doc="PNG of the mask scores; deleted with the picture"),
    Index("inspections_by_station", "station", "id"),
    Index("inspections_by_label", "label", "id", "reviewed_label"),
    Index("inspections_by_station_and_label", "station", "label", "id", "reviewed_label"),
    Index("inspections_by_part", "part_id", "id"),
    Index("inspections_by_picture", "picture"),
    _partial_index("inspections_unusual", f"highest_distance >= {UNUSUAL_DISTANCE}", "id"),
    # Each contains all columns that its queries name, so that they read no row of the table.
    _partial_index("inspections_drawn", "draw < draw_probability", *DRAWN_COLUMNS),
    _partial_index("inspections_reviewed", "reviewed_label IS NOT NULL", "id", "station", "label"),
    _partial_index("inspections_reviewed_again", "revision >= 2", "id"),
    _partial_index("inspections_by_reviewer", "reviewer IS NOT NULL", "reviewer", "id"),
    _partial_index("inspections_by_reviewer_and_label", "reviewer IS NOT NULL", "reviewer", "label", "id"),
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

hours = Table(
    "hours",
    metadata,
    Column("hour", UtcDateTime, primary_key=True),
    Column("station", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("label", Text, primary_key=True),
    Column("count", Integer, nullable=False),
    Column("log_odds_sum", Double, nullable=False),
    Column("log_odds_squares", Double, nullable=False),
    Column("first_id", BigInteger, nullable=False),
    Column("last_id", BigInteger, nullable=False),
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
    Column("count", Integer, nullable=False),
    Column("log_odds_sum", Double, nullable=False),
    Column("log_odds_squares", Double, nullable=False),
    Column("first_id", BigInteger, nullable=False),
    Column("last_id", BigInteger, nullable=False),
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
    _partial_index("review_queue_leased", "leased_to IS NOT NULL", "leased_to"),
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

misses = Table(
    "misses",
    metadata,
    Column("id", Identity, primary_key=True, autoincrement=True),
    Column("missed_at", UtcDateTime, nullable=False),
    Column("station", Text, nullable=False, doc="empty if unknown"),
    Column("part_id", Text),
    Column("client", Text, nullable=False, doc="name of the API key; empty without one"),
    Column("status", Integer, nullable=False, doc="of HTTP"),
    Column("code", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("count", Integer, nullable=False, default=1, doc="photographs that this row counts"),
    Index("misses_by_time", "missed_at"),
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
    _partial_index("outbox_by_record", "record_id IS NOT NULL", "record_id"),
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

users = Table(
    "users",
    metadata,
    Column("name", Text, primary_key=True, doc="in lower case"),
    Column("role", Text, nullable=False),
    Column("is_screen", Boolean, nullable=False, doc="a screen logs in with a link and stays logged in"),
    Column("password", Text, doc="hash by Argon2id; null: logs in by a link or by OpenID Connect"),
    Column("subject", Text, unique=True, doc="issuer and subject of OpenID Connect"),
    Column("created_at", UtcDateTime, nullable=False),
)
"""People and screens that may log in to the pages."""

sessions = Table(
    "sessions",
    metadata,
    Column("token", LargeBinary(32), primary_key=True, doc="SHA-256 of the cookie"),
    Column("user", Text, ForeignKey("users.name", ondelete="CASCADE"), nullable=False),
    Column("csrf_token", Text, nullable=False),
    Column("logged_in_at", UtcDateTime, nullable=False),
    Column("token_at", UtcDateTime, nullable=False, doc="when this token was made"),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("is_replaced", Boolean, nullable=False, default=False, doc="by a newer token"),
    Index("sessions_by_user", "user"),
    Index("sessions_by_expiry", "expires_at"),
)

log_in_links = Table(
    "log_in_links",
    metadata,
    Column("token", LargeBinary(32), primary_key=True, doc="SHA-256 of the token in the link"),
    Column("user", Text, ForeignKey("users.name", ondelete="CASCADE"), nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
)
"""Links with which a screen logs in, once."""

failed_log_ins = Table(
    "failed_log_ins",
    metadata,
    Column("name", Text, primary_key=True, doc="as typed, known or not"),
    Column("count", Integer, nullable=False, doc="since the last success"),
    Column("last_at", UtcDateTime, nullable=False),
    Index("failed_log_ins_by_time", "last_at"),
)

changed_settings = Table(
    "changed_settings",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False, doc="JSON"),
    Column("who", Text, nullable=False),
    Column("at", UtcDateTime, nullable=False),
)
"""Settings that were changed while the service ran."""

scheduled_reports = Table(
    "scheduled_reports",
    metadata,
    Column("kind", Text, primary_key=True, doc="shift, day, week"),
    Column("begin", UtcDateTime, primary_key=True, doc="of the period"),
    Column("claimed_at", UtcDateTime, nullable=False, doc="when a replica began to make it"),
    Column("made_at", UtcDateTime, doc="null: not finished"),
)
"""Reports that were made at the end of a period, so that each is made once."""

# === Data sets ===

data_sets = Table(
    "data_sets",
    metadata,
    Column("id", Identity, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False, unique=True),
    Column("classes", Text, nullable=False, doc="JSON: classes of defects; the first has the mask value 1"),
    Column("created_at", UtcDateTime, nullable=False),
    Column("created_by", Text, nullable=False),
    sqlite_autoincrement=True,
)

deleted_data_sets = Table(
    "deleted_data_sets",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False, doc="it had; none has it again"),
    Column("name", Text, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("who", Text, nullable=False),
)
"""Data sets that were deleted; a row is added before the rows of the data set may be deleted."""

data_set_files = Table(
    "data_set_files",
    metadata,
    Column("sha256", LargeBinary(32), primary_key=True),
    Column("bytes", BigInteger, nullable=False),
    Column(
        "format", Text, nullable=False, doc="jpeg, png, … of photographs; png of masks; jsonl of manifests"
    ),
    Column("width", Integer, doc="of the upright photograph or mask, px"),
    Column("height", Integer),
    Column("thumbnail", LargeBinary, doc="JPEG of a photograph; null: not made yet"),
)
"""Files in the store of data sets: photographs, masks and manifests. A row is committed after its file."""

data_set_photographs = Table(
    "data_set_photographs",
    metadata,
    Column("id", Identity, primary_key=True, autoincrement=True),
    Column("data_set_id", BigInteger, ForeignKey("data_sets.id"), nullable=False),
    Column("sha256", LargeBinary(32), ForeignKey("data_set_files.sha256"), nullable=False),
    Column("name", Text, nullable=False),
    Column("part", Text, nullable=False, doc="photographs of a part stay in one split; empty: unknown"),
    Column("added_at", UtcDateTime, nullable=False),
    Column("added_by", Text, nullable=False),
    Column("record_id", BigInteger, doc="of the inspection that it comes from"),
    Column("removed_at", UtcDateTime, doc="null: not removed"),
    Column("removed_by", Text),
    Column("label", Text, doc="of the latest annotation: good, a class, or ignore; null: not labelled"),
    Column("mask", LargeBinary(32), ForeignKey("data_set_files.sha256"), doc="of the latest annotation"),
    Column("is_boxes", Boolean, nullable=False, default=False, doc="of the latest annotation"),
    Column("annotation_id", BigInteger, doc="the latest annotation; null: never labelled"),
    Column("leased_to", Text, doc="session of the person who labels it"),
    Column("leased_until", UtcDateTime),
    Column("lease_person", Text),
    Column("split", Text, doc="that it came with, see `api.data_sets.splits`; null: none"),
    UniqueConstraint("data_set_id", "sha256", name="data_set_photographs_by_content"),
    UniqueConstraint("data_set_id", "name", name="data_set_photographs_by_name"),
    Index("data_set_photographs_by_data_set", "data_set_id", "id"),
    Index("data_set_photographs_by_label", "data_set_id", "removed_at", "label", "id"),
    _partial_index("data_set_photographs_leased", "leased_to IS NOT NULL", "leased_to"),
    Index("data_set_photographs_by_file", "sha256"),
    _partial_index("data_set_photographs_by_mask", "mask IS NOT NULL", "mask"),
    sqlite_autoincrement=True,
)

data_set_annotations = Table(
    "data_set_annotations",
    metadata,
    Column("id", Identity, primary_key=True, autoincrement=True),
    Column("photograph_id", BigInteger, ForeignKey("data_set_photographs.id"), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("author", Text, nullable=False),
    Column("label", Text, doc="null: the label was withdrawn"),
    Column("mask", LargeBinary(32), ForeignKey("data_set_files.sha256"), doc="PNG; 255 = ignored area"),
    Column("is_boxes", Boolean, nullable=False, doc="the mask has rectangles around the defects"),
    Column("source", Text, nullable=False, doc="drawn, imported, proposed or reviewed"),
    Index("data_set_annotations_by_photograph", "photograph_id", "id"),
    _partial_index("data_set_annotations_by_mask", "mask IS NOT NULL", "mask"),
    sqlite_autoincrement=True,
)
"""Append-only: triggers reject changes, except the deletion with the whole data set."""
reject_changes(data_set_annotations, *ANNOTATIONS_DELETION)

data_set_versions = Table(
    "data_set_versions",
    metadata,
    Column("id", Identity, primary_key=True, autoincrement=True),
    Column("data_set_id", BigInteger, ForeignKey("data_sets.id"), nullable=False),
    Column("number", Integer, nullable=False, doc="1, 2, … of the data set"),
    Column("created_at", UtcDateTime, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column(
        "digest", LargeBinary(32), ForeignKey("data_set_files.sha256"), nullable=False, doc="of the manifest"
    ),
    Column("classes", Text, nullable=False, doc="JSON: those of the data set at that time"),
    Column("counts", Text, nullable=False, doc="JSON: numbers of photographs, masks and labels"),
    UniqueConstraint("data_set_id", "number", name="data_set_versions_by_number"),
    Index("data_set_versions_by_file", "digest"),
    sqlite_autoincrement=True,
)
"""Append-only: triggers reject changes, except the deletion with the whole data set."""
reject_changes(data_set_versions, *VERSIONS_DELETION)

data_set_imports = Table(
    "data_set_imports",
    metadata,
    Column("id", Identity, primary_key=True, autoincrement=True),
    Column("data_set_id", BigInteger, ForeignKey("data_sets.id"), nullable=False),
    Column("name", Text, nullable=False, doc="of the archive"),
    Column("started_at", UtcDateTime, nullable=False),
    Column("started_by", Text, nullable=False),
    Column("alive_at", UtcDateTime, nullable=False, doc="the service that runs it renews this time"),
    Column("state", Text, nullable=False, doc="running, done or failed"),
    Column("finished_at", UtcDateTime),
    Column("result", Text, nullable=False, doc="JSON: numbers of photographs, problems, the error"),
    Index("data_set_imports_by_data_set", "data_set_id", "id"),
    sqlite_autoincrement=True,
)
"""Archives of photographs that are added, or were, to a data set."""

data_set_checks = Table(
    "data_set_checks",
    metadata,
    Column("data_set_id", BigInteger, ForeignKey("data_sets.id"), primary_key=True, autoincrement=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("started_by", Text, nullable=False),
    Column("alive_at", UtcDateTime, nullable=False, doc="the service that runs it renews this time"),
    Column("state", Text, nullable=False, doc="running, done or failed"),
    Column("finished_at", UtcDateTime),
    Column("checked", Integer, nullable=False, doc="number of photographs"),
    Column("findings", Text, nullable=False, doc="JSON: kind, names, text and cause of each"),
    Column("error", Text),
    Column("error_cause", Text, doc="JSON: code and values of the error"),
)
"""The latest check of each data set."""

data_set_proposal_runs = Table(
    "data_set_proposal_runs",
    metadata,
    Column("data_set_id", BigInteger, ForeignKey("data_sets.id"), primary_key=True, autoincrement=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("started_by", Text, nullable=False),
    Column("alive_at", UtcDateTime, nullable=False, doc="the service that runs it renews this time"),
    Column("state", Text, nullable=False, doc="running, done or failed"),
    Column("finished_at", UtcDateTime),
    Column("model", Text, nullable=False, doc="name of the model"),
    Column("version", Text, nullable=False, doc="of the model"),
    Column("photographs", Integer, nullable=False, doc="number of those without a label at the start"),
    Column("done", Integer, nullable=False),
    Column("proposed", Integer, nullable=False),
    Column("left_out", Integer, nullable=False, doc="could not be inspected"),
    Column("problem", Text, doc="of the first photograph that was left out"),
    Column("problem_cause", Text, doc="JSON: code and values of the problem"),
    Column("error", Text),
    Column("error_cause", Text, doc="JSON: code and values of the error"),
)
"""The latest run of a model on the photographs of each data set."""

data_set_proposals = Table(
    "data_set_proposals",
    metadata,
    Column(
        "photograph_id",
        BigInteger,
        ForeignKey("data_set_photographs.id"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("data_set_id", BigInteger, ForeignKey("data_sets.id"), nullable=False),
    Column("made_at", UtcDateTime, nullable=False),
    Column("label", Text, doc="null: the model refused the photograph"),
    Column("score", Double),
    Column("distance", Double, doc="between score and threshold, in log-odds"),
    Column("reason", Text, nullable=False, doc="uncertain, unlike_training, different or sure"),
    Column("rank", Double, nullable=False, server_default="0", doc="the lowest one is labelled first"),
    Column("mask", LargeBinary, doc="PNG of class values; it goes with the row, unlike a stored file"),
    Column("model", Text, nullable=False),
    Column("version", Text, nullable=False),
    Index("data_set_proposals_by_rank", "data_set_id", "rank", "photograph_id"),
)
"""What a model says about photographs; never an annotation by itself."""

# === Training jobs ===

training_jobs = Table(
    "training_jobs",
    metadata,
    Column("id", Identity, primary_key=True, autoincrement=True),
    Column("model", Text, nullable=False, doc="name of the model"),
    Column("version", Text, nullable=False, doc="of the model"),
    Column("data_set_id", BigInteger, ForeignKey("data_sets.id"), nullable=False),
    Column("data_set_version", Integer, nullable=False),
    Column("settings", Text, nullable=False, doc="JSON"),
    Column("machines", Integer, nullable=False, server_default="1", doc="workers that train it together"),
    Column("retrain_of", BigInteger, doc="job from which it took over the settings"),
    Column("created_at", UtcDateTime, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("state", Text, nullable=False, doc="queued, leased, running, done, failed or cancelled"),
    Column("request", Text, doc="cancel or stop: what a person wants of the worker"),
    Column("attempts", Integer, nullable=False, doc="leases since the last checkpoint"),
    Column("worker", Text, doc="that has the job, or had it last"),
    Column("worker_key", Text, doc="name of its API key"),
    Column("lease", Text, doc="random token of the worker"),
    Column("leased_until", UtcDateTime),
    Column("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Column("reason", Text, doc="why it failed, or why the last attempt ended"),
    Column("progress", Text, doc="JSON: as the worker reports it"),
    Column("checkpoint", Text, doc="JSON: position and version; its files are in `training_files`"),
    Column("outcome", Text, doc="JSON: rating, metrics and thresholds of the model"),
    Column("used", Text, doc="JSON: who put the model into use, and when"),
    Column("panel", LargeBinary, doc="PNG of the latest predictions"),
    UniqueConstraint("model", "version", name="training_jobs_by_model"),
    Index("training_jobs_by_state", "state", "id"),
    sqlite_autoincrement=True,
)

proposal_orders = Table(
    "proposal_orders",
    metadata,
    Column("job_id", BigInteger, ForeignKey("training_jobs.id"), primary_key=True, autoincrement=False),
    Column("data_set_id", BigInteger, ForeignKey("data_sets.id"), nullable=False),
    Column("ordered_at", UtcDateTime, nullable=False),
    Column("ordered_by", Text, nullable=False),
    Column("state", Text, nullable=False, doc="waiting, started, ended or failed"),
    Column("starts", Integer, nullable=False, doc="runs that were started: one, unless the service stopped"),
    Column("run_started_at", UtcDateTime, doc="of the latest run; null: none was started"),
    Column("error", Text, doc="why no run was started"),
    Column("error_cause", Text, doc="JSON: code and values of the error"),
    Index("proposal_orders_by_data_set", "data_set_id", "job_id"),
    Index("proposal_orders_by_state", "state", "job_id"),
)
"""Trainings whose models propose labels when they are done."""

deleted_model_versions = Table(
    "deleted_model_versions",
    metadata,
    Column("model", Text, primary_key=True, doc="name of the model"),
    Column("version", Integer, nullable=False, doc="the highest one of a deleted job"),
)
"""Versions of models whose jobs were deleted, so that no other training gets one of them."""

training_events = Table(
    "training_events",
    metadata,
    Column("id", Identity, primary_key=True, autoincrement=True),
    Column("job_id", BigInteger, ForeignKey("training_jobs.id"), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("kind", Text, nullable=False, doc="state, metrics or output"),
    Column("content", Text, nullable=False, doc="JSON"),
    Index("training_events_by_job", "job_id", "id"),
    sqlite_autoincrement=True,
)
"""What happened in training jobs."""

training_workers = Table(
    "training_workers",
    metadata,
    Column("name", Text, primary_key=True),
    Column("key", Text, nullable=False, doc="name of its API key"),
    Column("version", Text, nullable=False, doc="of the product"),
    Column("machine", Text, nullable=False, doc="JSON: as the worker describes it"),
    Column("first_seen_at", UtcDateTime, nullable=False),
    Column("seen_at", UtcDateTime, nullable=False),
    Column("problem", Text, doc="why it gets no job"),
    Column("problem_cause", Text, doc="JSON: code and values of the problem"),
    Column("address", Text, doc="`host:port` at which other workers reach its trainings"),
    Column("waits_until", UtcDateTime, doc="until then it can become a member of a joint job"),
)

training_members = Table(
    "training_members",
    metadata,
    Column("job_id", BigInteger, ForeignKey("training_jobs.id"), primary_key=True, autoincrement=False),
    Column("rank", Integer, primary_key=True, autoincrement=False, doc="0: the chief"),
    Column("worker", Text, nullable=False),
    Column("worker_key", Text, nullable=False, doc="name of its API key"),
    Column("address", Text, nullable=False),
    Column("lease", Text, doc="random token; null: the worker has not fetched it yet"),
    Column("leased_until", UtcDateTime, nullable=False),
)
"""The workers that train a job together now; none for jobs of one worker."""

training_chunks = Table(
    "training_chunks",
    metadata,
    Column("sha256", LargeBinary(32), primary_key=True),
    Column("bytes", BigInteger, nullable=False),
    Column("stored_at", UtcDateTime, nullable=False, doc="when it last arrived"),
    Column("sent_by", Text, doc="name of the key that sent it; null: a checkpoint or a result had it since"),
    Index("training_chunks_by_sender", "sent_by"),
)
"""Parts of files in the store of training. A row is committed after its file."""

training_files = Table(
    "training_files",
    metadata,
    Column("job_id", BigInteger, ForeignKey("training_jobs.id"), primary_key=True, autoincrement=False),
    Column("kind", Text, primary_key=True, doc="checkpoint or result"),
    Column("path", Text, primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False, doc="of the chunk in the file"),
    Column("chunk", LargeBinary(32), ForeignKey("training_chunks.sha256"), nullable=False),
    Index("training_files_by_chunk", "chunk"),
)
"""Files of checkpoints and results, in chunks."""
