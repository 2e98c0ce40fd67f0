"""What an operator asks for, and what is refused before anything is sent."""

import sys
from pathlib import Path

import pytest

from api.delivery.receivers import create_receivers
from api.delivery.sinks import create_sinks
from api.settings import Settings, read_settings
from segdec.errors import ConfigError, MissingExtraError

SECRET = "whsec_" + "A" * 32


@pytest.fixture
def ask(tmp_path):
    def make(**more):
        return Settings(model=Path("unused"), record="required", record_folder=tmp_path, **more)

    return make


def test_each_receiver_that_is_asked_for_is_told(ask, tmp_path, metrics):
    (tmp_path / "secrets").write_text(SECRET)
    (tmp_path / "login").write_text("line:pa:ss\n")
    asked = ask(
        outbox_webhook="https://mes.plant/events",
        outbox_webhook_secrets=tmp_path / "secrets",
        outbox_mqtt="mqtts://other:word@broker/plant",
        outbox_mqtt_login=tmp_path / "login",
        outbox_mqtt_client="line3",
        outbox_jsonl=tmp_path / "events.jsonl",
    )
    _, mqtt, _ = create_sinks(asked)
    broker = mqtt._broker
    assert (broker.host, broker.port, broker.user, broker.password) == ("broker", 8883, "line", "pa:ss")
    assert (broker.client_id, broker.trust is not None) == ("line3", True)
    receivers = create_receivers(asked, metrics)
    assert receivers.sinks == ("webhook", "mqtt", "jsonl")
    receivers.close()


def test_nobody_is_told_where_nobody_asks(ask, metrics):
    receivers = create_receivers(ask(), metrics)
    receivers.start(lambda: True)
    receivers.close()
    assert receivers.sinks == ()
    assert b"outbox" not in metrics.render()[0]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("outbox_mqtt_login", "nobody\n", "USER:PASSWORD"),
        ("outbox_mqtt_login", ":secret\n", "USER:PASSWORD"),
        ("outbox_mqtt_login", "a:secret\nb:secret", "USER:PASSWORD"),
        ("outbox_mqtt_login", None, "Cannot read the broker's login"),
        ("outbox_ca", "no certificate", "Expected a PEM file"),
        ("outbox_ca", None, "Expected a PEM file"),
        ("outbox_webhook_secrets", None, "Cannot read the webhook's secrets"),
        ("outbox_jsonl", "folder", "Expected a file in an existing folder"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(ask, tmp_path, name, text, words):
    file = tmp_path / "given"
    if text == "folder":
        file.mkdir()
    elif text is not None:
        file.write_text(text)
    receivers = {"outbox_webhook": "https://mes.plant/", "outbox_mqtt": "mqtts://broker/t"}
    with pytest.raises(ConfigError, match=words) as refusal:
        create_sinks(ask(**receivers, **{name: file}))
    assert str(file) in str(refusal.value)
    assert "secret\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "flags",
    [
        ["--outbox-webhook", "https://mes.plant/"],
        ["--outbox-mqtt", "mqtt://broker/t"],
        ["--outbox-jsonl", "events.jsonl"],
        ["--opcua-endpoint", "opc.tcp://0.0.0.0:4840/segdec"],
    ],
)
def test_what_is_not_recorded_is_not_told(flags):
    with pytest.raises(ConfigError, match=f"{flags[0]} needs a record"):
        read_settings(["--model", "m", *flags])
    assert read_settings(["--model", "m", "--record", "best-effort", *flags]).record == "best-effort"


@pytest.mark.parametrize("package", ["httpx", "paho.mqtt.client"])
def test_without_its_package_the_group_is_named(ask, metrics, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    for module in [name for name in sys.modules if name.startswith("api.delivery.")]:
        if not module.endswith("receivers"):
            monkeypatch.delitem(sys.modules, module)
    with pytest.raises(MissingExtraError, match="--group record"):
        create_receivers(ask(outbox_mqtt="mqtt://broker/t"), metrics)
