"""Creates the sinks of the settings."""

import ssl
from pathlib import Path
from uuid import uuid4

from api.delivery.json_lines import JsonLines
from api.delivery.mqtt import Mqtt, read_mqtt_url
from api.delivery.mqtt_connection import Broker
from api.delivery.sink import Sink
from api.delivery.webhook import Webhook, load_secrets
from api.settings import Settings
from segdec.errors import ConfigError
from segdec.runtime.identifiers import FORBIDDEN


def create_sinks(settings: Settings) -> list[Sink]:
    """Creates the sinks without connecting.

    Raises:
        ConfigError: If an address or a file cannot be used.
    """
    sinks: list[Sink] = []
    if settings.outbox_webhook is not None:
        file = settings.outbox_webhook_secrets
        secrets = [] if file is None else load_secrets(file)
        sinks.append(Webhook(settings.outbox_webhook, secrets, _make_tls_context(settings.outbox_ca)))
    if settings.outbox_mqtt is not None:
        sinks.append(_create_mqtt(settings.outbox_mqtt, settings))
    if settings.outbox_jsonl is not None:
        sinks.append(_create_json_lines(settings.outbox_jsonl))
    return sinks


def _create_mqtt(url: str, settings: Settings) -> Mqtt:
    scheme, host, port, user, password, prefix = read_mqtt_url(url)
    if settings.outbox_mqtt_login is not None:
        user, password = _read_login(settings.outbox_mqtt_login)
    tls_context = _make_tls_context(settings.outbox_ca) if scheme == "mqtts" else None
    client_id = settings.outbox_mqtt_client or f"segdec-{uuid4().hex[:12]}"
    return Mqtt(Broker(host, port, user, password, tls_context, client_id), prefix)


def _create_json_lines(path: Path) -> JsonLines:
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise ConfigError(f"--outbox-jsonl {path} cannot be used. Expected a file in an existing folder.")
    return JsonLines(path.absolute())


def _read_login(file: Path) -> tuple[str, str]:
    try:
        user, colon, password = file.read_text("utf-8").strip("\r\n").partition(":")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read the broker's login in {file}: {error}.") from error
    if not user or not colon or "\n" in password or FORBIDDEN.search(user):
        raise ConfigError(f"{file} is not a broker login. Expected one line, USER:PASSWORD.")
    return user, password


def _make_tls_context(file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:  # includes invalid certificates
        raise ConfigError(f"--outbox-ca {file} cannot be read ({error}). Expected a PEM file.") from error
