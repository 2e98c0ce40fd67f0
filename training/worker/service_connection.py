"""Requests of a training worker to the service."""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
from pydantic import BaseModel

from segdec.client.connection import connection_options
from segdec.client.replies import REQUEST_ID, Reply, response_reader
from segdec.client.retries import RetryPolicy
from segdec.errors import ServiceError
from segdec.training_schemas import HeartbeatAnswer, Lease, LeasedJob, MissingChunks, SentFile, WorkerIdentity

TIMEOUT_S = 60.0
RETRIES = 3
TEMPORARY = {None, 408, 429, 500, 502, 503, 504}
"""Statuses after which the same request may succeed later; None: nothing answered."""
MISSING_CHUNKS = "missing_chunks"
TEMPORARY_CODES = {MISSING_CHUNKS, "worker_has_job"}
"""Rejections that end by themselves: a chunk was deleted meanwhile and is sent again; the lease from before a
restart of the worker expires.
"""
WORKER = "/v1/training/worker"
LEASE = "X-Lease"

T = TypeVar("T", bound=BaseModel)


class _Nothing(BaseModel):
    """An answer whose content is not used."""


class LeaseLostError(Exception):
    """The job has another worker, or has ended."""


class ServiceConnection:
    """A connection to the service. Requests are repeated after temporary failures: all can be.

    Every method raises `ServiceError` if the service rejects the request or does not answer, and those of a
    job `LeaseLostError`. `verify` is as for `segdec.client.Client`; a `transport` replaces the network.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        verify: bool | Path = True,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._http = httpx.Client(transport=transport, **connection_options(url, key, TIMEOUT_S, verify))
        self._policy, self._sleep = RetryPolicy(RETRIES), sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._http.close()

    def lease(self, worker: WorkerIdentity) -> LeasedJob | None:
        """Leases a job; None if there is none."""
        return self.ask_for_job(worker).job

    def ask_for_job(self, worker: WorkerIdentity) -> Lease:
        """Leases a job, or returns why there is none."""
        body = worker.model_dump(exclude_none=True)
        return self._send("POST", f"{WORKER}/lease", Lease, json=body)

    def heartbeat(
        self,
        job: LeasedJob,
        *,
        is_training: bool,
        progress: Mapping[str, Any],
        events: Sequence[Mapping[str, Any]],
    ) -> HeartbeatAnswer:
        """Renews the lease and reports; returns what to do. It is not repeated."""
        body = {"is_training": is_training, "progress": dict(progress), "events": list(events)}
        return self._send("POST", _path(job, "heartbeat"), HeartbeatAnswer, job, json=body, retries=0)

    def read_manifest(self, job: LeasedJob) -> bytes:
        """Returns the manifest of the job's version of its data set."""
        return self._read(_path(job, "data/manifest"), job)

    def read_data_file(self, job: LeasedJob, sha256: str) -> bytes:
        """Returns a photograph or a mask of it."""
        return self._read(_path(job, f"data/files/{sha256}"), job)

    def read_chunk(self, job: LeasedJob, sha256: str) -> bytes:
        """Returns a chunk of the job's checkpoint."""
        return self._read(_path(job, f"chunks/{sha256}"), job)

    def find_missing(self, job: LeasedJob, digests: Sequence[str]) -> list[str]:
        """Returns those chunks that the service does not have for the job."""
        body = {"sha256": list(digests)}
        return self._send("POST", _path(job, "chunks/missing"), MissingChunks, job, json=body).missing

    def send_chunk(self, job: LeasedJob, sha256: str, data: bytes) -> None:
        """Stores a chunk."""
        self._send("PUT", _path(job, f"chunks/{sha256}"), _Nothing, job, content=data)

    def send_checkpoint(self, job: LeasedJob, files: Sequence[SentFile], position: str) -> None:
        """Replaces the job's checkpoint by these files, whose chunks are stored."""
        body = {"files": [file.model_dump() for file in files], "position": position}
        self._send("PUT", _path(job, "checkpoint"), _Nothing, job, json=body)

    def send_result(self, job: LeasedJob, files: Sequence[SentFile]) -> None:
        """Stores the job's result: these files, whose chunks are stored."""
        body = {"files": [file.model_dump() for file in files]}
        self._send("PUT", _path(job, "result"), _Nothing, job, json=body)

    def send_panel(self, job: LeasedJob, png: bytes) -> None:
        """Stores the picture of the latest predictions."""
        self._send("PUT", _path(job, "panel"), _Nothing, job, content=png)

    def end(self, job: LeasedJob, outcome: str, reason: str, facts: Mapping[str, Any] | None = None) -> None:
        """Ends the lease."""
        body = {"outcome": outcome, "reason": reason[:2000], "facts": None if facts is None else dict(facts)}
        self._send("POST", _path(job, "end"), _Nothing, job, json=body)

    def _read(self, path: str, job: LeasedJob) -> bytes:
        response = self._exchange("GET", path, job, RETRIES)
        if isinstance(response, httpx.Response) and response.is_success:
            return response.content
        response_reader(_Nothing)(response)
        raise AssertionError("response_reader raises for an answer that is not a success")

    def _send(
        self,
        method: str,
        path: str,
        kind: type[T],
        job: LeasedJob | None = None,
        *,
        retries: int = RETRIES,
        **body: Any,
    ) -> T:
        return response_reader(kind)(self._exchange(method, path, job, retries, **body))

    def _exchange(self, method: str, path: str, job: LeasedJob | None, retries: int, **body: Any) -> Reply:
        headers = {REQUEST_ID: uuid.uuid4().hex} | ({} if job is None else {LEASE: job.lease})
        request = self._http.build_request(method, path, headers=headers, **body)
        replies = [self._try(request)]
        while len(replies) <= retries and (wait_s := self._policy.wait_s(replies)) is not None:
            self._sleep(wait_s)
            replies.append(self._try(request))
        _raise_if_lost(replies[-1])
        return replies[-1]

    def _try(self, request: httpx.Request) -> Reply:
        try:
            return self._http.send(request)
        except httpx.RequestError as error:
            return error


def _path(job: LeasedJob, rest: str) -> str:
    return f"{WORKER}/jobs/{job.id}/{rest}"


def _raise_if_lost(reply: Reply) -> None:
    if isinstance(reply, httpx.Response) and reply.status_code in (404, 409):
        try:
            response_reader(_Nothing)(reply)
        except ServiceError as error:
            if error.code in ("lease_lost", "job_not_found"):
                raise LeaseLostError(error.detail) from error


def is_temporary(error: ServiceError) -> bool:
    """Returns whether a request may succeed later."""
    return error.status in TEMPORARY or error.code in TEMPORARY_CODES
