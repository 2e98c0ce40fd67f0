"""Annotations of photographs: append-only, each by a person, with the state that it was based on."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select, update

from api.data_sets.definitions import classes_of, find_data_set
from api.data_sets.names import check_label
from api.data_sets.photograph_leases import check_not_leased_to_another
from api.data_sets.photographs import find_photograph
from api.data_sets.schemas import Annotation, AnnotationPage, Source
from api.data_sets.tables import data_set_annotations, data_set_photographs
from api.errors import RequestError
from api.http.number_text import MAX_PAGE_SIZE
from segdec.annotation_content import AnnotationContent

table, photographs = data_set_annotations.c, data_set_photographs.c


@dataclass(frozen=True)
class NewAnnotation:
    """An annotation to be added.

    Fields of `content` that were not set are as in the annotation that it is based on, so that a client does
    not delete what it does not know. `mask` is the digest of its file; None: no mask.
    """

    content: AnnotationContent
    mask: bytes | None
    source: Source
    author: str
    at: datetime


def annotate(
    connection: Connection,
    data_set_id: int,
    photograph_id: int,
    new: NewAnnotation,
    based_on: int | None,
    session: str | None = None,
    user: str | None = None,
) -> int:
    """Adds an annotation to a photograph; returns its id.

    A repeated request finds its own annotation and adds nothing. The row of the mask's file must exist.
    `based_on` is the latest annotation that the author has seen, `user` the author if one has logged in.

    Raises:
        RequestError: 404 if the photograph does not exist; 400 for an unknown label; 409 if it was removed,
            if another session has it open, except one of the user, or if somebody has added an annotation.
    """
    row = find_photograph(connection, data_set_id, photograph_id)
    if new.content.label is not None:
        check_label(new.content.label, classes_of(find_data_set(connection, data_set_id)))
    if row["removed_at"] is not None:
        raise RequestError(
            409,
            "photograph_removed",
            f"{row['removed_by'] or 'Somebody'} has removed the photograph '{row['name']}'. Add it again "
            "before you label it.",
        )
    check_not_leased_to_another(connection, row, session, new.at, user)
    content = _columns(connection, photograph_id, new, based_on)
    if row["annotation_id"] != based_on:
        return _repeated(connection, row, {**content, "author": new.author})
    values = {"photograph_id": photograph_id, "at": new.at, "author": new.author, "source": new.source}
    added = insert(data_set_annotations).returning(table.id)
    number: int = connection.execute(added, {**values, **content}).scalar_one()
    latest = update(data_set_photographs).where(photographs.id == photograph_id)
    connection.execute(latest.values(annotation_id=number, **content))
    return number


def _columns(
    connection: Connection, photograph_id: int, new: NewAnnotation, based_on: int | None
) -> dict[str, Any]:
    """Returns the content of a new annotation and its mask, by column.

    A field that was not sent stays; one about the mask does only with the same mask.
    """
    seen = select(data_set_annotations).where(table.id == based_on, table.photograph_id == photograph_id)
    row = connection.execute(seen).mappings().first()
    known: dict[str, Any] = {}
    if row is not None:
        before = AnnotationContent.model_validate(dict(row))
        known = (before if row["mask"] == new.mask else before.without_mask()).model_dump()
    content = AnnotationContent.model_validate({**known, **new.content.model_dump(exclude_unset=True)})
    if new.mask is None:
        content = content.without_mask()
    return {**content.model_dump(), "mask": new.mask}


def _repeated(connection: Connection, row: RowMapping, new: dict[str, Any]) -> int:
    """Returns the latest annotation if it equals the new one, given by column.

    Raises:
        RequestError: 409 `annotation_changed` otherwise.
    """
    found = "no annotation"
    if row["annotation_id"] is not None:
        statement = select(data_set_annotations).where(table.id == row["annotation_id"])
        latest = connection.execute(statement).mappings().one()
        if {name: latest[name] for name in new} == new:
            return int(latest["id"])
        found = f"the annotation {latest['id']} by {latest['author'] or 'somebody'}"
    raise RequestError(
        409,
        "annotation_changed",
        f"The photograph '{row['name']}' has {found} now, not the one that yours changes. Load it again, "
        "compare, and save yours.",
    )


def list_annotations(
    connection: Connection,
    data_set_id: int,
    photograph_id: int,
    before: int | None = None,
    limit: int = MAX_PAGE_SIZE,
) -> AnnotationPage:
    """Returns up to `limit` annotations of a photograph with ids below `before`, the newest first.

    Raises:
        RequestError: As `find_photograph`.
    """
    find_photograph(connection, data_set_id, photograph_id)
    statement = select(data_set_annotations).where(table.photograph_id == photograph_id)
    if before is not None:
        statement = statement.where(table.id < before)
    rows = connection.execute(statement.order_by(table.id.desc()).limit(limit + 1)).mappings().all()
    shown = [_make(row) for row in rows[:limit]]
    return AnnotationPage(annotations=shown, next_before=shown[-1].id if len(rows) > limit else None)


def _make(row: RowMapping) -> Annotation:
    return Annotation.model_validate({**row, "has_mask": row["mask"] is not None})


def find_mask(
    connection: Connection, data_set_id: int, photograph_id: int, annotation_id: int | None
) -> bytes:
    """Returns the digest of the mask of an annotation; None = the latest.

    Raises:
        RequestError: 404 if there is no such photograph, annotation or mask.
    """
    row = find_photograph(connection, data_set_id, photograph_id)
    mask = row["mask"]
    if annotation_id is not None:
        named = select(table.mask).where(table.id == annotation_id, table.photograph_id == photograph_id)
        mask = connection.execute(named).scalar()
    if mask is None:
        which = "no mask" if annotation_id is None else f"no annotation {annotation_id} with a mask"
        raise RequestError(404, "no_mask", f"The photograph '{row['name']}' has {which}.")
    return bytes(mask)
