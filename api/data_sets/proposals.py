"""Rows of proposals: those of the latest run for each data set, and the run itself."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Select, bindparam, delete, exists, insert, select, update
from sqlalchemy.sql.elements import ColumnElement

from api.data_sets.definitions import find_data_set
from api.data_sets.job_schemas import ProposalProgress, ProposalRun
from api.data_sets.photographs import find_photograph
from api.data_sets.proposed_labels import NewProposal
from api.data_sets.tables import data_set_photographs, data_set_proposals
from api.errors import RequestError
from api.jobs.job_kind import JobKind
from api.jobs.stored_jobs import find_latest_job, save_progress, start_job
from api.messages.causes import Cause, Failure
from api.record.queries import add_audit_entry

PROPOSAL_JOBS = JobKind(
    "proposals",
    ProposalRun,
    Failure(
        "The service was stopped while it proposed labels. Start it again: proposals made before stay.",
        Cause(code="proposals_interrupted"),
    ),
    queue="models",
    only_latest=True,
)
table, photographs = data_set_proposals.c, data_set_photographs.c


@dataclass(frozen=True)
class ListedPhotograph:
    """A photograph of a data set, and the digest of its file."""

    id: int
    name: str
    sha256: bytes


def list_unlabelled(connection: Connection, data_set_id: int) -> list[ListedPhotograph]:
    """Returns the photographs without a label, in the order in which they were added."""
    return _list_photographs(connection, data_set_id, _is_unlabelled())


def list_labelled(connection: Connection, data_set_id: int, count: int) -> list[ListedPhotograph]:
    """Returns at most `count` of the photographs with a label, evenly over the order of adding."""
    every = _list_photographs(connection, data_set_id, photographs.label.is_not(None) & _is_present())
    return every[:: max(1, -(-len(every) // count))]


def _list_photographs(
    connection: Connection, data_set_id: int, chosen: ColumnElement[bool]
) -> list[ListedPhotograph]:
    listed = select(photographs.id, photographs.name, photographs.sha256)
    listed = listed.where(photographs.data_set_id == data_set_id, chosen).order_by(photographs.id)
    rows = connection.execute(listed)
    return [ListedPhotograph(row.id, row.name, bytes(row.sha256)) for row in rows]


def _is_unlabelled() -> ColumnElement[bool]:
    return photographs.label.is_(None) & _is_present()


def _is_present() -> ColumnElement[bool]:
    return photographs.removed_at.is_(None)


# === The run ===


def start_run(
    connection: Connection, data_set_id: int, progress: ProposalProgress, who: str, now: datetime
) -> int:
    """Replaces the latest run and its proposals by a running one; returns its id.

    Raises:
        RequestError: 404 if the data set does not exist, 409 if a run is in progress.
    """
    data_set = find_data_set(connection, data_set_id)["name"]
    job_id = start_job(connection, PROPOSAL_JOBS, data_set_id, progress, who, now)
    connection.execute(delete(data_set_proposals).where(table.data_set_id == data_set_id))
    facts = progress.model_dump(include={"model", "version", "photographs"})
    add_audit_entry(connection, who, "propose labels", after={"data_set": data_set, **facts})
    return job_id


def add_proposal(
    connection: Connection,
    data_set_id: int,
    job_id: int,
    photograph_id: int,
    new: NewProposal,
    progress: ProposalProgress,
    now: datetime,
) -> ProposalProgress:
    """Adds a proposal of a run, unless the photograph has got a label meanwhile; returns the new progress.

    Until `order_proposals` the rank is how sure the model is.

    Raises:
        RequestError: 409 if another run has replaced it.
    """
    unlabelled = select(photographs.id).where(photographs.id == photograph_id, _is_unlabelled())
    is_proposed = connection.execute(unlabelled).first() is not None
    progress = progress.with_photograph(is_proposed=is_proposed)
    save_progress(connection, job_id, progress, now)
    if is_proposed:
        values = {"photograph_id": photograph_id, "data_set_id": data_set_id, "made_at": now}
        content = {name: getattr(new, name) for name in ("label", "score", "distance", "reason", "mask")}
        model = {"model": progress.model, "version": progress.version}
        connection.execute(insert(data_set_proposals), {**values, **content, **model, "rank": new.certainty})
    return progress


def order_proposals(connection: Connection, photograph_ids: Sequence[int], different: Sequence[int]) -> None:
    """Sets the order of proposals.

    The reason of those in `different` becomes `different`.
    """
    ranked = update(data_set_proposals).where(table.photograph_id == bindparam("photograph"))
    places = [{"photograph": one, "rank": place} for place, one in enumerate(photograph_ids)]
    if places:
        connection.execute(ranked.values(rank=bindparam("rank")), places)
    if different:
        named = ranked.values(reason="different")
        connection.execute(named, [{"photograph": one} for one in different])


def show_run(connection: Connection, data_set_id: int, now: datetime) -> ProposalRun | None:
    """Returns the latest run; None if there is none. Raises as `find_data_set`."""
    find_data_set(connection, data_set_id)
    return find_latest_job(connection, PROPOSAL_JOBS, data_set_id, now)


# === Proposals ===


def most_useful_first(data_set_id: int, waiting: Select[tuple[int]]) -> Iterator[Select[tuple[int]]]:
    """Yields `waiting`, a selection of photographs of a data set, in parts; the most useful ones come first.

    First those with a proposal, by their rank, for which there is an index; then the others.
    """
    of_photograph = table.photograph_id == photographs.id
    proposed = waiting.join(data_set_proposals, of_photograph).where(table.data_set_id == data_set_id)
    yield proposed.order_by(table.rank, table.photograph_id)
    yield waiting.where(~exists().where(of_photograph)).order_by(photographs.id)


def find_proposed_mask(connection: Connection, data_set_id: int, photograph_id: int) -> bytes:
    """Returns the proposed mask of a photograph, a PNG.

    Raises:
        RequestError: 404 if there is no such photograph or no mask.
    """
    name = find_photograph(connection, data_set_id, photograph_id)["name"]
    mask = connection.execute(select(table.mask).where(table.photograph_id == photograph_id)).scalar()
    if mask is None:
        raise RequestError(404, "no_mask", f"The photograph '{name}' has no proposed mask.")
    return bytes(mask)
