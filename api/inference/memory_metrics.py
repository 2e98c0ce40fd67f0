"""What the service's memory is taken by, for Prometheus."""

from collections.abc import Callable, Iterator

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from api.service import Service


class MemoryMetrics(Collector):
    """Gauges of the memory's limit, of what is taken of it now, and of the largest photographs that fit.

    Args:
        service: Returns the service; None before it is started.
    """

    def __init__(self, service: Callable[[], Service | None]) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """Yields the series, as the registry asks for them."""
        service = self._service()
        if service is None:
            return
        memory = service.memory
        for name, text, value in (
            ("limit", "Memory that the process may take.", memory.limit_bytes),
            ("held", "Memory that the process took when its models were loaded.", memory.held_bytes),
            ("photographs", "Memory that the admitted photographs may take.", memory.taken_bytes),
            ("bodies", "Memory that request bodies may take.", service.bodies.reserved),
        ):
            yield GaugeMetricFamily(f"segdec_memory_{name}_bytes", text, value)
        largest = GaugeMetricFamily(
            "segdec_max_pixels", "Height × width of the largest photograph.", labels=("model", "version")
        )
        for model in service.models.all():
            identity = model.identity
            largest.add_metric((identity.name, identity.version), memory.largest(model.cost).pixels)
        yield largest
