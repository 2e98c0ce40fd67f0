"""Prometheus metrics of the OPC UA server."""

from typing import TYPE_CHECKING

from prometheus_client import Gauge

from api.metrics import Metrics

if TYPE_CHECKING:
    from api.delivery.opcua_server import OpcUaServer


def register_opcua_metrics(metrics: Metrics, server: "OpcUaServer") -> None:
    """Adds the state of the server to the metrics of the service."""
    up = Gauge(
        "segdec_opcua_up", "1 while OPC UA clients can read the present state of the line.", registry=None
    )
    up.set_function(lambda: server.is_up)
    skipped = Gauge(
        "segdec_opcua_skipped_stations",
        "Stations that OPC UA does not show because of an error.",
        registry=None,
    )
    skipped.set_function(lambda: server.skipped)
    for gauge in (up, skipped):
        metrics.register(gauge)
