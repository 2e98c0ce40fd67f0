"""Objects that are created at the start and closed at the end of the service."""

import asyncio
import logging
from typing import TYPE_CHECKING

from api.delivery.opcua_access import CheckLogin
from api.delivery.receivers import Receivers, create_receivers
from api.http.body_receiver import BodyReceiver
from api.http.components import Components
from api.http.export_limit import ExportLimit
from api.inference.inference_thread import ImagePredictor
from api.inspecting.service import InspectionService
from api.metrics import Metrics
from api.record.recording import Recording, explain_missing_group
from api.settings import Settings
from segdec.process_memory import memory_limit

if TYPE_CHECKING:
    from api.record_features import RecordFeatures

logger = logging.getLogger(__name__)


class Service:
    """The service behind the routes. Create it in its event loop.

    Attributes:
        bodies: Receives the bodies of requests.
        receivers: Get the events of the record.
        features: What needs a record; None: none is kept.
        recording: Stores inspections, if a record is kept.
        inspection: Inspects photographs.
        components: Objects that the routes use.
    """

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        predictor: ImagePredictor | None = None,
        check_login: CheckLogin = lambda _name, _key: False,
    ) -> None:
        memory_bytes = settings.memory_bytes or memory_limit()
        self.bodies = BodyReceiver(settings, memory_bytes)
        self.receivers: Receivers = create_receivers(settings, metrics, check_login)
        self.features = create_features(settings, metrics, self.receivers)
        self.recording = Recording("off", None) if self.features is None else self.features.recording
        self.inspection = InspectionService(
            settings, metrics, self.bodies, self.recording, memory_bytes, predictor
        )
        self.components = Components()
        self.components.add(
            self.bodies,
            self.inspection,
            self.inspection.models,
            self.inspection.memory,
            self.receivers,
            ExportLimit(settings.retry_after_s),
        )
        if self.features is not None:
            self.features.add_to(self.components, self.inspection)

    async def start(self) -> None:
        """Loads and warms up the models; then requests are accepted.

        Raises:
            SegdecError: If a model cannot be used.
        """
        if self.features is not None:
            await self.features.load_sam()
        times = await self.inspection.load_models()
        await self.recording.open()
        await asyncio.to_thread(self.receivers.start, lambda: self.recording.is_usable)
        if self.features is not None:
            self.features.start()
        self.inspection.accept_requests()
        logger.info(
            "Ready: load %.0f ms, self-test %.0f ms, warm-up %.0f ms", times.load, times.self_test, times.warm
        )

    def drain(self) -> None:
        """Accepts no more photographs; those in progress are answered."""
        self.inspection.drain()

    async def close(self) -> None:
        """Ends the threads, except one that hangs."""
        self.drain()
        if self.features is not None:
            await self.features.close()
        await self.inspection.close()
        await asyncio.to_thread(self.recording.close)
        await asyncio.to_thread(self.receivers.close)


def create_features(settings: Settings, metrics: Metrics, receivers: Receivers) -> "RecordFeatures | None":
    """Creates what needs a record, if one is kept.

    Raises:
        MissingExtraError: If the group `record` is not installed.
        ConfigError: If the record's database or picture store cannot be used.
    """
    if settings.record == "off":
        return None
    with explain_missing_group():  # covers a missing driver of the URL, too
        from api.record_features import RecordFeatures

        return RecordFeatures(settings, metrics, receivers)
