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


class Mqtt:
    """A broker; connects when there is something to send.

    Args:
        broker: Address and login.
        prefix: Prefix of the topics.
    """

    name = "mqtt"

    def __init__(self, broker: Broker, prefix: str) -> None:
        self._broker, self._prefix = broker, prefix
        self._connection: MqttConnection | None = None
        self._connecting = asyncio.Lock()

    async def deliver(self, message: OutboxMessage) -> None:
        """Returns when the broker has acknowledged the message.

        Raises:
            DeliveryError: If it has not.
        """
        connection = await self._connect()
        await connection.publish(topic_of(self._prefix, message), message.event.encode())

    async def close(self) -> None:
        """Closes the connection."""
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
    """Returns PREFIX/STATION/KIND; special characters of the station are percent-encoded."""
    return f"{prefix}/{encode_topic_level(message.station)}/{message.kind}"


def encode_topic_level(station: str) -> str:
    """Returns a station's name as one topic level; `urllib.parse.unquote` decodes it."""
    if not station:
        return NO_STATION
    if station == NO_STATION:
        return "%5F"
    level = station.replace("%", "%25")
    for character in "+#/":
        level = level.replace(character, f"%{ord(character):02X}")
    return level


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
