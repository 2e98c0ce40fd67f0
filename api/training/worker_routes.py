"""What training workers do: lease jobs, fetch their data, report, upload. Served if the service records."""

import struct
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import Field
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from api.data_sets.data_set_params import BODY_PROBLEMS, DataSetsDep
from api.data_sets.versions import find_version, lists_file
from api.errors import RequestError, document_problems
from api.http.body_receiver import BodiesDep
from api.http.body_schemas import BINARY_SCHEMA
from api.http.json_body import json_body
from api.http.request_body import read_body
from api.http.request_params import DeadlineDep, RequiredName
from api.http.roles import require_role
from api.http.sent_model import SentModel
from api.training import file_sets, leases
from api.training.jobs import change_job
from api.training.schemas import Heartbeat, LongText
from api.training.training_params import DIGEST_PATTERN, DigestPath, JobId, LeaseHeader, TrainingDep
from api.training.training_store import NewChunk
from api.training.workers import SentLease, Worker
from segdec import __version__
from segdec.training_schemas import HeartbeatAnswer, Lease, MissingChunks, SentFile, WorkerIdentity

router = APIRouter(
    prefix="/v1/training/worker", tags=["training workers"], dependencies=require_role("train")
)

MAX_PANEL, MAX_PANEL_PX = 8 * 1024**2, 2**26
"""Bytes and pixels of the picture of predictions, which browsers decode."""
PNG_START, PNG_SIZE = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", slice(16, 24)
"""First bytes of a PNG, and the place of its width and height."""
MAX_LIST_BYTES = 2 * 1024**2
"""Largest body that names chunks."""
MAX_EVENT_BYTES = 256 * 1024
"""Largest heartbeat."""
Digest = Annotated[str, Field(pattern=DIGEST_PATTERN)]
Facts = dict[Annotated[str, Field(max_length=100)], Any]
FILE: dict[str, Any] = {
    "response_class": Response,
    "responses": {
        200: {"content": {"application/octet-stream": {"schema": BINARY_SCHEMA}}},
        **document_problems(400, 404, 409, 503),
    },
}
BODY: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"application/octet-stream": {"schema": BINARY_SCHEMA}}}
}


class NamedChunks(SentModel):
    """Chunks that a worker wants to send."""

    sha256: list[Digest] = Field(max_length=file_sets.MAX_CHUNKS)


class FileInChunks(SentModel, SentFile):
    """A file: its path and the digests of its chunks, in order."""

    path: Annotated[str, Field(min_length=1, max_length=file_sets.MAX_PATH)]
    chunks: list[Digest] = Field(min_length=1, max_length=file_sets.MAX_CHUNKS)


class SentCheckpoint(SentModel):
    """A checkpoint whose chunks are stored."""

    files: list[FileInChunks] = Field(min_length=1, max_length=file_sets.MAX_FILES)
    position: RequiredName = Field(description="of the training, for people")


class SentResult(SentModel):
    """A result whose chunks are stored: `model/…`, `report.html` and `metrics.json`."""

    files: list[FileInChunks] = Field(min_length=1, max_length=file_sets.MAX_FILES)


class LeaseEnd(SentModel):
    """How a lease ends."""

    outcome: leases.Outcome
    reason: LongText = ""
    facts: Facts | None = Field(None, description="about the model: rating, metrics, thresholds")


@dataclass(frozen=True)
class LeasedRead:
    """A request of a worker about a job that it has leased."""

    request: Request
    training: TrainingDep
    job_id: JobId
    lease: LeaseHeader

    @property
    def sent(self) -> SentLease:
        """The lease with the name of the worker's key."""
        return SentLease(self.lease, self.request.state.key or "")

    def check_lease(self, connection: Connection) -> None:
        """Raises RequestError 404 or 409 if the worker does not have the job any more."""
        leases.find_leased(connection, self.job_id, self.sent)

    def find_manifest(self, connection: Connection) -> bytes:
        """Returns the digest of the manifest of the job's data; raises as `leases.find_held`."""
        row, _ = leases.find_held(connection, self.job_id, self.sent)
        return bytes(find_version(connection, row["data_set_id"], row["data_set_version"])["digest"])


