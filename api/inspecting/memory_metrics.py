"""Gauges of the service's memory, for Prometheus."""

from collections.abc import Iterator

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from api.http.admission import ByteLimit
from api.inference.memory_budget import MemoryBudget
from api.models.registry import ModelRegistry


class MemoryMetrics(Collector):
    """Yields the memory limit, its use, and the largest photograph of each model."""

    def __init__(self, memory: MemoryBudget, bodies: ByteLimit, models: ModelRegistry) -> None:
        self._memory, self._bodies, self._models = memory, bodies, models

    def collect(self) -> Iterator[Metric]:
        memory = self._memory
        for name, text, value in (
            ("limit", "Maximum memory of the process.", memory.limit_bytes),
            ("held", "Memory of the process after its models were loaded.", memory.idle_bytes),
            ("photographs", "Memory reserved for admitted photographs.", memory.reserved_bytes),
            ("bodies", "Memory reserved for request bodies.", self._bodies.reserved),
        ):
            yield GaugeMetricFamily(f"segdec_memory_{name}_bytes", text, value)
        largest = GaugeMetricFamily(
            "segdec_max_pixels", "Height × width of the largest photograph.", labels=("model", "version")
        )
        for model in self._models.all():
            identity = model.identity
            largest.add_metric((identity.name, identity.version), model.largest_in(memory).pixels)
        yield largest
