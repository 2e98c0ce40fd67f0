"""Photographs of a data set: added, restored, removed, listed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, insert, or_, select, update

from api.data_sets.definitions import find_data_set
from api.data_sets.names import printable
from api.data_sets.new_file import NewFile
from api.data_sets.schemas import PhotographPage, Proposal, StoredPhotograph
from api.data_sets.tables import data_set_files, data_set_photographs, data_set_proposals
from api.errors import RequestError
from api.record.queries import add_audit_entry
from api.review.leases import is_free
from segdec.data_set_schemas import KnownPhotograph, MissingPhotographs, Split

NAME_DIGITS = 32
"""Hex digits of the digest in the name of a photograph that has none."""
MAX_NAME = 256
"""Characters of a name; `datasets` names photographs by their path below the root."""
COPY_DIGITS = 12
"""Characters at most that make a name unique."""
FACTS = ("bytes", "format", "width", "height")
PROPOSED = ("label", "score", "model", "version", "reason")
table, proposals = data_set_photographs.c, data_set_proposals.c

LabelState = Literal["unlabelled", "labelled", "corrected"]
STATE_DESCRIPTION = "corrected: labelled otherwise than the latest run of a model proposed"
LABEL_DESCRIPTION = "of the latest annotation; with the state unlabelled: proposed by a model"
State = Literal[LabelState, "removed"]


@dataclass(frozen=True)
class NewPhotograph:
    """A photograph to be added.

    An empty name becomes one from its content; if another photograph has the name, a number is appended.
    Photographs of one part stay in one split. `record_id` is the inspection that it comes from.
    """

    file: NewFile
    name: str = ""
    part: str = ""
    record_id: int | None = None
    split: Split | None = None


@dataclass(frozen=True)
class AddedPhotograph:
    """A photograph of the data set after it was added."""

    id: int
    outcome: Literal["added", "restored", "present"]


def add_photograph(
    connection: Connection, data_set_id: int, new: NewPhotograph, who: str, now: datetime
) -> AddedPhotograph:
    """Adds a photograph, or restores it if it was removed; one that is present stays as it is, except that it
    gets a split if it has none.

    The file's row must exist: see `DataSetStore.write`.

    Raises:
        RequestError: 404 if the data set does not exist.
    """
    data_set = find_data_set(connection, data_set_id)
    known = select(table.id, table.name, table.removed_at, table.split).where(
        table.data_set_id == data_set_id, table.sha256 == new.file.sha256
    )
    if (stored := connection.execute(known).first()) is not None:
        if stored.split is None and new.split is not None:
            same = update(data_set_photographs).where(table.id == stored.id)
            connection.execute(same.values(split=new.split))
        if stored.removed_at is None:
            return AddedPhotograph(stored.id, "present")
        restored = update(data_set_photographs).where(table.id == stored.id)
        connection.execute(restored.values(removed_at=None, removed_by=None))
        after = {"data_set": data_set["name"], "name": stored.name}
        add_audit_entry(connection, who, "restore a photograph", after=after)
        return AddedPhotograph(stored.id, "restored")
    row = {
        "data_set_id": data_set_id,
        "sha256": new.file.sha256,
        "name": _free_name(connection, data_set_id, new),
        "part": printable(new.part),
        "added_at": now,
        "added_by": who,
        "record_id": new.record_id,
        "split": new.split,
    }
    number = connection.execute(insert(data_set_photographs).returning(table.id), row).scalar_one()
    return AddedPhotograph(number, "added")


def _free_name(connection: Connection, data_set_id: int, new: NewPhotograph) -> str:
    """Returns the name of a new photograph, with a number if another one has it."""
    wanted = printable(new.name)[:MAX_NAME].strip() or new.file.sha256.hex()[:NAME_DIGITS]
    ours = select(table.name).where(table.data_set_id == data_set_id)
    if connection.execute(ours.where(table.name == wanted)).first() is None:
        return wanted
    begin = wanted[: MAX_NAME - COPY_DIGITS]
    taken = set(connection.execute(ours.where(table.name.startswith(begin, autoescape=True))).scalars())
    return next(name for n in range(2, len(taken) + 3) if (name := f"{begin} ({n})") not in taken)


def remove_photograph(
    connection: Connection, data_set_id: int, photograph_id: int, who: str, now: datetime
) -> None:
    """Removes a photograph; its annotations and its file stay, because versions name them.

    Raises:
        RequestError: 404 if it does not exist.
    """
    row = find_photograph(connection, data_set_id, photograph_id)
    if row["removed_at"] is None:
        removed = update(data_set_photographs).where(table.id == photograph_id)
        connection.execute(removed.values(removed_at=now, removed_by=who, leased_to=None, leased_until=None))
        before = {"data_set": find_data_set(connection, data_set_id)["name"], "name": row["name"]}
        add_audit_entry(connection, who, "remove a photograph", before=before)


def find_photograph(
    connection: Connection, data_set_id: int, photograph_id: int, now: datetime | None = None
) -> RowMapping:
    """Returns the row of a photograph with the columns of `_with_files`.

    Raises:
        RequestError: 404 if the data set does not have it.
    """
    statement = _with_files(now).where(table.data_set_id == data_set_id, table.id == photograph_id)
    row = connection.execute(statement).mappings().first()
    if row is None:
        find_data_set(connection, data_set_id)
        raise RequestError(
            404,
            "photograph_not_found",
            f"The data set {data_set_id} has no photograph {photograph_id}. Check the number.",
        )
    return row


def show_photograph(
    connection: Connection, data_set_id: int, photograph_id: int, now: datetime
) -> StoredPhotograph:
    """Returns the answer about a photograph; raises as `find_photograph`."""
    return _make_photograph(find_photograph(connection, data_set_id, photograph_id, now))


def _with_files(now: datetime | None) -> Select[Any]:
    """Selects photographs with facts about their files; with `now`, also whether they are open, and what a
    model proposes.
    """
    facts = [data_set_files.c[name] for name in FACTS]
    joined = data_set_files.c.sha256 == table.sha256
    selected = select(data_set_photographs, *facts).join_from(data_set_photographs, data_set_files, joined)
    if now is None:
        return selected
    proposed = [proposals[name].label(f"proposed_{name}") for name in PROPOSED]
    has_mask = proposals.mask.is_not(None).label("proposed_has_mask")
    selected = selected.outerjoin(data_set_proposals, proposals.photograph_id == table.id)
    return selected.add_columns((~is_free(table.leased_until, now)).label("is_open"), *proposed, has_mask)


@dataclass(frozen=True)
class PhotographFilters:
    """Filters of a list; None = any.

    Without a state, removed photographs are left out. The label is that of the latest annotation or, of
    unlabelled photographs, the proposed one; `search` is a piece of the name or of the part, in any case.
    """

    state: State | None = None
    label: str | None = None
    search: str | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """Returns conditions on the rows of photographs."""
        proposed = select(proposals.label).where(proposals.photograph_id == table.id)
        proposed_label = proposed.correlate(data_set_photographs).scalar_subquery()
        is_removed = table.removed_at.is_not(None)
        chosen: list[ColumnElement[bool]] = [is_removed if self.state == "removed" else ~is_removed]
        if self.state == "unlabelled":
            chosen.append(table.label.is_(None))
        elif self.state in ("labelled", "corrected"):
            chosen.append(table.label.is_not(None))
        if self.state == "corrected":
            chosen.append(proposed_label != table.label)
        if self.label is not None:
            label = proposed_label if self.state == "unlabelled" else table.label
            chosen.append(label == self.label)
        if self.search:
            columns = (table.name, table.part)
            chosen.append(or_(*(column.icontains(self.search, autoescape=True) for column in columns)))
        return chosen


def list_photographs(
    connection: Connection,
    data_set_id: int,
    filters: PhotographFilters,
    after: int,
    limit: int,
    now: datetime,
) -> PhotographPage:
    """Returns up to `limit` photographs with ids above `after`, in the order in which they were added.

    Raises:
        RequestError: 404 if the data set does not exist.
    """
    find_data_set(connection, data_set_id)
    statement = _with_files(now).where(table.data_set_id == data_set_id, table.id > after)
    statement = statement.where(*filters.conditions())
    rows = connection.execute(statement.order_by(table.id).limit(limit + 1)).mappings().all()
    shown = [_make_photograph(row) for row in rows[:limit]]
    return PhotographPage(photographs=shown, next_after=shown[-1].id if len(rows) > limit else None)


def _make_photograph(row: RowMapping) -> StoredPhotograph:
    others = {
        "sha256": bytes(row["sha256"]).hex(),
        "has_mask": row["mask"] is not None,
        "proposal": _make_proposal(row),
        "opened_by": row["lease_person"] if row["is_open"] else None,
    }
    return StoredPhotograph.model_validate({**row, **others})


def _make_proposal(row: RowMapping) -> Proposal | None:
    """Returns what a model proposes; None for a photograph that is labelled."""
    if row["label"] is not None or row["proposed_reason"] is None:
        return None
    return Proposal(**{name: row[f"proposed_{name}"] for name in (*PROPOSED, "has_mask")})


def find_missing(connection: Connection, data_set_id: int, digests: Sequence[bytes]) -> MissingPhotographs:
    """Returns which of these photographs the data set does not have, and facts about the others.

    Raises:
        RequestError: 404 if the data set does not exist.
    """
    find_data_set(connection, data_set_id)
    names = ("id", "name", "label", "annotation_id", "split")
    columns = (table[name] for name in ("sha256", "removed_at", *names))
    statement = select(*columns).where(table.data_set_id == data_set_id, table.sha256.in_(digests))
    rows = {bytes(row["sha256"]): row for row in connection.execute(statement).mappings()}
    present = [
        KnownPhotograph(
            **{name: row[name] for name in names},
            sha256=sha256.hex(),
            is_removed=row["removed_at"] is not None,
        )
        for sha256, row in rows.items()
    ]
    return MissingPhotographs(missing=[one.hex() for one in digests if one not in rows], present=present)
