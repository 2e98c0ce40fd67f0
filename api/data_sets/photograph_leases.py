"""Leases photographs to people who label, so that no two label the same one."""

from asyncio import Event
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, RowMapping, select, update

from api.data_sets.definitions import count_unlabelled, find_data_set
from api.data_sets.photographs import PhotographFilters, find_photograph, show_photograph
from api.data_sets.proposals import most_useful_first
from api.data_sets.schemas import LeasedPhotographs
from api.data_sets.tables import data_set_photographs
from api.errors import RequestError
from api.review.leases import LEASE_DURATION, is_free

table = data_set_photographs.c
UNLABELLED = PhotographFilters("unlabelled")


@dataclass(frozen=True)
class Labeller:
    """Who labels: the session (of one tab) and the person; `user` is the person if one has logged in."""

    session: str
    person: str
    user: str | None = None


class LeaseRequests:
    """Requests for photographs that are not answered yet.

    A page that is left ends its leases, possibly while such a request runs: without this, the photographs of
    that request would stay leased to a page that is gone.
    """

    def __init__(self) -> None:
        self._sessions: dict[Event, str] = {}

    @contextmanager
    def add(self, session: str) -> Iterator[Event]:
        """Adds a request while the block runs; yields an event that is set if the session ends meanwhile."""
        ended = Event()
        self._sessions[ended] = session
        try:
            yield ended
        finally:
            del self._sessions[ended]

    def end(self, session: str) -> None:
        """Notes the end of a session."""
        for ended, each in self._sessions.items():
            if each == session:
                ended.set()


def lease_photograph(
    connection: Connection, data_set_id: int, photograph_id: int, labeller: Labeller, now: datetime
) -> LeasedPhotographs:
    """Leases a photograph to a session, or renews its lease.

    Raises:
        RequestError: 404 if it does not exist, 409 if a session has it open that is not of this user.
    """
    row = find_photograph(connection, data_set_id, photograph_id)
    check_not_leased_to_another(connection, row, labeller.session, now, labeller.user)
    return _lease(connection, data_set_id, [photograph_id], labeller, now)


def lease_next(
    connection: Connection,
    data_set_id: int,
    labeller: Labeller,
    count: int,
    skip: Sequence[int],
    now: datetime,
    filters: PhotographFilters = UNLABELLED,
) -> LeasedPhotographs:
    """Leases up to `count` photographs that match and that no other session has open.

    Those that this session has open come first; their leases are renewed. Then those without a label come
    whose label is most useful, if a model has proposed labels; of labelled ones the oldest annotation comes
    first, so that one that is annotated again becomes the last. If there is none, one comes that another
    session of the same user has open. `skip` are photographs that the session releases and does not want now.
    In a writing transaction sessions choose one after the other.

    Raises:
        RequestError: 404 if the data set does not exist.
    """
    find_data_set(connection, data_set_id)
    _release(connection, labeller.session, table.id.in_(skip))
    waiting = select(table.id).where(table.data_set_id == data_set_id, table.id.not_in(skip))
    waiting = waiting.where(*filters.conditions())
    own = waiting.where(table.leased_to == labeller.session).order_by(table.id)
    free = waiting.where(is_free(table.leased_until, now))
    is_unlabelled = filters.state == "unlabelled"
    ordered = most_useful_first(data_set_id, free) if is_unlabelled else [free.order_by(table.annotation_id)]
    chosen: list[int] = []
    for part in (own, *ordered):
        if len(chosen) < count:
            others = part.where(table.id.not_in(chosen)).limit(count - len(chosen))
            chosen += connection.execute(others).scalars()
    if not chosen and labeller.user is not None:
        other_tab = waiting.where(table.lease_person == labeller.user).order_by(table.leased_until, table.id)
        chosen += connection.execute(other_tab.limit(1)).scalars()
    return _lease(connection, data_set_id, chosen, labeller, now)


def release_photograph(connection: Connection, data_set_id: int, photograph_id: int, session: str) -> None:
    """Ends the lease of a session, if it has one; raises as `find_photograph`."""
    find_photograph(connection, data_set_id, photograph_id)
    _release(connection, session, table.id == photograph_id)


def release_all(connection: Connection, data_set_id: int, session: str) -> None:
    """Ends all leases of a session in a data set."""
    _release(connection, session, table.data_set_id == data_set_id)


def check_not_leased_to_another(
    connection: Connection, row: RowMapping, session: str | None, now: datetime, user: str | None = None
) -> None:
    """Raises RequestError 409 `leased` if another session has a photograph open, except one of `user`."""
    held = select(table.lease_person).where(table.id == row["id"], ~is_free(table.leased_until, now))
    if session is not None:
        held = held.where(table.leased_to != session)
    if user is not None:
        held = held.where(table.lease_person.is_distinct_from(user))
    if (holder := connection.execute(held).first()) is not None:
        raise RequestError(
            409,
            "leased",
            f"{holder.lease_person or 'Another person'} has the photograph '{row['name']}' open. Take "
            "another one, or wait some minutes.",
        )


def _lease(
    connection: Connection, data_set_id: int, photograph_ids: Sequence[int], labeller: Labeller, now: datetime
) -> LeasedPhotographs:
    until = now + LEASE_DURATION
    taken = update(data_set_photographs).where(table.id.in_(photograph_ids))
    lease = {"leased_to": labeller.session, "leased_until": until, "lease_person": labeller.person}
    connection.execute(taken.values(lease))
    return LeasedPhotographs(
        photographs=[show_photograph(connection, data_set_id, number, now) for number in photograph_ids],
        leased_until=until,
        unlabelled=count_unlabelled(connection, data_set_id),
    )


def _release(connection: Connection, session: str, chosen: ColumnElement[bool]) -> None:
    released = update(data_set_photographs).where(table.leased_to == session, chosen)
    connection.execute(released.values(leased_to=None, leased_until=None, lease_person=None))
