"""Leases photographs to people who label, so that no two label the same one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, or_, select, update

from api.data_sets.definitions import find_data_set
from api.data_sets.photographs import find_photograph, show_photograph
from api.data_sets.schemas import NextPhotograph
from api.errors import RequestError
from api.records.review.leases import LEASE_DURATION, is_free
from api.records.tables import data_set_photographs

table = data_set_photographs.c


@dataclass(frozen=True)
class Labeller:
    """Who labels: the session (of one tab) and the person."""

    session: str
    person: str


def lease_photograph(
    connection: Connection, data_set_id: int, photograph_id: int, labeller: Labeller, now: datetime
) -> NextPhotograph:
    """Leases a photograph to a session, or renews its lease.

    Raises:
        RequestError: 404 if it does not exist, 409 if another session has it open.
    """
    row = find_photograph(connection, data_set_id, photograph_id)
    check_not_leased_to_another(connection, row, labeller.session, now)
    return _lease(connection, data_set_id, photograph_id, labeller, now)


def lease_next(
    connection: Connection, data_set_id: int, labeller: Labeller, skip: Sequence[int], now: datetime
) -> NextPhotograph:
    """Leases the first photograph that is not labelled and that no other session has open.

    Args:
        connection: In a writing transaction, so that sessions choose one after the other.
        data_set_id: The data set.
        labeller: Who labels.
        skip: Photographs that the session releases and does not want now.
        now: The time.

    Raises:
        RequestError: 404 if the data set does not exist.
    """
    find_data_set(connection, data_set_id)
    _release(connection, labeller.session, skip)
    free = or_(is_free(table.leased_until, now), table.leased_to == labeller.session)
    waiting = select(table.id).where(table.data_set_id == data_set_id, table.removed_at.is_(None))
    waiting = waiting.where(table.label.is_(None), table.id.not_in(skip), free)
    found = connection.execute(waiting.order_by(table.id).limit(1)).scalar()
    if found is None:
        return NextPhotograph(photograph=None, leased_until=None)
    return _lease(connection, data_set_id, found, labeller, now)


def release_photograph(connection: Connection, data_set_id: int, photograph_id: int, session: str) -> None:
    """Ends the lease of a session, if it has one.

    Raises:
        RequestError: 404 if the photograph does not exist.
    """
    find_photograph(connection, data_set_id, photograph_id)
    _release(connection, session, [photograph_id])


def check_not_leased_to_another(
    connection: Connection, row: RowMapping, session: str | None, now: datetime
) -> None:
    """Raises RequestError 409 `leased` if another session has a photograph open."""
    held = select(table.lease_person).where(table.id == row["id"], ~is_free(table.leased_until, now))
    if session is not None:
        held = held.where(table.leased_to != session)
    if (holder := connection.execute(held).first()) is not None:
        raise RequestError(
            409,
            "leased",
            f"{holder.lease_person or 'Another person'} has the photograph '{row['name']}' open. Take "
            "another one, or wait some minutes.",
        )


def _lease(
    connection: Connection, data_set_id: int, photograph_id: int, labeller: Labeller, now: datetime
) -> NextPhotograph:
    until = now + LEASE_DURATION
    taken = update(data_set_photographs).where(table.id == photograph_id)
    lease = {"leased_to": labeller.session, "leased_until": until, "lease_person": labeller.person}
    connection.execute(taken.values(lease))
    shown = show_photograph(connection, data_set_id, photograph_id, now)
    return NextPhotograph(photograph=shown, leased_until=until)


def _release(connection: Connection, session: str, photograph_ids: Sequence[int]) -> None:
    released = update(data_set_photographs).where(table.leased_to == session, table.id.in_(photograph_ids))
    connection.execute(released.values(leased_to=None, leased_until=None, lease_person=None))