@dataclass(frozen=True)
class LeasedRequest(LeasedRead):
    """A request of a worker about a job that it has leased, with a body."""

    bodies: BodiesDep
    deadline: DeadlineDep

    async def read_bytes(self, limit: int) -> bytes:
        """Reads the body, a file of at most `limit` bytes; raises as `check_lease` before that."""
        await self.training.read(self.check_lease)
        with self.bodies.reserve() as reservation:
            read = partial(read_body, self.request, limit)
            return await self.bodies.receive(self.request, read, reservation, self.deadline)


LeasedReadDep = Annotated[LeasedRead, Depends()]
LeasedRequestDep = Annotated[LeasedRequest, Depends()]


@router.post("/lease", responses=BODY_PROBLEMS)
async def lease_job(
    sent: Annotated[WorkerIdentity, json_body(WorkerIdentity)], request: Request, training: TrainingDep
) -> Lease:
    """Leases the oldest job that waits, one at a time to a worker; each heartbeat renews the lease. A worker
    with an address waits with others until they get a joint job together.
    """
    worker = Worker(sent.name, request.state.key or "", sent.version, sent.machine, sent.address)
    leased = await training.write(leases.lease_job, worker, datetime.now(UTC))
    if not isinstance(leased, leases.Refusal):
        return Lease(job=leased)
    if leased.code is None:
        return Lease(job=None, reason=leased.text)
    raise RequestError(409, leased.code, leased.text)


@router.post("/jobs/{job_id}/heartbeat", responses=BODY_PROBLEMS)
async def renew_lease(
    sent: Annotated[Heartbeat, json_body(Heartbeat, MAX_EVENT_BYTES)], leased: LeasedRequestDep
) -> HeartbeatAnswer:
    """Renews the lease and stores the progress; the answer says whether to continue."""
    return await leased.training.write(
        leases.renew_lease, leased.job_id, leased.sent, sent, datetime.now(UTC)
    )


@router.post("/jobs/{job_id}/end", responses=BODY_PROBLEMS)
async def end_lease(
    sent: Annotated[LeaseEnd, json_body(LeaseEnd, MAX_EVENT_BYTES)], leased: LeasedRequestDep
) -> HeartbeatAnswer:
    """Ends the lease: the job is done, has failed, or waits for another worker: for all of a group."""
    now = datetime.now(UTC)
    await leased.training.write(
        leases.end_lease, leased.job_id, leased.sent, sent.outcome, sent.reason, now, sent.facts
    )
    await leased.training.delete_unused(now)
    return HeartbeatAnswer(command="cancel", has_steps=False)


# === Data ===


@router.get("/jobs/{job_id}/data/manifest", **FILE)
async def read_data_manifest(leased: LeasedReadDep, data_sets: DataSetsDep) -> Response:
    """The manifest of the job's version of its data set."""
    digest = await leased.training.read(leased.find_manifest)
    return _binary(await data_sets.read_file(digest))


@router.get("/jobs/{job_id}/data/files/{sha256}", **FILE)
async def read_data_file(leased: LeasedReadDep, data_sets: DataSetsDep, sha256: DigestPath) -> Response:
    """A photograph or a mask of this version."""
    manifest = await data_sets.read_manifest(await leased.training.read(leased.find_manifest))
    if not lists_file(manifest, sha256):
        detail = f"The data of the training job {leased.job_id} has no file {sha256}. See its manifest."
        raise RequestError(404, "file_not_found", detail)
    return _binary(await data_sets.read_file(bytes.fromhex(sha256)))


# === Checkpoints and results ===


@router.post("/jobs/{job_id}/chunks/missing", responses=BODY_PROBLEMS)
async def find_missing_chunks(
    sent: Annotated[NamedChunks, json_body(NamedChunks, MAX_LIST_BYTES)], leased: LeasedRequestDep
) -> MissingChunks:
    """Which of these chunks the job does not have, so that an interrupted upload continues."""
    await leased.training.read(leased.check_lease)
    missing = await leased.training.find_missing(leased.job_id, [bytes.fromhex(one) for one in sent.sha256])
    return MissingChunks(missing=[one.hex() for one in missing])


