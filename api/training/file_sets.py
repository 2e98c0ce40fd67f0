"""Checkpoints and results of training jobs: files in chunks, each stored once under its SHA-256.

A worker sends only chunks that its job does not have, so an interrupted upload continues, and consecutive
checkpoints share what they have in common. A job names no chunk that was sent only for others: who knows a
digest cannot read the content.
"""

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from sqlalchemy import Connection, delete, insert, select, union

from api.errors import RequestError
from api.training.tables import training_chunks, training_files, training_uploads
from segdec.training_schemas import SentFile

MAX_CHUNK = 4 * 1024**2
"""Bytes."""
MAX_FILES, MAX_CHUNKS = 2000, 20_000
"""Of a checkpoint or a result."""
MAX_WHOLE_CHUNKS = 16
"""Of a file beside the folders, for example `report.html`: the service reads it as a whole."""
MAX_PATH = 240
MAX_PARAMETERS = 500
"""Databases limit the parameters of a statement."""
UNUSED_AFTER = timedelta(hours=2)
"""Time after which a chunk that no file has had is deleted: until then its upload may be running."""
FileSet = Literal["checkpoint", "result"]
PATH = re.compile(r"(?!\.{1,2}(/|$))[^\x00-\x1f\x7f\\/:]+(/(?!\.{1,2}(/|$))[^\x00-\x1f\x7f\\/:]+)*")
table, uploads = training_files.c, training_uploads.c


def check_files(files: Sequence[SentFile]) -> None:
    """Checks paths and numbers of the files of a checkpoint or a result.

    Raises:
        RequestError: 400 if a path could leave the folder, occurs twice, or there are too many files, or if
            one beside the folders is too large.
    """
    paths = [file.path for file in files]
    invalid = next((path for path in paths if len(path) > MAX_PATH or not PATH.fullmatch(path)), None)
    if invalid is not None:
        detail = f"The path {invalid[:80]!r} is invalid. Expected a relative one such as model/manifest.json."
        raise RequestError(400, "bad_path", detail)
    folders = {
        "/".join(parts[:end]) for path in paths for parts in [path.split("/")] for end in range(1, len(parts))
    }
    if len({*paths}) < len(paths) or folders & {*paths}:
        raise RequestError(400, "bad_path", "A path occurs twice, or is a file and a folder. Send each once.")
    chunks = sum(len(file.chunks) for file in files)
    if len(files) > MAX_FILES or chunks > MAX_CHUNKS:
        detail = f"{len(files)} files with {chunks} chunks. Expected at most {MAX_FILES} and {MAX_CHUNKS}."
        raise RequestError(400, "too_many_files", detail)
    large = [file for file in files if "/" not in file.path and len(file.chunks) > MAX_WHOLE_CHUNKS]
    if large:
        detail = f"{large[0].path} has {len(large[0].chunks)} chunks. Expected at most {MAX_WHOLE_CHUNKS}."
        raise RequestError(400, "file_too_large", detail)


def store_files(connection: Connection, job_id: int, kind: FileSet, files: Sequence[SentFile]) -> None:
    """Replaces the checkpoint or the result of a job.

    Raises:
        RequestError: 409 `missing_chunks` if the job does not have a chunk.
    """
    digests = [bytes.fromhex(chunk) for file in files for chunk in file.chunks]
    if missing := find_missing(connection, job_id, digests):
        detail = (
            f"Not stored: {len(missing)} of the chunks, the first one {missing[0].hex()}. Send them for this "
            "job first."
        )
        raise RequestError(409, "missing_chunks", detail)
    drop_files(connection, job_id, kind)
    rows = [
        {
            "job_id": job_id,
            "kind": kind,
            "path": file.path,
            "position": position,
            "chunk": bytes.fromhex(chunk),
        }
        for file in files
        for position, chunk in enumerate(file.chunks)
    ]
    if rows:
        connection.execute(insert(training_files), rows)
    for start in range(0, len(digests), MAX_PARAMETERS):
        confirmed = uploads.chunk.in_(digests[start : start + MAX_PARAMETERS])
        connection.execute(delete(training_uploads).where(uploads.job_id == job_id, confirmed))


def drop_files(connection: Connection, job_id: int, kind: FileSet) -> None:
    """Removes the checkpoint or the result of a job; `delete_unused` deletes its chunks later."""
    connection.execute(delete(training_files).where(table.job_id == job_id, table.kind == kind))


def list_files(connection: Connection, job_id: int, kind: FileSet) -> list[SentFile]:
    """Returns the files of a checkpoint or a result with their chunks."""
    statement = select(table.path, table.chunk).where(table.job_id == job_id, table.kind == kind)
    chunks: defaultdict[str, list[str]] = defaultdict(list)
    for path, chunk in connection.execute(statement.order_by(table.path, table.position)):
        chunks[path].append(bytes(chunk).hex())
    return [SentFile(path=path, chunks=digests) for path, digests in chunks.items()]


def has_chunk(connection: Connection, job_id: int, chunk: bytes) -> bool:
    """Returns whether the checkpoint or the result of a job has a chunk."""
    statement = select(table.job_id).where(table.job_id == job_id, table.chunk == chunk).limit(1)
    return connection.execute(statement).first() is not None


def find_missing(connection: Connection, job_id: int, digests: Sequence[bytes]) -> list[bytes]:
    """Returns those chunks that a job does not have, in order, each once.

    It has those of its checkpoint and of its result, and those that were sent for it.
    """
    known: set[bytes] = set()
    for start in range(0, len(digests), MAX_PARAMETERS):
        part = digests[start : start + MAX_PARAMETERS]
        of_job = (
            select(one.chunk).where(one.job_id == job_id, one.chunk.in_(part)) for one in (table, uploads)
        )
        known |= {bytes(one) for one in connection.execute(union(*of_job)).scalars()}
    return [one for one in dict.fromkeys(digests) if one not in known]


def forget_old_uploads(connection: Connection, now: datetime) -> None:
    """Forgets uploads of chunks that no file has had long after they were sent."""
    is_recent = uploads.sent_at.between(now - UNUSED_AFTER, now + UNUSED_AFTER)  # the clock may be set back
    connection.execute(delete(training_uploads).where(~is_recent))


def find_unused(connection: Connection, limit: int = 1000) -> list[bytes]:
    """Returns chunks that no file has, and no upload."""
    sha256 = training_chunks.c.sha256
    used = [select(one.chunk).where(one.chunk == sha256).exists() for one in (table, uploads)]
    statement = select(sha256).where(*(~one for one in used)).limit(limit)
    return [bytes(one) for one in connection.execute(statement).scalars()]


def delete_chunk_rows(connection: Connection, digests: Sequence[bytes]) -> None:
    """Deletes the rows of chunks."""
    connection.execute(delete(training_chunks).where(training_chunks.c.sha256.in_(digests)))


def describe_checkpoint(position: str, version: str, now: datetime) -> str:
    """Returns the JSON that describes a checkpoint in the row of its job."""
    return json.dumps({"position": position, "version": version, "at": now.isoformat()})
