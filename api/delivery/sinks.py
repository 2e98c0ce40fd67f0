"""All sinks."""

from api.delivery.json_lines import JsonLines
from api.delivery.mqtt import Mqtt
from api.delivery.settings import DeliverySettings
from api.delivery.sink import Sink
from api.delivery.webhook import Webhook

SINKS: tuple[type[Sink], ...] = (Webhook, Mqtt, JsonLines)


def create_sinks(settings: DeliverySettings) -> list[Sink]:
    """Creates the sinks of the settings without connecting.

    Raises:
        ConfigError: If an address or a file cannot be used.
    """
    created = [kind.from_settings(settings) for kind in SINKS]
    return [sink for sink in created if sink is not None]
