"""Groups of workers that train one job together, a joint job.

The oldest joint job for which enough workers are known collects those that ask for jobs. As soon as enough of
them wait, all get their rank and their lease at once: rank 0, the chief, has the lease of the job, the others
have leases of their own, which end with it.
"""

import hmac
import secrets
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, delete, func, insert, or_, select, update

from api.training.jobs import COLUMNS
from api.training.schemas import JobMember
from api.training.tables import training_jobs, training_members, training_workers
from api.training.workers import LEASE_DURATION, SentLease, Worker, change_worker
from segdec import __version__

WAIT_DURATION = timedelta(seconds=30)
"""A worker that has not asked again for so long does not wait any more; workers ask every five seconds."""
jobs, members, workers = training_jobs.c, training_members.c, training_workers.c


# === Waiting ===


def count_known(connection: Connection, now: datetime) -> int:
    """Returns how many workers of this version with different addresses were heard of lately."""
    statement = select(func.count(func.distinct(workers.address)))
    return connection.execute(
        statement.where(workers.version == __version__, _was_seen_lately(now))
    ).scalar_one()


def is_address_taken(connection: Connection, worker: Worker, now: datetime) -> bool:
    """Returns whether a worker of another key, which was heard of lately, has the address of a worker."""
    others = select(workers.name).where(workers.address == worker.address, workers.key != worker.key)
    return connection.execute(others.where(_was_seen_lately(now))).first() is not None


def _was_seen_lately(now: datetime) -> ColumnElement[bool]:
    lately = workers.seen_at > now - LEASE_DURATION
    return and_(lately, workers.seen_at < now + LEASE_DURATION)  # else the clock was set back since


def find_joint_job(connection: Connection, now: datetime) -> RowMapping | None:
    """Returns the joint job that collects workers now; None if there is none.

    It is the only one, so that no two jobs have half of the workers each.
    """
    is_possible = jobs.machines.between(2, count_known(connection, now))
    statement = select(*COLUMNS).where(jobs.state == "queued", is_possible).order_by(jobs.id).limit(1)
    return connection.execute(statement).mappings().first()


def find_waiting(connection: Connection, now: datetime) -> list[RowMapping]:
    """Returns the workers that wait for a joint job, by name: one for each address."""
    is_waiting = workers.waits_until.between(now, now + WAIT_DURATION)
    statement = select(workers.name, workers.key, workers.address).where(is_waiting)
    by_address: dict[str, RowMapping] = {}
    for row in connection.execute(statement.order_by(workers.name, workers.key)).mappings():
        by_address.setdefault(row["address"], row)
    return list(by_address.values())


# === Members ===


def form_group(connection: Connection, job_id: int, waiting: list[RowMapping], now: datetime) -> None:
    """Makes waiting workers the members of a job, in their order; each gets its lease when it asks again."""
    rows = [
        {
            "job_id": job_id,
            "rank": rank,
            "worker": row["name"],
            "worker_key": row["key"],
            "address": row["address"],
            "leased_until": now + LEASE_DURATION,
        }
        for rank, row in enumerate(waiting)
    ]
    connection.execute(insert(training_members), rows)
    for row in waiting:
        change_worker(connection, row["key"], row["name"], waits_until=None)


def find_member_without_lease(connection: Connection, worker: Worker) -> RowMapping | None:
    """Returns a worker as the member of a group that has not fetched its lease yet; None if it is not one."""
    of_worker = (members.worker == worker.name, members.worker_key == worker.key)
    without_lease = (*of_worker, members.address == worker.address, members.lease.is_(None))
    return connection.execute(select(training_members).where(*without_lease)).mappings().first()


def create_member_lease(connection: Connection, member: RowMapping, lease_of_job: str) -> str:
    """Gives a member its lease; returns it."""
    lease = lease_of_job if member["rank"] == 0 else secrets.token_hex(16)
    connection.execute(update(training_members).where(_is_member(member)).values(lease=lease))
    return lease


def find_joint_job_of(connection: Connection, worker: Worker) -> int | None:
    """Returns the joint job of which a worker is a member; None if there is none."""
    of_worker = (members.worker == worker.name, members.worker_key == worker.key)
    return connection.execute(select(members.job_id).where(*of_worker)).scalar()


def list_members(connection: Connection, job_id: int) -> list[JobMember]:
    """Returns the members of a job, by rank; none if one worker trains it, or nobody."""
    statement = select(members.rank, members.worker, members.address).where(members.job_id == job_id)
    rows = connection.execute(statement.order_by(members.rank)).mappings()
    return [JobMember(**row) for row in rows]


def find_member(connection: Connection, job_id: int, sent: SentLease) -> RowMapping | None:
    """Returns the member of a job that has this lease."""
    rows = connection.execute(select(training_members).where(members.job_id == job_id)).mappings().all()
    return next((row for row in rows if is_same_lease(row, sent)), None)


def is_same_lease(row: RowMapping, sent: SentLease) -> bool:
    """Returns whether a request names the lease of a job or a member, with the key that took it."""
    known = row["lease"]
    is_known = known is not None and hmac.compare_digest(known.encode(), sent.lease.encode())
    return is_known and row["worker_key"] == sent.key


# === Renewal and end ===


def renew_member(connection: Connection, member: RowMapping, now: datetime) -> str | None:
    """Renews the lease of a member; returns the name of another one whose lease has ended.

    After a time in which the service was away, no lease is valid any more: all members get time to report.
    """
    until = now + LEASE_DURATION
    was_away = member["leased_until"] <= now
    renewed = members.job_id == member["job_id"] if was_away else _is_member(member)
    connection.execute(update(training_members).where(renewed).values(leased_until=until))
    return find_lost(connection, now).get(member["job_id"])


def find_lost(connection: Connection, now: datetime) -> dict[int, str]:
    """Returns the jobs with a member whose lease has ended, and its name."""
    has_ended = or_(members.leased_until <= now, members.leased_until > now + 2 * LEASE_DURATION)
    statement = select(members.job_id, members.worker).where(has_ended).order_by(members.rank.desc())
    return {row.job_id: row.worker for row in connection.execute(statement)}


def leave_group(connection: Connection, member: RowMapping) -> None:
    """Removes a member whose part of the training is done."""
    connection.execute(delete(training_members).where(_is_member(member)))


def end_group(connection: Connection, job_id: int) -> None:
    """Removes all members of a job: their leases end."""
    connection.execute(delete(training_members).where(members.job_id == job_id))


def _is_member(member: RowMapping) -> ColumnElement[bool]:
    return and_(members.job_id == member["job_id"], members.rank == member["rank"])
