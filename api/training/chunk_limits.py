"""Limits on chunks that workers send before a checkpoint or a result has them."""

import math

from sqlalchemy import ColumnElement, Connection, func, select

from api.errors import service_unavailable
from api.record.storage.pictures import Space
from api.training.tables import training_chunks, training_files, training_uploads

GIGABYTE = 10**9
MAX_UNCONFIRMED, MAX_UNCONFIRMED_OF_KEY = 64 * GIGABYTE, 16 * GIGABYTE
"""Bytes of chunks that no checkpoint or result has yet: of all keys, and of one."""
MAX_UNCONFIRMED_SHARE = 0.5
"""The most that they may take of the space that would be free without them."""
table, uploads = training_chunks.c, training_uploads.c


def check_space(
    connection: Connection, key: str, space: Space | None, free_share: float, retry_after_s: int
) -> None:
    """Checks that chunks of a key, whose rows are added already, may stay.

    `space` is that of the disk after they were stored; None for a store without a known size. `free_share` is
    the setting `record_free_share`, 0…1.

    Raises:
        RequestError: 503 `no_space`, as for a full disk: the worker tries again later.
    """
    total, of_key = count_unconfirmed(connection), count_unconfirmed(connection, uploads.key == key)
    allowed = MAX_UNCONFIRMED
    if space is not None:
        floor = space.reserve(free_share)
        if space.free < floor:
            detail = (
                f"The disk of the record has {_gigabytes(space.free)} free; trainings leave "
                f"{_gigabytes(floor)}. Free space, or set a limit on photographs (record_budget_gb)."
            )
            raise service_unavailable("no_space", detail, retry_after_s)
        allowed = min(allowed, math.floor(MAX_UNCONFIRMED_SHARE * (space.free + total)))
    for size, limit, whose in (
        (of_key, min(allowed, MAX_UNCONFIRMED_OF_KEY), f"workers with the key {key!r}"),
        (total, allowed, "all workers"),
    ):
        if size > limit:
            detail = (
                f"Chunks of {whose} that no checkpoint or result has yet take {_gigabytes(size)}. Expected "
                f"at most {_gigabytes(limit)}. Store the checkpoint or the result; unused chunks are deleted "
                "after two hours."
            )
            raise service_unavailable("no_space", detail, retry_after_s)


def count_unconfirmed(connection: Connection, *conditions: ColumnElement[bool]) -> int:
    """Returns the bytes of chunks that were sent, by uploads with these conditions, and that no checkpoint or
    result has.
    """
    sent = select(uploads.chunk).where(uploads.chunk == table.sha256, *conditions).exists()
    used = select(training_files.c.chunk).where(training_files.c.chunk == table.sha256).exists()
    statement = select(func.coalesce(func.sum(table.bytes), 0))
    return int(connection.execute(statement.where(sent, ~used)).scalar_one())


def _gigabytes(size: int) -> str:
    return f"{size / GIGABYTE:.2f} GB"
