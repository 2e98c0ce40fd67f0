"""Tables of training jobs, their workers and files."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

from api.database.schema import Identity, UtcDateTime, metadata

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
    Column("run_id", BigInteger, doc="job of the latest run; null: none was started"),
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
    Column("key", Text, primary_key=True, doc="name of its API key"),
    Column("name", Text, primary_key=True),
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
)
"""Parts of files in the store of training. A row is committed after its file."""

training_uploads = Table(
    "training_uploads",
    metadata,
    Column("job_id", BigInteger, ForeignKey("training_jobs.id"), primary_key=True, autoincrement=False),
    Column("chunk", LargeBinary(32), ForeignKey("training_chunks.sha256"), primary_key=True),
    Column("key", Text, nullable=False, doc="name of the API key that sent it"),
    Column("sent_at", UtcDateTime, nullable=False),
    Index("training_uploads_by_chunk", "chunk"),
    Index("training_uploads_by_key", "key"),
)
"""Chunks that workers have sent for a job, until its checkpoint or its result has them."""

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
