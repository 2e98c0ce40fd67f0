"""One job of a training worker, from the lease to its end."""

import shutil
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from segdec.artifact import open_artifact, read_manifest
from segdec.artifact.signatures import write_signature
from segdec.errors import SegdecError, ServiceError
from segdec.training_schemas import HeartbeatAnswer, LeasedJob
from training.distribution.interruption import EXIT_CODES, EXIT_PEER_LOST
from training.worker.data_folder import fetch_data, remove_unused
from training.worker.file_sets import (
    LOG,
    MODEL,
    RUNS,
    describe_position,
    download_files,
    frozen_copy,
    list_checkpoint,
    list_result,
    result_names,
    upload_and_report,
)
from training.worker.progress import ProgressReport
from training.worker.service_connection import LeaseLostError, ServiceConnection, is_temporary
from training.worker.trainer_process import DATA, TrainerProcess, cluster_variables, fit_command

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

HEARTBEAT_S = 5.0
POLL_S = 0.5
RETRY_S = 10.0
"""Seconds after a failed upload of a checkpoint or a result."""
GRACE_S = 240.0
"""Seconds that the training has to save a checkpoint when the worker stops."""
MIN_FREE_BYTES = 256 * 1024**2
"""Free space below which a failed job is given to another worker."""
REASON_WAIT_S = 30.0
"""Seconds after the loss of another process of the group in which its worker reports why."""
EXIT_ERROR = 2
EXIT_STOPPED = EXIT_CODES[signal.SIGTERM]
"""The training was stopped with a checkpoint, in a group on any machine."""


class WorkerStoppedError(Exception):
    """The worker was asked to stop; another one may continue the job."""


class WorkerDiskFullError(SegdecError):
    """The disk of the worker is full; another one may continue the job."""


class _CancelledError(Exception):
    """A person has cancelled the job."""


