"""`python -m training worker`: leases jobs until it is stopped."""

import os
import platform
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from segdec import __version__
from segdec.artifact.signatures import read_private_key
from segdec.config import config_error
from segdec.errors import ConfigError, ServiceError
from segdec.runtime.files import folder_lock
from segdec.training_schemas import LeasedJob, WorkerIdentity
from training.distribution.cluster import find_address_problem
from training.distribution.interruption import Interruption
from training.worker.job_run import JobRun, WorkerStoppedError
from training.worker.service_connection import ServiceConnection, is_temporary
from training.worker.trainer_process import fit_command

IDLE_S = 5.0
"""Seconds between two requests for a job."""


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """Options of the command; `python -m training worker --help` describes them."""

    url: str
    key_file: Path
    folder: Path = Path("worker")
    name: str | None = None
    address: str | None = None
    signing_key: Path | None = None
    ca_file: Path | None = None
    once: bool = False


def work(options: WorkerOptions, make_command: Callable[[LeasedJob], Sequence[str]] = fit_command) -> None:
    """Leases jobs and trains until SIGTERM or Ctrl-C; a job in progress is then released.

    Raises:
        ConfigError: If an option is invalid, or another worker uses the folder.
        ServiceError: If the service refuses the worker: its key or its version.
        WorkerDiskFullError: If the disk is full.
    """
    identity = _identify(options)
    signing_key = None if options.signing_key is None else read_private_key(options.signing_key)
    service = ServiceConnection(options.url, _read_key(options.key_file), verify=options.ca_file or True)
    folder = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with Interruption() as stop, service, folder_lock(folder, wait=False):
            print(f"Worker {identity.name} waits for jobs of {options.url}.", flush=True)
            reason = None
            while stop.received is None:
                former, (job, reason) = reason, _lease(service, identity)
                if job is None:
                    if reason not in (None, former):
                        print(f"No job: {reason}", flush=True)
                    _wait(stop)
                    continue
                print(f"Job {job.id}: {job.model} {job.version} on {job.data_set_name}.", flush=True)
                JobRun(
                    service, job, folder, signing_key, lambda: stop.received is not None, make_command
                ).run()
                print(f"Job {job.id}: ended.", flush=True)
                if options.once:
                    return
    except WorkerStoppedError:
        print("Stopped; another worker may continue the job.", flush=True)
    except BlockingIOError as error:
        raise ConfigError(f"Another worker uses the folder {folder}. Give another --folder.") from error


def _lease(service: ServiceConnection, identity: WorkerIdentity) -> tuple[LeasedJob | None, str | None]:
    """Returns a job; None and the reason if there is none for this worker."""
    try:
        lease = service.ask_for_job(identity)
    except ServiceError as error:
        if not is_temporary(error):
            raise
        return None, str(error)
    return lease.job, lease.reason


def _identify(options: WorkerOptions) -> WorkerIdentity:
    name, address = options.name or socket.gethostname(), options.address
    if address is not None and (problem := find_address_problem(address)):
        raise ConfigError(f"The address {address!r} of --address {problem}")
    try:
        return WorkerIdentity(name=name, version=__version__, machine=describe_machine(), address=address)
    except ValidationError as error:
        raise config_error(error, WorkerIdentity) from error


def _wait(stop: Interruption) -> None:
    until = time.monotonic() + IDLE_S
    while stop.received is None and time.monotonic() < until:
        time.sleep(0.2)


def _read_key(path: Path) -> str:
    try:
        words = path.read_text("utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"The key file {path} cannot be read: {reason}.") from error
    if len(words) != 1:
        raise ConfigError(
            f"The key file {path} has {len(words)} words. Expected only the key: make one with python -m api "
            "key NAME, and give its line to the service with --train-keys."
        )
    return words[0]


def describe_machine() -> dict[str, str]:
    """Returns system, processors and GPUs, without loading TensorFlow."""
    gpus = sorted(path.name for path in Path("/proc/driver/nvidia/gpus").glob("*"))
    return {
        "system": platform.platform(),
        "python": platform.python_version(),
        "cpus": str(os.cpu_count()),
        "gpus": str(len(gpus)),
    }
