"""Inspects photographs: the models, the threads and the limits behind the routes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Literal

from api.errors import RequestError, service_unavailable
from api.http.admission import AdmissionLimit
from api.http.body_receiver import BodyReceiver
from api.http.middleware.access import caller_name
from api.inference.inference_thread import ImagePredictor, InferenceThread
from api.inference.memory_budget import MIN_RELEASE_BYTES, MemoryBudget
from api.inference.watchdog import Watchdog
from api.inspecting.background_inspector import BackgroundInspector
from api.inspecting.encoded_photograph import warm_up_decoder
from api.inspecting.inspector import Inspector
from api.inspecting.memory_metrics import MemoryMetrics
from api.inspecting.settings import InspectionSettings
from api.inspecting.shadow.shadow_metrics import ShadowMetrics
from api.inspecting.shadow.shadowing import Shadowing
from api.metrics import Metrics
from api.models.aliases import CANDIDATE
from api.models.file_update import FileUpdate
from api.models.loader import LoadTimes, ModelChange, ModelLoader, warm_up
from api.models.registry import ModelRegistry, ServedModel
from api.models.reload_log import log_reload
from api.record.audit import AuditEntry
from api.record.recording import Recording
from api.record.settings import RecordSettings
from segdec.artifact import STABLE
from segdec.errors import ArtifactError
from segdec.runtime.identifiers import REVIEW
from segdec.schemas import ModelDetail, ModelIdentity, ReloadAnswer

State = Literal["not_ready", "ready", "draining"]
"""`not_ready`: models are being loaded; `ready`: requests are accepted; `draining`: only requests that have
started are answered.
"""

CLOSE_TIMEOUT_S = 0.5
"""Maximum wait for the inference thread at the end."""
RELEASE_INTERVAL_S = 10.0
"""Time between two checks for free memory to release."""

UNNAMED = ModelIdentity(name="unnamed", version="0", sha256=None)
logger = logging.getLogger(__name__)


class InspectionService:
    """Inspects photographs with the served models. Create it in its event loop.

    Args:
        settings: Settings of the start.
        metrics: Metrics of the service.
        bodies: Receives the bodies of requests.
        recording: Stores the inspections.
        memory_bytes: Memory of the service.
        predictor: Is served instead of the models in the settings.

    Attributes:
        queue: Limits the number of photographs that are processed.
        memory: Limits the memory of photographs.
        image_threads: Decode photographs and encode answers.
    """

    def __init__(
        self,
        settings: InspectionSettings,
        metrics: Metrics,
        bodies: BodyReceiver,
        recording: Recording,
        memory_bytes: int,
        predictor: ImagePredictor | None = None,
    ) -> None:
        self.settings, self.metrics, self.bodies, self.recording = settings, metrics, bodies, recording
        self.state: State = "not_ready"
        self.models = ModelRegistry(settings.default_model)
        retry_after_s = settings.retry_after_s
        self.queue = AdmissionLimit(
            settings.queue_size + 1, "queue_full", "photographs are waiting or running", retry_after_s
        )
        self.memory = MemoryBudget(memory_bytes, bodies.memory.limit, settings.max_pixels, retry_after_s)
        metrics.register(MemoryMetrics(self.memory, bodies.memory, self.models))
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
            ModelLoader(settings, self.models, self.inference_thread, self.memory, settings.drain_s)
            if predictor is None
            else None
        )
        self.background_inspector = BackgroundInspector(
            settings, self.queue, self.memory, self.inference_thread
        )
        self.shadowing = Shadowing(
            self.models,
            self.inference_thread,
            self.memory,
            (bodies.uploads, self.queue),
            bodies.memory,
            recording,
            ShadowMetrics(metrics),
            settings.unlike_training,
        )
        self._releasing: asyncio.Task[None] | None = None

    async def load_models(self) -> LoadTimes:
        """Loads and warms up the models.

        Raises:
            SegdecError: If a model cannot be used.
        """
        await asyncio.get_running_loop().run_in_executor(self.image_threads, warm_up_decoder)
        times = LoadTimes()
        if self.loader is not None:
            times = await self.loader.load_all()
        elif self._predictor is not None:
            await warm_up(self._predictor, self.inference_thread)
            model = ServedModel(UNNAMED, (STABLE,), self._predictor)
            self.models.replace(UNNAMED.name, {UNNAMED.version: model})
        return times

    def accept_requests(self) -> None:
        """Inspects photographs of requests from now on, unless the service stops already."""
        self.publish_models()
        self.shadowing.start()
        self._releasing = asyncio.create_task(self._release_memory_regularly())
        if self.state == "not_ready":  # a stop during the start stays a stop
            self.state = "ready"

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
    def record_settings(self) -> RecordSettings:
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
        return [model.describe(self.memory) for model in models]

    def publish_models(self) -> None:
        """Sets the served models in the metrics, and starts their counters."""
        for model in self.models.all():
            self.metrics.initialize_labels(model.identity, (*model.config.classes, REVIEW))
            if CANDIDATE in model.aliases:
                self.shadowing.metrics.initialize(model.identity)
        self.metrics.set_models([(model.identity, model.aliases) for model in self.models.all()])

    async def reload(self, name: str, requested_by: Mapping[str, str] | None = None) -> ReloadAnswer:
        """Serves what is on disk under `name` now, and logs it with the fields `requested_by` of the client.

        Raises:
            RequestError: As `ModelLoader.reload`; 503 while the service starts or stops.
        """
        return await self._change_models(
            name, requested_by or {}, "reload", lambda loader: loader.reload(name)
        )

    async def change_model(
        self, name: str, change: ModelChange, requested_by: Mapping[str, str]
    ) -> ReloadAnswer:
        """Changes aliases, thresholds or confirmed photographs of the model `name` on disk, serves it so, and
        logs it.

        Raises:
            RequestError: As `ModelLoader.change`; 503 while the service starts or stops, or if the audit
                entry is required and cannot be written.
        """
        who = caller_name(requested_by)

        async def write(update: FileUpdate) -> None:
            before, after = update.states
            if before != after:
                entry = AuditEntry(who, change.action, before, after)
                await self.recording.change(entry, update.write, update.undo)

        async def make(loader: ModelLoader) -> ReloadAnswer:
            await self.recording.check()
            return await loader.change(name, change, write)

        return await self._change_models(name, requested_by, change.action, make)

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

    # === Memory ===

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
        if self._releasing is not None:
            self._releasing.cancel()
        await self.shadowing.close()
        self.image_threads.shutdown(wait=False)
        await asyncio.to_thread(self.inference_thread.close, CLOSE_TIMEOUT_S)


def _log_failure(work: "Future[None]") -> None:
    if not work.cancelled() and (error := work.exception()) is not None:
        logger.error("Free memory was not released", exc_info=error)