class JobRun:
    """Fetches the data of a job, trains, uploads checkpoints and the result.

    In a group of workers only the chief reports and uploads; the others renew their leases. The folder of the
    worker has `files`, and `jobs` with a folder for each job, in which the command of `make_command` trains.

    Args:
        service: The service.
        job: The leased job.
        folder: Of the worker.
        signing_key: Signs the model; None: it stays unsigned.
        is_stopping: Returns whether the worker was asked to stop.
        make_command: Returns the command that trains.
    """

    def __init__(
        self,
        service: ServiceConnection,
        job: LeasedJob,
        folder: Path,
        signing_key: "Ed25519PrivateKey | None",
        is_stopping: Callable[[], bool],
        make_command: Callable[[LeasedJob], Sequence[str]] = fit_command,
    ) -> None:
        self._service, self._job, self._folder = service, job, folder
        self._job_folder = folder / "jobs" / str(job.id)
        self._signing_key, self._is_stopping, self._make_command = signing_key, is_stopping, make_command
        self._began = time.monotonic()
        self._beat_at = self._retry_at = float("-inf")
        self._is_training, self._is_ending, self._stops_early = False, False, False
        self._chief_has_steps = False
        self._report = ProgressReport(self._job_folder / RUNS / job.model / LOG)
        self._uploaded, self._panel_at = "", 0.0
        self._process: TrainerProcess | None = None

    def run(self) -> None:
        """Works on the job until it ends, or another worker may continue it.

        Raises:
            WorkerStoppedError: After `is_stopping`.
            WorkerDiskFullError: If the disk is full.
            ServiceError: If the service refuses the worker's key.
        """
        try:
            self._prepare()
            self._finish(self._train())
        except LeaseLostError as lost:
            print(f"Job {self._job.id}: {lost}", flush=True)
        except _CancelledError:
            self._end("cancelled", "A person has cancelled it.")
        except ServiceError as error:
            if error.status in (401, 403):
                raise
            self._end("failed", f"The service rejected a request of the worker: {error.detail}")
        except SegdecError as error:
            if isinstance(error, WorkerDiskFullError):
                raise
            self._end("failed", str(error))
        except OSError as error:
            self._end_with_full_disk(f"{error.strerror or error}")
        finally:
            self._kill()
        shutil.rmtree(self._job_folder, ignore_errors=True)

    # === Data and checkpoint ===

    def _prepare(self) -> None:
        for other in (self._folder / "jobs").glob("*"):
            if other != self._job_folder:
                shutil.rmtree(other, ignore_errors=True)
        self._job_folder.mkdir(parents=True, exist_ok=True)
        self._beat(force=True)
        self._repeat(self._fetch)
        remove_unused(self._folder / "files")
        runs = self._job_folder / RUNS
        shutil.rmtree(runs, ignore_errors=True)
        shutil.rmtree(self._job_folder / MODEL, ignore_errors=True)
        if self._job.checkpoint is not None:
            self._report.set_phase("fetching the checkpoint")
            self._repeat(self._restore)
            self._report.skip_logged()
            newest = list_checkpoint(self._job_folder, self._job.model)
            self._uploaded = newest[0] if newest else ""

    def _fetch(self) -> None:
        fetch_data(
            self._service, self._job, self._folder / "files", self._job_folder / DATA, self._note_fetched
        )

    def _note_fetched(self, number: int, total: int) -> None:
        self._report.progress |= {"photographs": number, "of_photographs": total}
        self._beat()

    def _restore(self) -> None:
        assert self._job.checkpoint is not None
        restored = self._job_folder / "restored"
        download_files(self._service, self._job, self._job.checkpoint, restored, self._beat)
        (restored / RUNS).replace(self._job_folder / RUNS)

    # === Training ===

    def _train(self) -> int:
        """Trains; returns the exit code of the training."""
        self._report.set_phase("training")
        self._is_training = True
        command, variables = self._make_command(self._job), cluster_variables(self._job)
        process = self._process = TrainerProcess(command, self._job_folder, variables)
        while (code := process.poll()) is None:
            self._read_report(process.read_lines())
            self._beat()
            if self._stops_early and self._report.has_steps:  # before that there is nothing to evaluate
                process.stop_with_best()
            self._upload_progress()
            time.sleep(POLL_S)
        self._read_report(process.finish())
        return code

    def _read_report(self, lines: Sequence[str]) -> None:
        if self._job.is_chief:
            self._report.add_lines(lines)
            self._report.read_log()

    def _upload_progress(self) -> None:
        """Uploads a new checkpoint and a new picture; a failure is tried again later."""
        if time.monotonic() < self._retry_at or not self._job.is_chief:
            return
        try:
            self._upload_checkpoint()
            self._upload_panel()
        except ServiceError as error:
            if not is_temporary(error):
                raise
            self._retry_at = time.monotonic() + RETRY_S
        except FileNotFoundError:  # the training has just replaced the checkpoint
            self._retry_at = time.monotonic() + POLL_S

    def _upload_checkpoint(self) -> None:
        checkpoint = list_checkpoint(self._job_folder, self._job.model)
        if checkpoint is None or checkpoint[0] == self._uploaded:
            return
        name, paths = checkpoint
        with frozen_copy(self._job_folder, paths) as (root, copies):
            self._report.read_log()  # a worker that continues does not report what the copied log has
            self._send_all_events()
            position = describe_position(name, self._report.stages)
            upload_and_report(
                self._service,
                self._job,
                root,
                copies,
                lambda files: self._service.send_checkpoint(self._job, files, position),
                self._beat,
            )
        self._uploaded = name

    def _upload_panel(self) -> None:
        path = self._job_folder / RUNS / self._job.model / "panel.png"
        if path.exists() and (changed_at := path.stat().st_mtime) != self._panel_at:
            self._service.send_panel(self._job, path.read_bytes())
            self._panel_at = changed_at

    # === Progress ===

    def _beat(self, *, force: bool = False) -> None:
        """Sends a heartbeat if it is due, and follows the answer.

        Raises:
            _CancelledError: If a person has cancelled the job.
            WorkerStoppedError: If the worker was asked to stop; another one may continue the job.
        """
        if self._is_stopping() and not self._is_ending:
            self._release()
        if not force and time.monotonic() - self._beat_at < HEARTBEAT_S:
            return
        self._beat_at = time.monotonic()
        try:
            answer = self._send_heartbeat()
        except ServiceError as error:
            if not is_temporary(error):
                raise
            return
        if answer.command == "cancel":
            raise _CancelledError
        self._stops_early = self._stops_early or (answer.command == "stop" and self._job.is_chief)
        self._chief_has_steps = answer.has_steps

    def _send_heartbeat(self) -> HeartbeatAnswer:
        """Sends the progress and the first events; returns what the service answers."""
        sent, report = self._report.first_events(), self._report
        report.progress["elapsed_s"] = round(time.monotonic() - self._began)
        answer = self._service.heartbeat(
            self._job, is_training=self._is_training, progress=report.progress, events=sent
        )
        report.drop_events(len(sent))
        return answer

    def _send_all_events(self) -> None:
        while self._report.first_events():
            self._send_heartbeat()

    # === End ===

    def _finish(self, code: int) -> None:
        assert self._process is not None
        if self._is_done(code):
            if self._job.is_chief:
                self._report.set_phase("uploading the model")
                self._repeat(self._upload_result)
            else:
                self._service.end(self._job, "done", "")
            return
        if not self._job.is_chief:
            if code == EXIT_STOPPED and self._can_save_checkpoint():
                self._wait_for_end(GRACE_S)  # the chief uploads its checkpoint
            self._report.add_lines([f"[worker {self._job.rank}] {line}" for line in self._process.last_lines])
        if code == EXIT_ERROR:
            if self._is_disk_full(self._process.describe_end()):
                self._end_with_full_disk(self._process.describe_end())
            self._end("failed", self._process.describe_end())
        else:
            self._end_attempt(code)

    def _is_done(self, code: int | None) -> bool:
        """Returns whether the training has a result; in a group, only the chief writes it, and the others
        end with 0 when it has finished.
        """
        has_best = self._stops_early and (self._job_folder / MODEL / "manifest.json").exists()
        return code == 0 or has_best

    def _end_attempt(self, code: int) -> None:
        """Ends the lease after a training that can continue: it crashed, or its group was stopped."""
        assert self._process is not None
        if self._job.is_chief:
            self._repeat(self._upload_checkpoint)
        if code == EXIT_STOPPED and self._job.addresses:
            self._end("released", "Another worker of the group stopped.")
            return
        if code == EXIT_PEER_LOST and self._job.addresses:
            self._wait_for_end(REASON_WAIT_S)
        self._end("crashed", self._process.describe_end())

    def _wait_for_end(self, seconds: float) -> None:
        """Renews the lease until another member of the group ends the attempt.

        Raises:
            LeaseLostError: When the attempt has ended.
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._beat()
            time.sleep(POLL_S)

    def _upload_result(self) -> None:
        model = self._job_folder / MODEL
        artifact = open_artifact(model)
        artifact.check_files()
        if self._signing_key is not None:
            write_signature(artifact.folder, artifact.content, self._signing_key)
        paths = list_result(self._job_folder, self._job.model)
        upload_and_report(
            self._service,
            self._job,
            self._job_folder,
            paths,
            lambda files: self._service.send_result(self._job, result_names(files, self._job.model)),
            self._beat,
        )
        self._beat(force=True)
        self._send_all_events()
        stopped = "A person ended the training with the best weights so far." if self._stops_early else ""
        self._service.end(self._job, "done", stopped, describe_model(model))

    def _repeat(self, work: Callable[[], None]) -> None:
        """Does the work again until no temporary failure of the service prevents it."""
        while True:
            try:
                work()
            except ServiceError as error:
                if not is_temporary(error):
                    raise
                print(f"Job {self._job.id}: {error} It is tried again.", flush=True)
            else:
                return
            time.sleep(RETRY_S)
            self._beat()

    def _release(self) -> NoReturn:
        """Lets the training save a checkpoint, uploads it and ends the lease."""
        self._is_ending, outcome = True, "released"
        if not self._job.is_chief:
            self._beat(force=True)  # the answer says whether the chief has steps
        if self._process is not None and self._can_save_checkpoint():
            outcome = self._stop_training(self._process)
        self._end(outcome, "The worker stopped.")
        raise WorkerStoppedError

    def _can_save_checkpoint(self) -> bool:
        """Returns whether it makes sense to wait for a checkpoint.

        The processes of a group agree on a checkpoint at their next step. Before the first one each of them
        may be busy for minutes, or wait for one that does not come any more, and nothing would be saved.
        """
        if not self._job.addresses:
            return True
        return self._report.has_steps if self._job.is_chief else self._chief_has_steps

    def _stop_training(self, process: TrainerProcess) -> str:
        """Lets the training save a checkpoint and uploads it; returns the outcome of the lease."""
        if process.poll() is None:
            process.stop_with_checkpoint()
        until = time.monotonic() + GRACE_S
        while process.poll() is None and time.monotonic() < until:
            self._beat()
            time.sleep(POLL_S)
        if self._job.is_chief:
            with suppress(ServiceError, OSError):
                self._upload_checkpoint()
        elif (code := process.poll()) == 0:
            return "done"
        elif code == EXIT_STOPPED:
            self._wait_for_end(until - time.monotonic())  # the chief uploads its checkpoint
        return "released"

    def _is_disk_full(self, message: str) -> bool:
        return "No space left" in message or shutil.disk_usage(self._folder).free < MIN_FREE_BYTES

    def _end_with_full_disk(self, message: str) -> NoReturn:
        self._end("crashed", f"The disk of the worker cannot be used: {message}")
        raise WorkerDiskFullError(
            f"The folder {self._folder} cannot be used: {message} Free space there, then start the worker "
            "again; another one may continue the job."
        )

    def _end(self, outcome: str, reason: str) -> None:
        """Ends the lease; if the service does not answer, the lease expires."""
        self._kill()
        with suppress(ServiceError, LeaseLostError):
            self._send_all_events()
        with suppress(ServiceError, LeaseLostError):
            self._service.end(self._job, outcome, reason)

    def _kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.finish()


def describe_model(folder: Path) -> dict[str, Any]:
    """Returns what people want to know about a trained model: rating, metrics and thresholds."""
    manifest = read_manifest(folder)
    rating = None if manifest.rating is None else manifest.rating.model_dump(mode="json")
    return {
        "rating": rating,
        "metrics": manifest.metrics,
        "metrics_split": manifest.metrics_split,
        "classes": list(manifest.classes),
        "thresholds": manifest.thresholds.model_dump(mode="json"),
        "warnings": list(manifest.warnings),
    }
