"""One connection to an MQTT broker, from CONNECT to its end.

Uses paho-mqtt directly, because `aiomqtt` reports a message as delivered even if the broker rejects it.
"""

import asyncio
import ssl
from dataclasses import dataclass
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from api.delivery.sink import DeliveryError, FailureCause
from api.record.events import MEDIA_TYPE

CONNECT_S = 10.0
KEEPALIVE_S = 30
MAX_IN_FLIGHT = 20
"""Unacknowledged messages at the same time, unless the broker permits fewer."""
MESSAGE_ERROR_CODES = {0x90, 0x95, 0x99}
"""Reason codes that concern the message: topic name, size, payload format."""
END_CODES = MESSAGE_ERROR_CODES | {0x81}
"""Reason codes of a disconnection that concern the last message: these, and a malformed packet."""
UNSUPPORTED_VERSION = 0x84
VERSIONS = {MQTTProtocolVersion.MQTTv5: "MQTT 5", MQTTProtocolVersion.MQTTv311: "MQTT 3.1.1"}
UNSPECIFIC_REASONS = {0x80, 0x83}
"""Unspecific reason codes. All others concern client or broker, and may be temporary: rights, quota, load."""


class VersionRefusedError(DeliveryError):
    """The broker does not accept this version of MQTT, or ends the connection without an answer."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "unreachable")


class ConnectionLostError(DeliveryError):
    """The connection ended before the broker acknowledged a message that was sent.

    Attributes:
        names_event: Whether the broker's reason concerns a message, not the connection.
    """

    def __init__(self, message: str, *, names_event: bool = False) -> None:
        super().__init__(message, "unreachable")
        self.names_event = names_event


@dataclass(frozen=True)
class Broker:
    """Address and login of a broker.

    `user` None: without a login. `tls_context` has the trusted certificates; None: without TLS. The broker
    ends an older connection that has the same `client_id`.
    """

    host: str
    port: int
    user: str | None
    password: str | None
    tls_context: ssl.SSLContext | None
    client_id: str


class _ClosingSocket(ssl.SSLSocket):
    """Closes itself after a failed handshake, which paho does not."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except BaseException:
            self.close()
            raise


