"""Receivers of the settings, and settings that are rejected."""

import sys
from importlib import import_module
from inspect import signature
from pathlib import Path
from pkgutil import iter_modules

import pytest

import api.delivery
from api.delivery.receivers import create_receivers
from api.delivery.settings import DeliverySettings, SinkSettings
from api.delivery.sink import Sink
from api.delivery.sinks import SINKS, create_sinks
from api.record.settings import NEEDS_RECORD
from api.settings import Settings, read_settings
from segdec.errors import ConfigError, MissingExtraError

SECRET = "whsec_" + "A" * 32


@pytest.fixture
def make_settings(tmp_path):
    def make(**more):
        return Settings(model=Path("unused"), record="required", record_folder=tmp_path, **more)

    return make


def test_receivers_of_the_settings_are_created(make_settings, tmp_path, metrics):
    (tmp_path / "secrets").write_text(SECRET)
    (tmp_path / "login").write_text("line:pa:ss\n")
    sinks = {"webhook": "https://mes.plant/events", "webhook_secrets": tmp_path / "secrets"}
    sinks |= {"mqtt": "mqtts://other:word@broker/plant", "mqtt_login": tmp_path / "login"}
    sinks |= {"mqtt_client": "line3", "jsonl": tmp_path / "events.jsonl"}
    settings = make_settings(**{f"outbox_{name}": value for name, value in sinks.items()})
    _, mqtt, _ = create_sinks(settings)
    broker = mqtt._broker
    assert (broker.host, broker.port, broker.user, broker.password) == ("broker", 8883, "line", "pa:ss")
    assert (broker.client_id, broker.tls_context is not None) == ("line3", True)
    receivers = create_receivers(settings, metrics)
    assert receivers.sinks == ("webhook", "mqtt", "jsonl")
    receivers.close()


def test_every_sink_is_listed_and_has_settings():
    """Otherwise its setting would be accepted, and nothing would be sent."""
    modules = [import_module(f"api.delivery.{module.name}") for module in iter_modules(api.delivery.__path__)]
    classes = {kind for module in modules for kind in vars(module).values() if isinstance(kind, type)}
    sinks = {kind for kind in classes if hasattr(kind, "deliver") and hasattr(kind, "from_settings")}
    assert sinks - {Sink} == set(SINKS)
    groups = [kind for kind in DeliverySettings.__bases__ if issubclass(kind, SinkSettings)]
    assert [signature(kind.from_settings).parameters["settings"].annotation for kind in SINKS] == groups
    for kind in SINKS:
        assert NEEDS_RECORD in DeliverySettings.model_fields[f"outbox_{kind.name}"].metadata


def test_without_settings_there_are_no_receivers(make_settings, metrics):
    receivers = create_receivers(make_settings(), metrics)
    receivers.start(lambda: True)
    receivers.close()
    assert receivers.sinks == ()
    assert b"outbox" not in metrics.render()[0]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("outbox_mqtt_login", "nobody\n", "USER:PASSWORD"),
        ("outbox_mqtt_login", "a:secret\nb:secret", "USER:PASSWORD"),
        ("outbox_mqtt_login", None, "Cannot read the broker's login"),
        ("outbox_ca", "no certificate", "Expected a PEM file"),
        ("outbox_webhook_secrets", None, "Cannot read the webhook's secrets"),
        ("outbox_jsonl", "folder", "Expected a file in an existing folder"),
    ],
)
def test_the_error_names_a_file_that_cannot_be_used(make_settings, tmp_path, name, text, words):
    file = tmp_path / "given"
    if text == "folder":
        file.mkdir()
    elif text is not None:
        file.write_text(text)
    receivers = {"outbox_webhook": "https://mes.plant/", "outbox_mqtt": "mqtts://broker/t"}
    with pytest.raises(ConfigError, match=words) as refusal:
        create_sinks(make_settings(**receivers, **{name: file}))
    assert str(file) in str(refusal.value)
    assert "secret\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "flags",
    [
        *(["--outbox-webhook", "https://mes.plant/"], ["--outbox-mqtt", "mqtt://broker/t"]),
        *(["--outbox-jsonl", "events.jsonl"], ["--opcua-endpoint", "opc.tcp://0.0.0.0:4840/segdec"]),
    ],
)
def test_receivers_need_a_record(flags):
    with pytest.raises(ConfigError, match=f"{flags[0]} needs a record"):
        read_settings(["--model", "m", *flags])
    assert read_settings(["--model", "m", "--record", "best-effort", *flags]).record == "best-effort"


@pytest.mark.parametrize(
    ("package", "setting", "group"),
    [
        ("httpx", {"outbox_webhook": "https://mes.plant/"}, "record"),
        ("paho.mqtt.client", {"outbox_mqtt": "mqtt://broker/t"}, "record"),
        ("asyncua", {"opcua_endpoint": "opc.tcp://127.0.0.1:4840/x"}, "opcua"),
    ],
)
def test_the_error_about_a_missing_package_names_its_group(
    make_settings, metrics, monkeypatch, package, setting, group
):
    monkeypatch.setitem(sys.modules, package, None)
    for module in [name for name in sys.modules if name.startswith("api.delivery.")]:
        if not module.endswith("receivers"):
            monkeypatch.delitem(sys.modules, module)
    with pytest.raises(MissingExtraError, match=f"--group {group}"):
        create_receivers(make_settings(**setting), metrics)
