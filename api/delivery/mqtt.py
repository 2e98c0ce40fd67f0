"""Sends each event as a message to an MQTT 5 broker."""

import asyncio
from urllib.parse import unquote, urlsplit

from api.delivery.mqtt_connection import Broker, MqttConnection
from api.delivery.sink import OutboxMessage
from segdec.errors import ConfigError

PORTS = {"mqtt": 1883, "mqtts": 8883}
URL_FORM = "Expected mqtt://HOST:PORT/TOPIC or mqtts://HOST:PORT/TOPIC, the topic without + and #."
NO_STATION = "_"
"""Topic level of a station without a name."""
MAX_PREFIX = 1000
ESCAPES = str.maketrans({character: f"%{ord(character):02X}" for character in "%+#/"})


class Mqtt:
    """A broker; connects when there is something to send. The topics begin with `prefix`."""

    name = "mqtt"

    def __init__(self, broker: Broker, prefix: str) -> None:
        self._broker, self._prefix = broker, prefix
        self._connection: MqttConnection | None = None
        self._connecting = asyncio.Lock()

    async def deliver(self, message: OutboxMessage) -> None:
        connection = await self._connect()
        await connection.publish(topic_of(self._prefix, message), message.event.encode())

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _connect(self) -> MqttConnection:
        async with self._connecting:
            if self._connection is not None and not self._connection.ended:
                return self._connection
            await self.close()
            connection = MqttConnection(self._broker)
            try:
                await connection.open()
            except BaseException:
                await connection.close()
                raise
            self._connection = connection
            return connection


def topic_of(prefix: str, message: OutboxMessage) -> str:
    """Returns PREFIX/STATION/KIND; `urllib.parse.unquote` decodes the station."""
    level = message.station.translate(ESCAPES) or NO_STATION
    return f"{prefix}/{'%5F' if message.station == NO_STATION else level}/{message.kind}"


def read_mqtt_url(url: str) -> tuple[str, str, int, str | None, str | None, str]:
    """Returns scheme, host, port, user, password and topic prefix.

    Raises:
        ConfigError: If the URL has another form.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or PORTS[parts.scheme]
    except (KeyError, ValueError) as error:
        raise ConfigError(f"--outbox-mqtt is not the URL of a broker. {URL_FORM}") from error
    prefix = unquote(parts.path).strip("/")
    bad = set("+#\x00") & set(prefix) or parts.query or parts.fragment or len(prefix) > MAX_PREFIX
    if not parts.hostname or not prefix or bad or prefix.startswith("$"):
        raise ConfigError(f"--outbox-mqtt is not the URL of a broker and a topic. {URL_FORM}")
    user, password = (None if word is None else unquote(word) for word in (parts.username, parts.password))
    return parts.scheme, parts.hostname, port, user, password, prefix
