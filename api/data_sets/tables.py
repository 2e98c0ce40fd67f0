"""Tables of data sets: photographs, annotations, versions and proposals."""

from types import NoneType
from typing import Any, get_args

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

from api.database.append_only import reject_changes
from api.database.schema import Identity, UtcDateTime, metadata, partial_index
from segdec.annotation_content import AnnotationContent

ANNOTATIONS_DELETION = (
    "the list of annotations",
    "SELECT 1 FROM deleted_data_sets JOIN data_set_photographs ON data_set_id = deleted_data_sets.id "
    "WHERE data_set_photographs.id = OLD.photograph_id",
)
VERSIONS_DELETION = (
    "the list of versions",
    "SELECT 1 FROM deleted_data_sets WHERE deleted_data_sets.id = OLD.data_set_id",
)
"""Name in errors, and the query that finds a row if a row, `OLD`, may be deleted: with its data set."""

CONTENT_TYPES = {str: Text, bool: Boolean, int: BigInteger, float: Double}


def _content_columns() -> list[Column[Any]]:
    """Returns a column for each field of `AnnotationContent`, and one for the mask."""
    columns: list[Column[Any]] = []
    for name, field in AnnotationContent.model_fields.items():
        kinds = {*(get_args(field.annotation) or [field.annotation])}
        (kind,) = kinds - {NoneType}
        default = None if field.is_required() else field.default
        columns.append(Column(name, CONTENT_TYPES[kind], nullable=NoneType in kinds, default=default))
    mask = Column("mask", LargeBinary(32), ForeignKey("data_set_files.sha256"), doc="PNG; 255 = ignored area")
    return [columns[0], mask, *columns[1:]]


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
    *_content_columns(),  # of the latest annotation
    Column("annotation_id", BigInteger, doc="the latest annotation; null: never labelled"),
    Column("leased_to", Text, doc="session of the person who labels it"),
    Column("leased_until", UtcDateTime),
    Column("lease_person", Text),
    Column("split", Text, doc="that it came with, see `api.data_sets.splits`; null: none"),
    UniqueConstraint("data_set_id", "sha256", name="data_set_photographs_by_content"),
    UniqueConstraint("data_set_id", "name", name="data_set_photographs_by_name"),
    Index("data_set_photographs_by_data_set", "data_set_id", "id"),
    Index("data_set_photographs_by_label", "data_set_id", "removed_at", "label", "id"),
    partial_index("data_set_photographs_leased", "leased_to IS NOT NULL", "leased_to"),
    Index("data_set_photographs_by_file", "sha256"),
    partial_index("data_set_photographs_by_mask", "mask IS NOT NULL", "mask"),
    sqlite_autoincrement=True,
)

data_set_annotations = Table(
    "data_set_annotations",
    metadata,
    Column("id", Identity, primary_key=True, autoincrement=True),
    Column("photograph_id", BigInteger, ForeignKey("data_set_photographs.id"), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("author", Text, nullable=False),
    *_content_columns(),
    Column("source", Text, nullable=False, doc="drawn, imported, proposed or reviewed"),
    Index("data_set_annotations_by_photograph", "photograph_id", "id"),
    partial_index("data_set_annotations_by_mask", "mask IS NOT NULL", "mask"),
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
