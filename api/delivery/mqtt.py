"""Sends each event as a message to an MQTT 5 broker."""

import asyncio
from urllib.parse import unquote, urlsplit

from api.delivery.mqtt_connection import Broker, MqttConnection
from api.delivery.sink import OutboxMessage
from segdec.errors import ConfigError

PORTS = {"mqtt": 1883, "mqtts": 8883}
EXPECTED = "Expected mqtt://HOST:PORT/TOPIC or mqtts://HOST:PORT/TOPIC, the topic without + and #."
NO_STATION = "_"
"""Stands for a station that has no name."""
MAX_PREFIX = 1000


class Mqtt:
    """A broker. It is connected to when there is something to send.

    Args:
        broker: Which one.
        prefix: What topics begin with.
    """

    name = "mqtt"

    def __init__(self, broker: Broker, prefix: str) -> None:
        self._broker, self._prefix = broker, prefix
        self._connection: MqttConnection | None = None
        self._connecting = asyncio.Lock()

    async def deliver(self, letter: OutboxMessage) -> None:
        """Returns when the broker has taken it.

        Raises:
            DeliveryError: If it has not.
        """
        connection = await self._connect()
        await connection.publish(topic_of(self._prefix, letter), letter.event.encode())

    async def close(self) -> None:
        """Ends the connection."""
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


def topic_of(prefix: str, letter: OutboxMessage) -> str:
    """Returns PREFIX/STATION/KIND; what means something in a topic is written as in a URL."""
    return f"{prefix}/{safe_level(letter.station)}/{letter.kind}"


def safe_level(station: str) -> str:
    """Returns a station's name as one level of a topic, from which `urllib.parse.unquote` brings it back."""
    if not station:
        return NO_STATION
    if station == NO_STATION:
        return "%5F"
    letters = station.replace("%", "%25")
    for letter in "+#/":
        letters = letters.replace(letter, f"%{ord(letter):02X}")
    return letters


def read_mqtt_url(url: str) -> tuple[str, str, int, str | None, str | None, str]:
    """Returns scheme, host, port, user, password and the prefix of topics.

    Raises:
        ConfigError: If it is no address of a broker with a topic.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or PORTS[parts.scheme]
    except (KeyError, ValueError) as error:
        raise ConfigError(f"--outbox-mqtt is no address of a broker. {EXPECTED}") from error
    prefix = unquote(parts.path).strip("/")
    bad = set("+#\x00") & set(prefix) or parts.query or parts.fragment or len(prefix) > MAX_PREFIX
    if not parts.hostname or not prefix or bad or prefix.startswith("$"):
        raise ConfigError(f"--outbox-mqtt is no address of a broker with a topic. {EXPECTED}")
    user, password = (None if word is None else unquote(word) for word in (parts.username, parts.password))
    return parts.scheme, parts.hostname, port, user, password, prefix
