"""Rows of proposals: those of the latest run for each data set, and the run itself."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, Select, bindparam, delete, exists, insert, select, update
from sqlalchemy.sql.elements import ColumnElement

from api.data_sets.definitions import find_data_set
from api.data_sets.job_schemas import JobState, ProposalRun
from api.data_sets.job_states import job_state
from api.data_sets.photographs import find_photograph
from api.data_sets.proposed_labels import NewProposal
from api.data_sets.tables import data_set_photographs, data_set_proposal_runs, data_set_proposals
from api.errors import RequestError
from api.messages.causes import Cause, Failure, dump_cause, failure_columns, load_cause, read_failure
from api.record.queries import add_audit_entry
from segdec.schemas import ModelIdentity

INTERRUPTED = Failure(
    "The service was stopped while it proposed labels. Start it again: proposals made before stay.",
    Cause(code="proposals_interrupted"),
)
table, runs, photographs = data_set_proposals.c, data_set_proposal_runs.c, data_set_photographs.c


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
    connection: Connection, data_set_id: int, model: ModelIdentity, count: int, who: str, now: datetime
) -> int:
    """Replaces the latest run and its proposals by a running one; returns its id, that of the data set.

    Raises:
        RequestError: 404 if the data set does not exist, 409 if a run is in progress.
    """
    data_set = find_data_set(connection, data_set_id)["name"]
    row = _find_run(connection, data_set_id)
    if row is not None and job_state(row, now) == "running":
        detail = "Labels of this data set are being proposed. Wait for the result."
        raise RequestError(409, "proposals_running", detail)
    connection.execute(delete(data_set_proposals).where(table.data_set_id == data_set_id))
    connection.execute(delete(data_set_proposal_runs).where(runs.data_set_id == data_set_id))
    values = {"data_set_id": data_set_id, "started_at": now, "started_by": who, "alive_at": now}
    facts = {"model": model.name, "version": model.version, "photographs": count}
    counts = {"done": 0, "proposed": 0, "left_out": 0}
    connection.execute(insert(data_set_proposal_runs), {**values, **facts, **counts, "state": "running"})
    add_audit_entry(connection, who, "propose labels", after={"data_set": data_set, **facts})
    return data_set_id


def add_proposal(
    connection: Connection,
    data_set_id: int,
    started_at: datetime,
    photograph_id: int,
    new: NewProposal,
    now: datetime,
) -> None:
    """Adds a proposal of the run that was started then, unless the photograph has got a label meanwhile.

    Until `order_proposals` the rank is how sure the model is.

    Raises:
        RequestError: 409 if another run has replaced it.
    """
    unlabelled = select(photographs.id).where(photographs.id == photograph_id, _is_unlabelled())
    is_useful = connection.execute(unlabelled).first() is not None
    _count(connection, data_set_id, started_at, now, proposed=int(is_useful))
    if not is_useful:
        return
    row = _find_run(connection, data_set_id)
    assert row is not None
    values = {"photograph_id": photograph_id, "data_set_id": data_set_id, "made_at": now}
    content = {name: getattr(new, name) for name in ("label", "score", "distance", "reason", "mask")}
    model = {"model": row["model"], "version": row["version"]}
    connection.execute(insert(data_set_proposals), {**values, **content, **model, "rank": new.certainty})


def order_proposals(
    connection: Connection,
    data_set_id: int,
    started_at: datetime,
    photograph_ids: Sequence[int],
    different: Sequence[int],
    now: datetime,
) -> None:
    """Sets the order of the proposals of the run that was started then.

    Args:
        connection: In a writing transaction.
        data_set_id: The data set.
        started_at: Start of the run.
        photograph_ids: In their order.
        different: Those among them whose reason becomes `different`.
        now: The time.

    Raises:
        RequestError: 409 if another run has replaced it.
    """
    _check_replaced(keep_run_alive(connection, data_set_id, started_at, now))
    ranked = update(data_set_proposals).where(table.photograph_id == bindparam("photograph"))
    places = [{"photograph": one, "rank": place} for place, one in enumerate(photograph_ids)]
    if places:
        connection.execute(ranked.values(rank=bindparam("rank")), places)
    if different:
        named = ranked.values(reason="different")
        connection.execute(named, [{"photograph": one} for one in different])


def leave_out(
    connection: Connection, data_set_id: int, started_at: datetime, problem: Failure, now: datetime
) -> None:
    """Counts a photograph that cannot be inspected; the first problem is kept. Raises as `add_proposal`."""
    _count(connection, data_set_id, started_at, now, left_out=1)
    first = update(data_set_proposal_runs).where(runs.data_set_id == data_set_id, runs.problem.is_(None))
    connection.execute(first.values(problem=problem.text, problem_cause=dump_cause(problem.cause)))


def _count(
    connection: Connection,
    data_set_id: int,
    started_at: datetime,
    now: datetime,
    proposed: int = 0,
    left_out: int = 0,
) -> None:
    chosen = update(data_set_proposal_runs).where(_is_run(data_set_id, started_at))
    counts = {"proposed": runs.proposed + proposed, "left_out": runs.left_out + left_out}
    _check_replaced(
        connection.execute(chosen.values(done=runs.done + 1, alive_at=now, **counts)).rowcount > 0
    )


def keep_run_alive(connection: Connection, data_set_id: int, started_at: datetime, now: datetime) -> bool:
    """States that a run is in progress; returns whether it still is."""
    chosen = update(data_set_proposal_runs).where(_is_run(data_set_id, started_at))
    return connection.execute(chosen.values(alive_at=now)).rowcount > 0


def _check_replaced(is_run: bool) -> None:
    if not is_run:
        raise RequestError(409, "proposals_replaced", "Another run has replaced this one.")


def finish_run(
    connection: Connection,
    data_set_id: int,
    started_at: datetime,
    state: JobState,
    failure: Failure | None,
    now: datetime,
) -> None:
    """States the end of a run."""
    values = {"state": state, "finished_at": now, **failure_columns(failure)}
    connection.execute(update(data_set_proposal_runs).where(_is_run(data_set_id, started_at)).values(values))


def _is_run(data_set_id: int, started_at: datetime) -> ColumnElement[bool]:
    return (runs.data_set_id == data_set_id) & (runs.started_at == started_at) & (runs.state == "running")


def show_run(connection: Connection, data_set_id: int, now: datetime) -> ProposalRun | None:
    """Returns the latest run; None if there is none.

    Raises:
        RequestError: 404 if the data set does not exist.
    """
    find_data_set(connection, data_set_id)
    row = _find_run(connection, data_set_id)
    if row is None:
        return None
    state = job_state(row, now)
    is_interrupted = state != row["state"]
    failure = INTERRUPTED if is_interrupted else read_failure(row)
    names = ("started_at", "started_by", "model", "version", "photographs", "done", "proposed")
    return ProposalRun(
        **{name: row[name] for name in (*names, "left_out", "problem")},
        state=state,
        finished_at=row["alive_at"] if is_interrupted else row["finished_at"],
        problem_cause=load_cause(row["problem_cause"]),
        error=failure and failure.text,
        error_cause=failure and failure.cause,
    )


def _find_run(connection: Connection, data_set_id: int) -> RowMapping | None:
    statement = select(data_set_proposal_runs).where(runs.data_set_id == data_set_id)
    return connection.execute(statement).mappings().first()


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