@router.put("/jobs/{job_id}/chunks/{sha256}", responses=BODY_PROBLEMS, openapi_extra=BODY)
async def store_chunk(leased: LeasedRequestDep, sha256: DigestPath) -> MissingChunks:
    """Stores a chunk of at most 4 MiB."""
    content = await leased.read_bytes(file_sets.MAX_CHUNK)
    chunk = NewChunk(content, leased.job_id, leased.sent.key, datetime.now(UTC))
    if chunk.sha256.hex() != sha256:
        detail = f"The body has the SHA-256 {chunk.sha256.hex()}; expected {sha256}. Send it again."
        raise RequestError(400, "damaged_chunk", detail)
    await leased.training.store_chunk(chunk, leased.check_lease)
    return MissingChunks(missing=[])


@router.get("/jobs/{job_id}/chunks/{sha256}", **FILE)
async def read_chunk(leased: LeasedReadDep, sha256: DigestPath) -> Response:
    """A chunk of the job's checkpoint."""
    await leased.training.read(leased.check_lease)
    digest = bytes.fromhex(sha256)
    if not await leased.training.read(file_sets.has_chunk, leased.job_id, digest):
        detail = f"The checkpoint of the training job {leased.job_id} has no chunk {sha256}."
        raise RequestError(404, "chunk_not_found", detail)
    return _binary(await leased.training.read_chunk(digest))


@router.put("/jobs/{job_id}/checkpoint", responses=BODY_PROBLEMS)
async def store_checkpoint(
    sent: Annotated[SentCheckpoint, json_body(SentCheckpoint, MAX_LIST_BYTES)], leased: LeasedRequestDep
) -> MissingChunks:
    """Replaces the checkpoint of the job."""
    file_sets.check_files(sent.files)
    now = datetime.now(UTC)

    def store(connection: Connection) -> None:
        leased.check_lease(connection)
        file_sets.store_files(connection, leased.job_id, "checkpoint", sent.files)
        described = file_sets.describe_checkpoint(sent.position, __version__, now)
        change_job(connection, leased.job_id, checkpoint=described, attempts=0)

    await leased.training.write(store)
    await leased.training.delete_unused(now)
    return MissingChunks(missing=[])


@router.put("/jobs/{job_id}/result", responses=BODY_PROBLEMS)
async def store_result(
    sent: Annotated[SentResult, json_body(SentResult, MAX_LIST_BYTES)], leased: LeasedRequestDep
) -> MissingChunks:
    """Stores the model and the report of the job; `end` with the outcome `done` follows."""
    file_sets.check_files(sent.files)

    def store(connection: Connection) -> None:
        leased.check_lease(connection)
        file_sets.store_files(connection, leased.job_id, "result", sent.files)

    await leased.training.write(store)
    return MissingChunks(missing=[])


@router.put("/jobs/{job_id}/panel", responses=BODY_PROBLEMS, openapi_extra=BODY)
async def store_panel(leased: LeasedRequestDep) -> MissingChunks:
    """Stores the latest picture of predictions, a PNG of at most 8 MiB."""
    picture = await leased.read_bytes(MAX_PANEL)
    if not picture.startswith(PNG_START) or len(picture) < PNG_SIZE.stop:
        raise RequestError(400, "not_a_png", "The picture is not a PNG. Send panel.png of the run.")
    width, height = struct.unpack(">II", picture[PNG_SIZE])
    if width * height > MAX_PANEL_PX:
        detail = f"The picture has {width} × {height} px. Expected at most {MAX_PANEL_PX:,} pixels."
        raise RequestError(400, "picture_too_large", detail)

    def store(connection: Connection) -> None:
        leased.check_lease(connection)
        change_job(connection, leased.job_id, panel=picture)

    await leased.training.write(store)
    return MissingChunks(missing=[])


def _binary(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")
