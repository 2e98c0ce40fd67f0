"""What lives as long as the service: its threads, its queue and its models."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Literal, TypeVar

from api.delivery.receivers import Receivers, create_receivers
from api.errors import RequestError, service_unavailable
from api.inference.inference_thread import ImagePredictor, InferenceThread
from api.inference.memory_budget import KEPT_BYTES, MemoryBudget, Reservation
from api.inference.watchdog import Watchdog
from api.inspection.admission import AdmissionLimit, ByteLimit
from api.inspection.deadlines import deadline_error
from api.metrics import Metrics
from api.models.labels import CANDIDATE, LabelChange, LabelFileUpdate
from api.models.loader import LoadTimes, ModelLoader, warm
from api.models.registry import ModelRegistry, ServedModel
from api.models.reload_log import log_reload
from api.models.store import ModelFolder, ModelStore, SingleModel
from api.records.audit import AuditEntry
from api.records.recording import Recording, create_recording
from api.routes.uploads import MAX_COPIES, warm_decoder
from api.settings import Settings
from api.shadow.shadow_metrics import ShadowMetrics
from api.shadow.shadowing import Shadowing
from segdec.artifact import STABLE
from segdec.errors import ConfigError
from segdec.process_memory import memory_limit
from segdec.schemas import ModelDetail, ModelIdentity, ReloadAnswer

T = TypeVar("T")

State = Literal["not_ready", "ready", "draining"]
"""Models are loaded and warmed, then requests are answered, then only those that have begun."""

CLOSE_S = 0.5
"""Seconds that threads may take to end when nobody waits for them any more."""
UPLOAD_SHARE = 1 / 8
"""Of the memory, for bodies."""

GIVE_BACK_S = 10.0
"""Seconds after which what large photographs took is given back."""

UNNAMED = ModelIdentity(name="unnamed", version="0", sha256=None)
logger = logging.getLogger(__name__)


class Service:
    """The service behind the routes. Made in the event loop that it serves.

    Args:
        settings: What the operator set.
        metrics: Told what happens.
        predictor: Is served instead of what the settings name.

    Attributes:
        state: What the service can do now.
        queue: Bounds the photographs that wait or are worked on.
        uploads: Bounds the bodies that are being read.
        bodies: Bounds the memory of the bodies that are read or worked on.
        memory: Bounds that of the photographs.
        image_threads: Decode photographs and encode answers.
        watchdog: Knows whether something in a thread hangs.
        recording: Keeps what is inspected.
        receivers: Are told what is.
        shadowing: Shows it to candidates, too.
    """

    def __init__(self, settings: Settings, metrics: Metrics, predictor: ImagePredictor | None = None) -> None:
        self.settings = settings
        self.metrics = metrics
        self.state: State = "not_ready"
        self.models = ModelRegistry(settings.default_model)
        self.queue = AdmissionLimit(
            settings.queue_size + 1,
            "queue_full",
            "photographs are waiting or running",
            settings.retry_after_s,
        )
        self.uploads = AdmissionLimit(
            settings.max_uploads, "uploads_full", "bodies are being read", settings.retry_after_s
        )
        self.watchdog = Watchdog(settings.engine_timeout_s, settings.engine_lost_s)
        limit = settings.memory_bytes or memory_limit()
        largest_body = MAX_COPIES * settings.max_body_bytes
        body_bytes = max(settings.max_upload_bytes or int(UPLOAD_SHARE * limit), largest_body)
        self.bodies = ByteLimit(body_bytes, settings.retry_after_s)
        self.memory = MemoryBudget(
            limit, body_bytes, settings.max_pixels, settings.deadline_ms, settings.retry_after_s
        )
        self._giving_back: asyncio.Task[None] | None = None
        self.image_threads = ThreadPoolExecutor(settings.image_threads, thread_name_prefix="image")
        self.inference_thread = InferenceThread(
            batch_sizes=settings.batch_sizes,
            max_batch_pixels=settings.batch_pixels,
            wait_s=settings.batch_wait_ms / 1000,
            observe_batch=self.metrics.observe_batch,
            watchdog=self.watchdog,
        )
        self.loader = (
            ModelLoader(
                open_store(settings),
                self.models,
                self.inference_thread,
                self.memory,
                settings.drain_s,
                settings.engine,
                settings.threads,
                settings.require_signature,
            )
            if predictor is None
            else None
        )
        self._predictor = predictor
        self.receivers: Receivers = create_receivers(settings, metrics)
        self.recording: Recording = create_recording(settings, metrics, self.receivers.sinks)
        self.shadowing = Shadowing(
            self.models,
            self.inference_thread,
            self.memory,
            (self.uploads, self.queue),
            self.bodies,
            self.recording,
            ShadowMetrics(metrics),
        )

    async def start(self) -> None:
        """Loads and warms the models; then requests are answered.

        Raises:
            SegdecError: If a model cannot be used.
        """
        await asyncio.get_running_loop().run_in_executor(self.image_threads, warm_decoder)
        times = LoadTimes()
        if self.loader is not None:
            times = await self.loader.load_all()
        elif self._predictor is not None:
            await warm(self._predictor, self.inference_thread)
            model = ServedModel(UNNAMED, (STABLE,), self._predictor)
            self.models.replace(UNNAMED.name, {UNNAMED.version: model})
        await self.recording.open()
        await asyncio.to_thread(self.receivers.start, lambda: self.recording.is_usable)
        self.publish_models()
        self.shadowing.start()
        self._giving_back = asyncio.create_task(self._give_back_regularly())
        if self.state == "not_ready":  # a stop during the start stays a stop
            self.state = "ready"
        logger.info(
            "Ready: load %.0f ms, self-test %.0f ms, warm-up %.0f ms",
            times.load,
            times.self_test,
            times.warm,
        )

    @property
    def ready(self) -> bool:
        """Whether requests are answered."""
        return self.state == "ready" and not self.watchdog.stalled

    def check_state(self) -> None:
        """Refuses while the models are not loaded, while the service stops, and while a thread hangs.

        Raises:
            RequestError: 503.
        """
        retry_after_s = self.settings.retry_after_s
        if self.state == "draining":
            raise service_unavailable(
                "draining", "The service is stopping. Ask another replica.", retry_after_s
            )
        if self.watchdog.stalled:
            detail = f"{self.watchdog.describe()} Ask another replica."
            raise service_unavailable("stalled", detail, retry_after_s)
        if self.state == "not_ready":
            raise service_unavailable("not_ready", "The model is not loaded yet.", retry_after_s)

    def check_alive(self) -> None:
        """Refuses when a thread has been hanging for so long that only a new process helps.

        Raises:
            RequestError: 503.
        """
        if self.watchdog.lost:
            detail = f"{self.watchdog.describe()} Start the service anew."
            raise service_unavailable("stalled", detail, self.settings.retry_after_s)

    def check_ready(self) -> None:
        """Refuses while photographs cannot be inspected, for whatever reason.

        Raises:
            RequestError: 503.
        """
        self.check_state()
        if not self.inference_thread.alive:
            raise service_unavailable(
                "not_ready", "The inference thread has ended; start anew.", self.settings.retry_after_s
            )

    def find_model(self, name: str | None = None, version: str | None = None) -> ServedModel:
        """Finds the model that a request means; arguments as for `ModelRegistry.find`.

        Raises:
            RequestError: 503 while the service starts or stops, 404 if there is no such model or version.
        """
        self.check_state()
        return self.models.find(name, version)

    def describe(self, models: Iterable[ServedModel]) -> list[ModelDetail]:
        """Describes `models` for a listing."""
        return [model.describe(self.memory.largest(model.cost)) for model in models]

    def place(self, model: ServedModel) -> Reservation:
        """Returns the place that a photograph for `model` can take."""
        return Reservation(self.queue, self.memory, model.cost, model.config.input)

    def release_memory(self) -> None:
        """Gives back what photographs took and nothing uses now, between two batches; from any thread."""
        work = partial(_give_back_memory, self.models.all(), self.memory)
        self.inference_thread.submit_call(work).add_done_callback(_log_failure)

    async def _give_back_regularly(self) -> None:
        while self.inference_thread.alive:
            await asyncio.sleep(GIVE_BACK_S)
            if self.memory.kept_bytes > KEPT_BYTES:
                self.release_memory()

    def publish_models(self) -> None:
        """Tells the metrics what is served, and what it may answer."""
        for model in self.models.all():
            self.metrics.initialize_labels(model.identity, model.config.labels)
            if CANDIDATE in model.labels:
                self.shadowing.metrics.initialize(model.identity)
        self.metrics.set_models([(model.identity, model.labels) for model in self.models.all()])

    async def reload(self, name: str, requested_by: Mapping[str, str] | None = None) -> ReloadAnswer:
        """Serves what lies on disk under `name` now, and logs it.

        Args:
            name: Of the model.
            requested_by: Who asked, as fields of the log's line.

        Raises:
            RequestError: As `ModelLoader.reload`; 503 while the service starts or stops.
        """
        return await log_reload(self.models, name, requested_by or {}, self._reload(name))

    async def _reload(self, name: str) -> ReloadAnswer:
        done = await self._loader_of(name).reload(name)
        self.publish_models()
        return done

    async def relabel(self, name: str, change: LabelChange, requested_by: Mapping[str, str]) -> ReloadAnswer:
        """Moves the labels of the model `name` on disk, serves what they name, and logs it.

        Raises:
            RequestError: As `ModelLoader.relabel`; 503 while the service starts or stops, or while the audit
                that has to be kept of it cannot be written.
        """
        work = self._relabel(name, change, requested_by.get("key", ""))
        return await log_reload(self.models, name, requested_by, work, change.what)

    async def _relabel(self, name: str, change: LabelChange, who: str) -> ReloadAnswer:
        async def write(update: LabelFileUpdate) -> None:
            before, after = ({"model": name, "labels": labels} for labels in update.both)
            if before != after:
                line = AuditEntry(who, change.what, before, after)
                await self.recording.change(line, update.write, update.take_back)

        loader = self._loader_of(name)
        await self.recording.check()
        done = await loader.relabel(name, change, write)
        self.publish_models()
        return done

    def _loader_of(self, name: str) -> ModelLoader:
        self.check_state()
        if self.loader is None:
            raise RequestError(404, "model_not_found", f"The model '{name}' is held in memory, not on disk.")
        return self.loader

    async def receive(self, reading: Callable[[], Awaitable[T]], deadline: float) -> T:
        """Awaits `reading`, which takes a request's body, until the `time.perf_counter` `deadline`.

        Raises:
            RequestError: 503 if too many bodies are read, 408 if it takes too long, 504 at the deadline.
        """
        left_s = deadline - time.perf_counter()
        with self.uploads:
            try:
                async with asyncio.timeout(min(self.settings.upload_timeout_s, left_s)):
                    return await reading()
            except TimeoutError:
                if left_s <= self.settings.upload_timeout_s:
                    raise deadline_error() from None
                raise RequestError(
                    408,
                    "upload_timeout",
                    f"The body was not complete after {self.settings.upload_timeout_s:g} s. Send it faster, "
                    "or start the service with a larger --upload-timeout-s.",
                    {"Connection": "close"},  # the rest of the body would be taken for the next request's
                ) from None

    def drain(self) -> None:
        """Takes no further photograph; those that were taken are answered."""
        self.state = "draining"

    async def close(self) -> None:
        """Ends the threads; one that hangs is left behind."""
        self.drain()
        if self._giving_back is not None:
            self._giving_back.cancel()
        await self.shadowing.close()
        self.image_threads.shutdown(wait=False)
        await asyncio.to_thread(self.inference_thread.close, CLOSE_S)
        await asyncio.to_thread(self.recording.close)
        await asyncio.to_thread(self.receivers.close)


def _give_back_memory(models: Sequence[ServedModel], memory: MemoryBudget) -> None:
    for model in models:
        model.release_memory()
    memory.return_free()


def _log_failure(work: "Future[None]") -> None:
    if not work.cancelled() and (error := work.exception()) is not None:
        logger.error("Memory was not given back", exc_info=error)


def open_store(settings: Settings) -> ModelStore:
    """Opens the place where the settings say that the models lie.

    Raises:
        ConfigError: If they name no place.
    """
    if settings.models is not None:
        return ModelFolder(settings.models)
    if settings.model is not None:
        return SingleModel(settings.model)
    raise ConfigError("No model given. Pass --model FOLDER or --models FOLDER.")
