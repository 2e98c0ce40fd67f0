"""The receivers of recorded inspections, according to the settings."""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from api.delivery.opcua_access import CheckLogin, opcua_access
from api.delivery.settings import DeliverySettings, OpcUaSettings
from api.metrics import Metrics
from api.record.recording import explain_missing_group
from api.record.settings import RecordSettings
from segdec.errors import ConfigError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from api.delivery.delivery import Delivery
    from api.delivery.opcua_server import OpcUaServer


class Receivers:
    """All receivers; `sinks` are the names of those that get events."""

    def __init__(
        self,
        sinks: tuple[str, ...] = (),
        delivery: "Delivery | None" = None,
        opcua: "OpcUaServer | None" = None,
    ) -> None:
        self.sinks, self._delivery, self._opcua = sinks, delivery, opcua

    def start(self, is_usable: Callable[[], bool]) -> None:
        """Starts sending and serving; `is_usable` returns whether the record can be written now.

        Raises:
            ConfigError: If the OPC UA server cannot use its address.
        """
        if self._opcua is not None:
            self._opcua.start(is_usable)
        if self._delivery is not None:
            self._delivery.start()

    def set_zone(self, zone: ZoneInfo) -> None:
        """Begins the days of counts at midnight in another zone."""
        if self._opcua is not None:
            self._opcua.state.set_zone(zone)

    def problems(self) -> dict[str, str]:
        """Describes what other systems do not get now, although photographs are inspected, by codes."""
        return {} if self._opcua is None else self._opcua.problems()

    def remarks(self) -> dict[str, str]:
        """Returns what an administrator should know about the connections to sinks, by their names."""
        return {} if self._delivery is None else self._delivery.remarks()

    def close(self) -> None:
        """Sends what it can within seconds and ends."""
        if self._opcua is not None:
            self._opcua.close()
        if self._delivery is not None:
            self._delivery.close()


def create_receivers(
    settings: DeliverySettings, metrics: Metrics, check_login: CheckLogin = lambda _name, _key: False
) -> Receivers:
    """Creates the receivers of the settings without starting them; `check_login` is for OPC UA clients.

    Raises:
        MissingExtraError: If the group `record` or `opcua` is not installed.
        ConfigError: If an address or a file cannot be used.
    """
    if settings.record == "off":
        return Receivers()
    opcua = _create_opcua(settings, metrics, check_login)
    with explain_missing_group():
        from api.delivery.delivery import Delivery
        from api.delivery.outbox_metrics import OutboxMetrics
        from api.delivery.sender import DeliveryRules
        from api.delivery.sinks import create_sinks

        sinks = create_sinks(settings)
    if not sinks:
        return Receivers(opcua=opcua)
    names = tuple(sink.name for sink in sinks)
    rules = DeliveryRules(timedelta(hours=settings.outbox_hours), settings.outbox_rows)
    delivery = Delivery(_open_database(settings), sinks, rules, OutboxMetrics(metrics, names))
    return Receivers(names, delivery, opcua)


def _create_opcua(settings: OpcUaSettings, metrics: Metrics, check_login: CheckLogin) -> "OpcUaServer | None":
    endpoint = settings.opcua_endpoint
    if endpoint is None:
        return None
    access = opcua_access(endpoint, settings, check_login)
    certificate, key = settings.opcua_certificate, settings.opcua_key
    if (certificate is None) != (key is None):
        raise ConfigError(
            "The OPC UA server needs both --opcua-certificate and --opcua-key, or neither for no encryption."
        )
    pair = None if certificate is None or key is None else (certificate, key)
    engine = _open_database(settings)
    with explain_missing_group("opcua"):
        from api.delivery.line_state import LineStateReader
        from api.delivery.opcua_metrics import register_opcua_metrics
        from api.delivery.opcua_server import OpcUaServer

    server = OpcUaServer(endpoint, pair, engine, LineStateReader(ZoneInfo(settings.record_zone)), access)
    register_opcua_metrics(metrics, server)
    return server


def _open_database(settings: RecordSettings) -> "Engine":
    with explain_missing_group():
        from api.database.database import open_database
        from api.record.initialization import database_url

        return open_database(database_url(settings.record_database, settings.record_folder))
