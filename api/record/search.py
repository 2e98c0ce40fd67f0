"""Searches the inspections, page by page."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Engine, RowMapping, func, literal_column, select

from api.record.filters import Filters, equal, id_range, in_period, without_index
from api.record.queries import LISTED_COLUMNS, with_pictures
from api.record.tables import UNUSUAL_DISTANCE, inspections, pictures, tags
from segdec.config import GOOD
from segdec.runtime.identifiers import NOT_INSPECTED, REVIEW

NOT_DEFECTIVE = (GOOD, REVIEW, NOT_INSPECTED)
"""Labels that are no class of a defect."""

MAX_NAMES = 1000
"""Names in an answer: clients choose them, so their number is unlimited."""
MAX_SEARCHED = 20_000
"""Names that a search by text reads."""


def list_inspections(
    connection: Connection,
    filters: Filters,
    before: int | None,
    limit: int,
    columns: Sequence[Column[Any]] = LISTED_COLUMNS,
) -> Sequence[RowMapping]:
    """Returns up to `limit` inspections with ids below `before`, the newest first."""
    is_narrow = filters.label is None and (filters.tag is not None or filters.part_id is not None)
    if filters.verdict != "defect" or is_narrow:
        return _list_label(connection, filters, before, limit, columns)
    # One query for each class: the index of labels is in the order of ids only for one label.
    labels = [filters.label] if filters.label else known_names(connection, inspections.c.label)
    of_class = [replace(filters, label=one, verdict=None) for one in labels if one not in NOT_DEFECTIVE]
    rows = [row for one in of_class for row in _list_label(connection, one, before, limit, columns)]
    return sorted(rows, key=lambda row: -row["id"])[:limit]


def _list_label(
    connection: Connection, filters: Filters, before: int | None, limit: int, columns: Sequence[Column[Any]]
) -> Sequence[RowMapping]:
    table = inspections.c
    statement = with_pictures(columns).where(*_equal(connection.dialect.name, filters))
    statement = statement.where(*equal(inspections, model=filters.model, version=filters.version))
    if filters.tag is not None:
        key, value = filters.tag
        statement = statement.join(tags, tags.c.record_id == table.id)
        statement = statement.where(tags.c.key == key, tags.c.value == value)
    if filters.reviewed is not None or filters.reviewer is not None:
        is_missing = table.reviewed_label.is_(None)
        statement = statement.where(is_missing if filters.reviewed is False else ~is_missing)
    if filters.min_distance is not None:
        # The index is used only for its own condition.
        unusual = table.highest_distance >= literal_column(str(UNUSUAL_DISTANCE))
        statement = statement.where(unusual, table.highest_distance >= filters.min_distance)
    if filters.with_picture:
        statement = statement.where(pictures.c.state == literal_column("'kept'"))
    number = table.id if filters.tag is None else tags.c.record_id
    if filters.since or filters.until or filters.version:
        first, last = id_range(connection, filters)
        before = min(last + 1, before or last + 1)  # with two bounds, SQLite would scan from the looser one
        statement = statement.where(number >= first, *in_period(table.inspected_at, filters))
    if before is not None:
        statement = statement.where(number < before)
    return connection.execute(statement.order_by(number.desc()).limit(limit)).mappings().all()


def _equal(dialect: str, filters: Filters) -> Iterator[ColumnElement[bool]]:
    """Yields the equality conditions; only the most selective column may use its index."""
    indexed = _indexed_columns(filters)
    if filters.verdict == "defect":
        yield without_index(dialect, inspections.c.label).not_in(NOT_DEFECTIVE)
    for name in ("station", "part_id", "label", "verdict", "reviewer"):
        value = getattr(filters, name)
        if value is not None and (name, value) != ("verdict", "defect"):
            column = inspections.c["label" if name == "verdict" else name]
            yield (column if column.name in indexed else without_index(dialect, column)) == value


def _indexed_columns(filters: Filters) -> tuple[str, ...]:
    if filters.part_id is not None:
        return ("part_id",)
    if filters.tag is not None:
        return ()
    if filters.reviewer is not None:
        return ("reviewer", "label")
    return () if filters.reviewed or filters.min_distance is not None else ("station", "label")


def inspection_pages(
    engine: Engine, filters: Filters, columns: Sequence[Column[Any]], rows_per_page: int
) -> Iterator[Sequence[RowMapping]]:
    """Yields pages of inspections, the newest first; those stored meanwhile are excluded.

    Each has a short transaction of its own.
    """
    with engine.connect() as connection:
        before = (connection.execute(select(func.max(inspections.c.id))).scalar() or 0) + 1
    while True:
        with engine.connect() as connection:
            rows = list_inspections(connection, filters, before, rows_per_page, columns)
        if rows:
            yield rows
        if len(rows) < rows_per_page:
            return
        before = rows[-1]["id"]


def known_names(
    connection: Connection, column: Column[Any], limit: int = MAX_NAMES, text: str = ""
) -> Sequence[str]:
    """Returns the first `limit` values of a column that begins an index, in their order; with a text only
    those that contain it, in upper or lower case, among the first `MAX_SEARCHED` values.

    Each is read from the index with a search for the next greater one, so that equal ones are skipped.
    """
    values = select(func.min(column).label("name")).where(column.is_not(None)).cte(recursive=True)
    following = select(func.min(column)).where(column > values.c.name).scalar_subquery()
    values = values.union_all(select(following).where(values.c.name.is_not(None)))
    names = select(values.c.name).where(values.c.name.is_not(None))
    if text:
        names = select(names.limit(MAX_SEARCHED).subquery().c.name)
        names = names.where(names.selected_columns.name.icontains(text, autoescape=True))
    return connection.execute(names.limit(limit)).scalars().all()
