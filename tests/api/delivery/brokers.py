"""A Mosquitto broker for the tests, and a client that subscribes to it."""

import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.api.records.databases import free_port

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