class MqttConnection:
    """A connection that cannot be reused after its end; belongs to the event loop that created it."""

    def __init__(self, broker: Broker, version: MQTTProtocolVersion = MQTTProtocolVersion.MQTTv5) -> None:
        self._broker, self._loop = broker, asyncio.get_running_loop()
        self._version = version
        self._connected: asyncio.Future[None] = self._loop.create_future()
        self._published: dict[int, asyncio.Future[None]] = {}
        self._client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id=broker.client_id,
            protocol=version,
            reconnect_on_failure=False,
        )
        if broker.user is not None:
            self._client.username_pw_set(broker.user, broker.password)
        if broker.tls_context is not None:
            broker.tls_context.sslsocket_class = _ClosingSocket
            self._client.tls_set_context(broker.tls_context)
        self._client.connect_timeout = CONNECT_S
        self._client.max_inflight_messages_set(0)  # unlimited here; `_window` respects the broker's limit
        self._window = asyncio.Semaphore(MAX_IN_FLIGHT)
        # paho calls these in its thread; they only schedule work in the loop.
        self._client.on_connect = self._on_connect
        self._client.on_publish = self._on_publish
        self._client.on_disconnect = self._on_disconnect
        self.ended = False

    async def open(self) -> None:
        """Connects.

        Raises:
            VersionRefusedError: If the broker does not accept the version.
            DeliveryError: If the broker does not answer or rejects the connection.
        """
        broker = self._broker
        try:
            # paho begins without a session of earlier connections, whatever the version.
            await asyncio.to_thread(self._client.connect, broker.host, broker.port, KEEPALIVE_S)
            self._client.loop_start()
            async with asyncio.timeout(CONNECT_S):
                await self._connected
        except TimeoutError as error:
            raise DeliveryError(f"the broker does not answer in {CONNECT_S:g} s", "unreachable") from error
        except (OSError, ValueError) as error:
            raise DeliveryError(f"{type(error).__name__}: {error}", "unreachable") from error

    async def publish(self, topic: str, payload: bytes) -> None:
        """Publishes a message with QoS 1; returns when the broker has acknowledged it.

        Raises:
            ConnectionLostError: If the connection ended meanwhile.
            DeliveryError: If the broker has not acknowledged it.
        """
        async with self._window:
            await self._publish(topic, payload)

    async def _publish(self, topic: str, payload: bytes) -> None:
        properties = None
        if self._version == MQTTProtocolVersion.MQTTv5:
            properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
            properties.ContentType = MEDIA_TYPE
            properties.PayloadFormatIndicator = 1  # UTF-8
        if self.ended:
            raise DeliveryError("the connection to the broker was lost before", "unreachable")
        info = self._client.publish(topic, payload, qos=1, properties=properties)
        if info.rc != mqtt.MQTT_ERR_SUCCESS:  # its thread may have sent the message and lost the connection
            lost = ConnectionLostError(f"the connection to the broker was lost: {mqtt.error_string(info.rc)}")
            self._end(lost)
            raise lost
        future = self._published[info.mid] = self._loop.create_future()
        try:
            await future
        except asyncio.CancelledError:
            # The message may still arrive: no later message of its station may overtake it here.
            self._end(ConnectionLostError("the broker did not answer"))
            raise
        finally:
            self._published.pop(info.mid, None)

    async def close(self) -> None:
        """Closes the connection."""
        self._end(DeliveryError("the connection was closed", "unreachable"))
        await asyncio.to_thread(self._disconnect)

    def _disconnect(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    # === Callbacks of paho ===

    def _on_connect(self, _client: Any, _data: Any, _flags: Any, reason: ReasonCode, more: Any) -> None:
        limit = getattr(more, "ReceiveMaximum", MAX_IN_FLIGHT)
        self._loop.call_soon_threadsafe(self._set_connected, reason, limit)

    def _on_publish(self, _client: Any, _data: Any, mid: int, reason: ReasonCode, _more: Any) -> None:
        self._loop.call_soon_threadsafe(self._set_published, mid, reason)

    def _on_disconnect(self, _client: Any, _data: Any, _flags: Any, reason: ReasonCode, _more: Any) -> None:
        names_event = reason.value in END_CODES
        lost = ConnectionLostError(
            f"the connection to the broker was lost: {reason}", names_event=names_event
        )
        self._loop.call_soon_threadsafe(self._end, lost)

    def _set_connected(self, reason: ReasonCode, limit: int) -> None:
        if self._connected.done():
            return
        if reason.value == UNSUPPORTED_VERSION:
            self._connected.set_exception(
                VersionRefusedError(f"the broker refuses {VERSIONS[self._version]}")
            )
        elif reason.is_failure:
            error = DeliveryError(f"the broker rejects the connection: {reason}", "unreachable")
            self._connected.set_exception(error)
        else:
            self._window = asyncio.Semaphore(min(limit, MAX_IN_FLIGHT))
            self._connected.set_result(None)

    def _set_published(self, mid: int, reason: ReasonCode) -> None:
        future = self._published.get(mid)
        if future is None or future.done():
            return
        if reason.is_failure:
            future.set_exception(DeliveryError(f"the broker rejects the message: {reason}", _blame(reason)))
        else:
            future.set_result(None)

    def _end(self, error: DeliveryError) -> None:
        self.ended = True
        closed = f"the broker closes the connection at the CONNECT of {VERSIONS[self._version]}"
        ends = [(self._connected, VersionRefusedError(closed))]
        for future, failure in ends + [(future, error) for future in self._published.values()]:
            if not future.done():
                future.set_exception(failure)
                future.exception()  # marks it as retrieved, in case no caller awaits it


def _blame(reason: ReasonCode) -> FailureCause:
    if reason.value in MESSAGE_ERROR_CODES:
        return "refused"
    return "failed" if reason.value in UNSPECIFIC_REASONS else "unreachable"
