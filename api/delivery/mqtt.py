"""Sends each event as a message to a broker of MQTT 5, or of 3.1.1 if it does not accept 5."""

import asyncio
import logging
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from paho.mqtt.enums import MQTTProtocolVersion

from api.delivery.escaping import escape_name
from api.delivery.mqtt_connection import Broker, MqttConnection, VersionRefusedError
from api.delivery.mqtt_isolation import EventIsolation
from api.delivery.settings import MqttSettings
from api.delivery.sink import DeliveryError, OutboxMessage, make_tls_context
from segdec.errors import ConfigError
from segdec.runtime.identifiers import FORBIDDEN

PORTS = {"mqtt": 1883, "mqtts": 8883}
URL_FORM = "Expected mqtt://HOST:PORT/TOPIC or mqtts://HOST:PORT/TOPIC, the topic without + and #."
NO_STATION = "_"
"""Topic level of a station without a name."""
MAX_PREFIX = 1000
RESERVED = "+#/"
"""Characters with a meaning in topics."""
logger = logging.getLogger(__name__)


class Mqtt:
    """A broker; connects when there is something to send. The topics begin with `prefix`."""

    name = "mqtt"

    def __init__(self, broker: Broker, prefix: str) -> None:
        self.remark = ""
        self._broker, self._prefix = broker, prefix
        self._connection: MqttConnection | None = None
        self._connecting = asyncio.Lock()
        self._isolation = EventIsolation()

    @classmethod
    def from_settings(cls, settings: MqttSettings) -> Self | None:
        if settings.outbox_mqtt is None:
            return None
        scheme, host, port, user, password, prefix = read_mqtt_url(settings.outbox_mqtt)
        if settings.outbox_mqtt_login is not None:
            user, password = _read_login(settings.outbox_mqtt_login)
        tls_context = make_tls_context(settings.outbox_ca) if scheme == "mqtts" else None
        client_id = settings.outbox_mqtt_client or f"segdec-{uuid4().hex[:12]}"
        return cls(Broker(host, port, user, password, tls_context, client_id), prefix)

    async def deliver(self, message: OutboxMessage) -> None:
        async def publish(limit_s: float | None) -> None:
            connection = await self._connect()
            async with asyncio.timeout(limit_s):
                await connection.publish(topic_of(self._prefix, message), message.event.encode())

        await self._isolation.deliver(message.event_id, publish)

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _connect(self) -> MqttConnection:
        async with self._connecting:
            if self._connection is not None and not self._connection.ended:
                return self._connection
            await self.close()
            self._connection = await self._open_newest()
            return self._connection

    async def _open_newest(self) -> MqttConnection:
        """Connects with MQTT 5, or with 3.1.1 if the broker does not accept 5."""
        try:
            connection, remark = await self._open(MQTTProtocolVersion.MQTTv5), ""
        except VersionRefusedError as refusal:
            try:
                connection = await self._open(MQTTProtocolVersion.MQTTv311)
            except VersionRefusedError as error:
                expected = "Check the port, and whether it needs mqtts://"
                raise DeliveryError(f"{refusal}; {error}. {expected}", "unreachable") from error
            remark = f"connected with MQTT 3.1.1, because {refusal}"
        if remark != self.remark:
            logger.warning("MQTT: %s", remark or "connected with MQTT 5 again")
        self.remark = remark
        return connection

    async def _open(self, version: MQTTProtocolVersion) -> MqttConnection:
        connection = MqttConnection(self._broker, version)
        try:
            await connection.open()
        except BaseException:
            await connection.close()
            raise
        return connection


def topic_of(prefix: str, message: OutboxMessage) -> str:
    """Returns PREFIX/STATION/KIND; `urllib.parse.unquote` decodes the station."""
    level = escape_name(message.station, RESERVED) or NO_STATION
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
    refused = set("+#") & set(prefix) or FORBIDDEN.search(prefix)
    bad = bool(parts.query or parts.fragment or refused) or len(prefix) > MAX_PREFIX
    if not parts.hostname or not prefix or bad or prefix.startswith("$"):
        raise ConfigError(f"--outbox-mqtt is not the URL of a broker and a topic. {URL_FORM}")
    user, password = (None if word is None else unquote(word) for word in (parts.username, parts.password))
    return parts.scheme, parts.hostname, port, user, password, prefix


def _read_login(file: Path) -> tuple[str, str]:
    try:
        user, colon, password = file.read_text("utf-8").strip("\r\n").partition(":")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read the broker's login in {file}: {error}.") from error
    if not user or not colon or "\n" in password or FORBIDDEN.search(user):
        raise ConfigError(f"{file} is not a broker login. Expected one line, USER:PASSWORD.")
    return user, password
