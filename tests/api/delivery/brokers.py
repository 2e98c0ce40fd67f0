"""Brokers for the tests, Mosquitto and a small one, and a client that subscribes to them."""

import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.api.record.databases import free_port

MOSQUITTO = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
LONG_S = 60


class OwnMosquitto:
    """A broker that can be killed and started again; `lines` are added to its configuration.

    A subscriber with QoS 0 receives a message before the broker acknowledges it: the broker keeps unsent
    messages in memory only.
    """

    def __init__(self, folder: Path, lines: Sequence[str]) -> None:
        self.port = free_port()
        self._file = folder / "mosquitto.conf"
        keeping = ["user root", "persistence true", f"persistence_location {folder}/"]
        keeping += ["queue_qos0_messages true", "max_queued_messages 0"]
        listening = [f"listener {self.port} 127.0.0.1", *lines]
        self._file.write_text("\n".join([*keeping, *listening]) + "\n")
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Starts the broker and waits until it listens."""
        assert MOSQUITTO is not None
        self._process = subprocess.Popen([MOSQUITTO, "-c", str(self._file)], stderr=subprocess.DEVNULL)
        while True:
            assert self._process.poll() is None, "mosquitto has ended"
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            threading.Event().wait(0.01)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Stops the broker, which saves its subscriptions."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait()


class Listener:
    """A client that subscribes to all topics, reconnects, and stores topic, content type and event."""

    def __init__(self, port: int) -> None:
        self.messages: list[tuple[str, str, dict[str, object]]] = []
        self._changed = threading.Condition()
        self._subscribed = threading.Event()
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id="listener", protocol=mqtt.MQTTv5)
        self._client.on_message = self._note
        self._client.on_connect = lambda client, *_: client.subscribe("#", qos=0)
        self._client.on_subscribe = lambda *_: self._subscribed.set()
        self._client.reconnect_delay_set(0.05, 0.05)
        lasting = Properties(PacketTypes.CONNECT)
        lasting.SessionExpiryInterval = 3600
        self._client.connect("127.0.0.1", port, clean_start=False, properties=lasting)
        self._client.loop_start()
        assert self._subscribed.wait(LONG_S)

    def wait_for(self, count: int) -> None:
        """Waits until `count` different events have arrived."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.ids()) >= count, LONG_S), self.messages[-3:]

    def ids(self) -> list[str]:
        """Returns the ids of the events in order of their first arrival."""
        return list(dict.fromkeys(event["id"] for _, _, event in self.messages))

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _note(self, _client: object, _data: object, message: mqtt.MQTTMessage) -> None:
        with self._changed:
            kind = getattr(message.properties, "ContentType", "")
            self.messages.append((message.topic, kind, json.loads(message.payload)))
            self._changed.notify_all()


class SmallBroker:
    """A broker that accepts the protocol levels `accepts`, and answers `refusal` to others. It closes the
    connection at a PUBLISH whose topic contains `poison`.
    """

    def __init__(self, *accepts: int, refusal: bytes = b"", poison: str = "poison") -> None:
        self.accepts, self.refusal, self.poison = accepts, refusal, poison.encode()
        self.levels: list[int] = []
        self.topics: list[str] = []
        self._connections: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def disconnect(self) -> None:
        """Ends all connections."""
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listening.close()
        self.disconnect()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self._connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as file, suppress(OSError, IndexError):
            _, connect = _read_packet(file)
            level = connect[6]
            self.levels.append(level)
            if level not in self.accepts:
                connection.sendall(self.refusal)
                return
            connection.sendall(b"\x20\x03\x00\x00\x00" if level == 5 else b"\x20\x02\x00\x00")
            while (packet := _read_packet(file))[0] >> 4 == 3:
                topic = packet[1][2 : 2 + int.from_bytes(packet[1][:2])]
                if self.poison in topic:
                    return
                self.topics.append(topic.decode())
                connection.sendall(b"\x40\x02" + packet[1][2 + len(topic) :][:2])


def _read_packet(file: BinaryIO) -> tuple[int, bytes]:
    """Returns the first byte of a packet, and its content."""
    first, length, shift = file.read(1)[0], 0, 0
    while True:
        byte = file.read(1)[0]
        length |= (byte & 127) << shift
        if byte < 128:
            return first, file.read(length)
        shift += 7
