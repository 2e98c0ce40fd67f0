"""Objects that are created at the start and closed at the end of the service: threads, limits, models, record
and receivers.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

from api.delivery.opcua_access import CheckLogin
from api.delivery.receivers import Receivers, create_receivers
from api.errors import RequestError, service_unavailable
from api.inference.inference_thread import ImagePredictor, InferenceThread
from api.inference.memory_budget import MIN_RELEASE_BYTES, MemoryBudget
from api.inference.watchdog import Watchdog
from api.inspection.admission import JSON_BODY_COPIES, AdmissionLimit, ByteLimit, ByteReservation
from api.inspection.background_inspector import BackgroundInspector
from api.inspection.deadlines import deadline_error
from api.inspection.encoded_photograph import warm_up_decoder
from api.inspection.inspector import Inspector
from api.inspection.memory_metrics import MemoryMetrics
from api.inspection.open_uploads import OpenUpload, UploadLimit
from api.labelling.open_photographs import OpenPhotographs, Segmenter
from api.labelling.sam_model import SamModel
from api.labelling.sam_segmenter import SamSegmenter
from api.labelling.segmenter import ClickSegmenter
from api.labelling.windows import Image
from api.metrics import Metrics
from api.models.file_update import FileUpdate
from api.models.labels import CANDIDATE, LabelChange
from api.models.loader import LoadTimes, ModelLoader, Write, warm_up
from api.models.registry import ModelRegistry, ServedModel
from api.models.reload_log import log_reload
from api.models.thresholds import ThresholdChange
from api.records.audit import AuditEntry
from api.records.recording import Recording, create_recording
from api.settings import Settings
from api.shadow.shadow_metrics import ShadowMetrics
from api.shadow.shadowing import Shadowing
from segdec.artifact import STABLE
from segdec.errors import ArtifactError
from segdec.process_memory import memory_limit
from segdec.schemas import ModelDetail, ModelIdentity, ReloadAnswer

if TYPE_CHECKING:
    from api.data_sets.background_jobs import BackgroundJobs
    from api.data_sets.data_set_store import DataSetStore
    from api.training_jobs.training_store import TrainingStore

T = TypeVar("T")

State = Literal["not_ready", "ready", "draining"]
"""`not_ready`: models are being loaded; `ready`: requests are accepted; `draining`: only requests that have
started are answered.
"""

CLOSE_TIMEOUT_S = 0.5
"""Maximum wait for threads at the end."""
UPLOAD_SHARE = 1 / 8
"""Share of the memory for request bodies."""
MAX_EXPORTS = 2
"""Tables of the record that are exported at the same time."""
RELEASE_INTERVAL_S = 10.0
"""Time between two checks for free memory to release."""

CLOSE = {"Connection": "close"}
"""For a request whose body is not complete: the rest would be parsed as the next request."""

UNNAMED = ModelIdentity(name="unnamed", version="0", sha256=None)
logger = logging.getLogger(__name__)


class Service:
    """The service behind the routes. Create it in its event loop.

    Attributes:
        queue: Limits the number of photographs that are processed.
        uploads: Limits the number of bodies that are being read.
        exports: Limits the number of tables of the record that are being sent.
        bodies: Limits the memory of bodies that are read or processed.
        memory: Limits the memory of photographs.
        image_threads: Decode photographs and encode answers.
        make_segmenter: Prepares a photograph, uint8 [H, W, C], for clicks.
    """

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        predictor: ImagePredictor | None = None,
        check_login: CheckLogin = lambda _name, _key: False,
    ) -> None:
        self.settings = settings
        self.metrics = metrics
        self.state: State = "not_ready"
        self.models = ModelRegistry(settings.default_model)
        retry_after_s = settings.retry_after_s
        self.queue = AdmissionLimit(
            settings.queue_size + 1, "queue_full", "photographs are waiting or running", retry_after_s
        )
        self.uploads = UploadLimit(settings.max_uploads, retry_after_s, asyncio.get_running_loop().time)
        self.exports = AdmissionLimit(MAX_EXPORTS, "exports_full", "exports are running", retry_after_s)
        limit = settings.memory_bytes or memory_limit()
        largest_body = JSON_BODY_COPIES * settings.max_body_bytes
        body_bytes = max(settings.max_upload_bytes or int(UPLOAD_SHARE * limit), largest_body)
        self.bodies = ByteLimit(body_bytes, retry_after_s)
        self.memory = MemoryBudget(limit, body_bytes, settings.max_pixels, retry_after_s)
        metrics.register(MemoryMetrics(self.memory, self.bodies, self.models))
        self._tasks: list[asyncio.Task[None]] = []
        self.watchdog = Watchdog(settings.engine_timeout_s, settings.engine_lost_s)
        self.image_threads = ThreadPoolExecutor(settings.image_threads, thread_name_prefix="image")
        self.inference_thread = InferenceThread(
            batch_sizes=settings.batch_sizes,
            max_batch_pixels=settings.batch_pixels,
            wait_s=settings.batch_wait_ms / 1000,
            observe_batch=metrics.observe_batch,
            watchdog=self.watchdog,
        )
        self.inspector = Inspector(
            settings,
            self.queue,
            self.memory,
            self.image_threads,
            self.inference_thread,
            self.watchdog,
            metrics,
            self.release_memory,
        )
        self._predictor = predictor
        self.loader = (
            ModelLoader(settings, self.models, self.inference_thread, self.memory)
            if predictor is None
            else None
        )
        self.receivers: Receivers = create_receivers(settings, metrics, check_login)
        self.recording: Recording = create_recording(
            settings, metrics, self.receivers.sinks, self.receivers.set_zone
        )
        self.data_sets = _create_data_sets(settings, self.recording)
        self.open_photographs = OpenPhotographs()
        self.make_segmenter: Callable[[Image], Segmenter] = ClickSegmenter
        self.data_set_jobs = _create_jobs(settings, self.data_sets, "imports")
        self.proposal_jobs = _create_jobs(settings, self.data_sets, "proposals")
        self.background_inspector = BackgroundInspector(
            settings, self.queue, self.memory, self.inference_thread
        )
        self.training = _create_training(settings, self.recording)
        self.shadowing = Shadowing(
            self.models,
            self.inference_thread,
            self.memory,
            (self.uploads, self.queue),
            self.bodies,
            self.recording,
            ShadowMetrics(metrics),
            settings.unlike_training,
        )

    async def start(self) -> None:
        """Loads and warms up the models; then requests are accepted.

        Raises:
            SegdecError: If a model cannot be used.
        """
        await asyncio.get_running_loop().run_in_executor(self.image_threads, warm_up_decoder)
        await self._load_sam()
        times = LoadTimes()
        if self.loader is not None:
            times = await self.loader.load_all()
        elif self._predictor is not None:
            await warm_up(self._predictor, self.inference_thread)
            model = ServedModel(UNNAMED, (STABLE,), self._predictor)
            self.models.replace(UNNAMED.name, {UNNAMED.version: model})
        await self.recording.open()
        await asyncio.to_thread(self.receivers.start, lambda: self.recording.is_usable)
        self.publish_models()
        self.shadowing.start()
        self._tasks = [asyncio.create_task(self._release_memory_regularly())]
        if self.recording.settings is not None:
            self._tasks.append(asyncio.create_task(self.recording.settings.refresh_regularly()))
        if self.recording.reports is not None:
            self._tasks.append(asyncio.create_task(self.recording.reports.run()))
        if self.state == "not_ready":  # a stop during the start stays a stop
            self.state = "ready"
        logger.info(
            "Ready: load %.0f ms, self-test %.0f ms, warm-up %.0f ms", times.load, times.self_test, times.warm
        )

    async def _load_sam(self) -> None:
        """Loads what segments defects from clicks, if it is not the service's own code."""
        if self.settings.sam is not None:
            model = await asyncio.to_thread(SamModel, self.settings.sam, self.settings.image_threads)
            self.make_segmenter = partial(SamSegmenter, model)

    # === State ===

    @property
    def ready(self) -> bool:
        """Whether requests are accepted."""
        return self.state == "ready" and not self.watchdog.stalled

    def check_state(self) -> None:
        """Checks that requests are accepted: models are loaded, no thread hangs, the service does not stop.

        Raises:
            RequestError: 503.
        """
        if self.state == "draining":
            raise self._unavailable("draining", "The service is stopping. Use another replica.")
        if self.watchdog.stalled:
            raise self._unavailable("stalled", f"{self.watchdog.describe()} Use another replica.")
        if self.state == "not_ready":
            raise self._unavailable("not_ready", "The model is not loaded yet.")

    def check_alive(self) -> None:
        """Checks that no thread has hung for so long that only a new process helps.

        Raises:
            RequestError: 503.
        """
        if self.watchdog.needs_restart:
            raise self._unavailable("stalled", f"{self.watchdog.describe()} Restart the service.")

    def check_ready(self) -> None:
        """Checks that photographs can be inspected; raises as `check_state`."""
        self.check_state()
        if not self.inference_thread.alive:
            raise self._unavailable("not_ready", "The inference thread has ended. Restart the service.")

    def _unavailable(self, code: str, detail: str) -> RequestError:
        return service_unavailable(code, detail, self.settings.retry_after_s)

    @property
    def record_settings(self) -> Settings:
        """The settings with the changes that people have made since the start."""
        return self.settings if self.recording.settings is None else self.recording.settings.current

    # === Models ===

    def find_model(self, name: str | None = None, version: str | None = None) -> ServedModel:
        """Finds the model of a request; arguments and errors as `ModelRegistry.find`, 503 while not ready."""
        self.check_state()
        return self.models.find(name, version)

    def stored_versions(self, name: str) -> list[str]:
        """Returns the versions of the model `name` on disk; empty if models are in memory.

        Raises:
            RequestError: 409 if the folder of the model is damaged.
        """
        try:
            return [] if self.loader is None else self.loader.store.versions_of(name)
        except ArtifactError as error:
            raise RequestError(409, "damaged_models", str(error)) from error

    def describe(self, models: Iterable[ServedModel]) -> list[ModelDetail]:
        return [model.describe(self.memory.largest(model.cost)) for model in models]

    def publish_models(self) -> None:
        """Sets the served models in the metrics, and starts their counters."""
        for model in self.models.all():
            self.metrics.initialize_labels(model.identity, model.config.labels)
            if CANDIDATE in model.labels:
                self.shadowing.metrics.initialize(model.identity)
        self.metrics.set_models([(model.identity, model.labels) for model in self.models.all()])

    async def reload(self, name: str, requested_by: Mapping[str, str] | None = None) -> ReloadAnswer:
        """Serves what is on disk under `name` now, and logs it with the fields `requested_by` of the client.

        Raises:
            RequestError: As `ModelLoader.reload`; 503 while the service starts or stops.
        """
        return await self._change_models(
            name, requested_by or {}, "reload", lambda loader: loader.reload(name)
        )

    async def relabel(self, name: str, change: LabelChange, requested_by: Mapping[str, str]) -> ReloadAnswer:
        """Changes the labels of the model `name` on disk, serves the labelled versions, and logs it.

        Raises:
            RequestError: As `ModelLoader.relabel`; 503 while the service starts or stops, or if the audit
                entry is required and cannot be written.
        """
        write = self._write_audited(change.action, requested_by)

        async def relabel(loader: ModelLoader) -> ReloadAnswer:
            await self.recording.check()
            return await loader.relabel(name, change, write)

        return await self._change_models(name, requested_by, change.action, relabel)

    async def set_thresholds(
        self, name: str, change: ThresholdChange, requested_by: Mapping[str, str]
    ) -> ReloadAnswer:
        """Changes the thresholds of a version of the model `name` on disk, uses them, and logs it.

        Raises:
            RequestError: As `ModelLoader.set_thresholds`; 503 as `relabel`.
        """
        write = self._write_audited(change.action, requested_by)

        async def set_thresholds(loader: ModelLoader) -> ReloadAnswer:
            await self.recording.check()
            return await loader.set_thresholds(name, change, write)

        return await self._change_models(name, requested_by, change.action, set_thresholds)

    def _write_audited(self, action: str, requested_by: Mapping[str, str]) -> Write:
        """Returns a function that writes a changed file together with its audit entry."""
        who = requested_by.get("user") or requested_by.get("key", "")

        async def write(update: FileUpdate) -> None:
            before, after = update.states
            if before != after:
                entry = AuditEntry(who, action, before, after)
                await self.recording.change(entry, update.write, update.undo)

        return write

    async def _change_models(
        self,
        name: str,
        requested_by: Mapping[str, str],
        event: str,
        change: Callable[[ModelLoader], Awaitable[ReloadAnswer]],
    ) -> ReloadAnswer:
        async def work() -> ReloadAnswer:
            self.check_state()
            if self.loader is None:
                raise RequestError(404, "model_not_found", f"The model '{name}' is in memory, not on disk.")
            return await change(self.loader)

        done = await log_reload(self.models, name, requested_by, work(), event)
        self.publish_models()
        return done

    # === Requests and memory ===

    async def receive(
        self,
        reading: Callable[[OpenUpload], Awaitable[T]],
        client: str,
        memory: ByteReservation,
        deadline: float,
    ) -> T:
        """Awaits `reading`, which reads a request's body into `memory`, until `deadline`, a
        `time.perf_counter`.

        Raises:
            RequestError: 503 if too many bodies are read, 408 if it takes too long, 504 at the deadline.
        """
        left_s = deadline - time.perf_counter()
        with OpenUpload(self.uploads, client, memory) as upload:
            try:
                async with upload.limit_time(min(self.settings.upload_timeout_s, left_s)):
                    return await reading(upload)
            except TimeoutError:
                if upload.removed:
                    raise self._slow_upload() from None
                if left_s <= self.settings.upload_timeout_s:
                    raise deadline_error() from None
                raise RequestError(
                    408,
                    "upload_timeout",
                    f"The body was not complete after {self.settings.upload_timeout_s:g} s. Send it faster, "
                    "or start the service with a larger --upload-timeout-s.",
                    CLOSE,
                ) from None

    def _slow_upload(self) -> RequestError:
        error = self._unavailable(
            "uploads_full", "The body arrived too slowly while others waited. Send it faster, or retry later."
        )
        error.headers |= CLOSE
        return error

    def release_memory(self) -> None:
        """Returns free memory of photographs to the system, between two batches; from any thread."""
        self.inference_thread.submit_call(self._release_memory).add_done_callback(_log_failure)

    def _release_memory(self) -> None:
        for model in self.models.all():
            model.release_memory()
        self.memory.release_free()

    async def _release_memory_regularly(self) -> None:
        while self.inference_thread.alive:
            await asyncio.sleep(RELEASE_INTERVAL_S)
            if self.memory.largest_bytes > MIN_RELEASE_BYTES:
                self.release_memory()

    # === End ===

    def drain(self) -> None:
        """Accepts no more photographs; those in progress are answered."""
        self.state = "draining"

    async def close(self) -> None:
        """Ends the threads, except one that hangs."""
        self.drain()
        for task in self._tasks:
            task.cancel()
        await self.shadowing.close()
        for jobs in (self.data_set_jobs, self.proposal_jobs):
            if jobs is not None:
                await jobs.close()
        self.image_threads.shutdown(wait=False)
        await asyncio.to_thread(self.inference_thread.close, CLOSE_TIMEOUT_S)
        await asyncio.to_thread(self.recording.close)
        await asyncio.to_thread(self.receivers.close)


def _create_data_sets(settings: Settings, recording: Recording) -> "DataSetStore | None":
    """Creates the data sets beside the record; None if no record is kept."""
    if recording.record is None:
        return None
    from api.data_sets.data_set_store import DataSetStore  # needs the group `record`

    return DataSetStore(settings, recording.record)


def _create_jobs(
    settings: Settings, data_sets: "DataSetStore | None", folder: str
) -> "BackgroundJobs | None":
    """Creates what runs jobs of data sets in a folder of the record; None without data sets."""
    if data_sets is None:
        return None
    from api.data_sets.background_jobs import BackgroundJobs

    return BackgroundJobs(data_sets, settings.record_folder / folder, settings.retry_after_s)


def _create_training(settings: Settings, recording: Recording) -> "TrainingStore | None":
    """Creates the training jobs beside the record; None if no record is kept."""
    if recording.record is None:
        return None
    from api.training_jobs.training_store import TrainingStore  # needs the group `record`

    return TrainingStore(settings, recording.record)


def _log_failure(work: "Future[None]") -> None:
    if not work.cancelled() and (error := work.exception()) is not None:
        logger.error("Free memory was not released", exc_info=error)
