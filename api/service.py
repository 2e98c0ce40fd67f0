"""What lives as long as the service: its threads, its queue and its models."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, TypeVar

from api.admission import AdmissionLimit
from api.batching import ImagePredictor, InferenceThread
from api.errors import RequestError, busy
from api.middleware.metrics import Metrics
from api.models.model_loader import ModelLoader, Phases, warm
from api.models.registry import ModelRegistry, ServedModel
from api.models.store import STABLE, ModelFolder, ModelStore, SingleModel
from api.settings import Settings
from api.uploads import warm_decoder
from segdec.errors import ConfigError
from segdec.schemas import ModelIdentity, ReloadAnswer

T = TypeVar("T")

State = Literal["not_ready", "ready", "draining"]
"""Models are loaded and warmed, then requests are answered, then only those that have begun."""

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
        image_threads: Decode photographs and encode answers.
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
        self.image_threads = ThreadPoolExecutor(settings.image_threads, thread_name_prefix="image")
        self.inference_thread = InferenceThread(
            batch_sizes=settings.batch_sizes,
            max_batch_pixels=settings.batch_pixels,
            wait_s=settings.batch_wait_ms / 1000,
            observe_batch=self.metrics.observe_batch,
        )
        self.loader = (
            ModelLoader(
                open_store(settings),
                self.models,
                self.inference_thread,
                settings.drain_s,
                settings.engine,
                settings.threads,
                settings.require_signature,
            )
            if predictor is None
            else None
        )
        self._predictor = predictor

    async def start(self) -> None:
        """Loads and warms the models; then requests are answered.

        Raises:
            SegdecError: If a model cannot be used.
        """
        await asyncio.get_running_loop().run_in_executor(self.image_threads, warm_decoder)
        phases = Phases()
        if self.loader is not None:
            phases = await self.loader.load_all()
        elif self._predictor is not None:
            await warm(self._predictor, self.inference_thread)
            model = ServedModel(UNNAMED, (STABLE,), self._predictor)
            self.models.replace(UNNAMED.name, {UNNAMED.version: model})
        self.publish_models()
        if self.state == "not_ready":  # a stop during the start stays a stop
            self.state = "ready"
        logger.info(
            "Ready: load %.0f ms, self-test %.0f ms, warm-up %.0f ms",
            phases.load,
            phases.self_test,
            phases.warm,
        )

    @property
    def ready(self) -> bool:
        """Whether requests are answered."""
        return self.state == "ready"

    def check_state(self) -> None:
        """Refuses while the models are not loaded, and while the service stops.

        Raises:
            RequestError: 503.
        """
        retry_after_s = self.settings.retry_after_s
        if self.state == "draining":
            raise busy("draining", "The service is stopping. Ask another replica.", retry_after_s)
        if not self.ready:
            raise busy("not_ready", "The model is not loaded yet.", retry_after_s)

    def check_ready(self) -> None:
        """Refuses while photographs cannot be inspected, for whatever reason.

        Raises:
            RequestError: 503.
        """
        self.check_state()
        if not self.inference_thread.alive:
            raise busy(
                "not_ready", "The inference thread has ended; start anew.", self.settings.retry_after_s
            )

    def find_model(self, name: str | None = None, version: str | None = None) -> ServedModel:
        """Finds the model that a request means; arguments as for `ModelRegistry.find`.

        Raises:
            RequestError: 503 while the service starts or stops, 404 if there is no such model or version.
        """
        self.check_state()
        return self.models.find(name, version)

    def publish_models(self) -> None:
        """Tells the metrics what is served."""
        self.metrics.set_models([(model.identity, model.labels) for model in self.models.all()])

    async def reload(self, name: str) -> ReloadAnswer:
        """Serves what lies on disk under `name` now.

        Raises:
            RequestError: As `ModelLoader.reload`; 503 while the service starts or stops.
        """
        self.check_state()
        if self.loader is None:
            raise RequestError(404, "model_not_found", f"The model '{name}' is held in memory, not on disk.")
        done = await self.loader.reload(name)
        self.publish_models()
        return done

    async def receive(self, reading: Callable[[], Awaitable[T]]) -> T:
        """Awaits `reading`, which takes a request's body.

        Raises:
            RequestError: 503 if too many bodies are being read, 408 if it takes too long.
        """
        with self.uploads.admit():
            try:
                async with asyncio.timeout(self.settings.upload_timeout_s):
                    return await reading()
            except TimeoutError:
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
        """Ends the threads when what they do is done."""
        self.drain()
        await asyncio.to_thread(self.inference_thread.close)
        await asyncio.to_thread(self.image_threads.shutdown, cancel_futures=True)


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
