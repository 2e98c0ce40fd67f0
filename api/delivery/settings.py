"""Settings of the receivers of events, and of the OPC UA server."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, PositiveInt

from api.accounts.settings import AccountSettings
from api.record.settings import MAX_DAYS, NEEDS_RECORD, RecordSettings
from segdec.runtime.identifiers import check_identifier

ClientId = Annotated[str, Field(min_length=1, max_length=128), AfterValidator(check_identifier)]


class SinkSettings(RecordSettings):
    """Settings of all sinks."""

    outbox_ca: Path | None = None
    """PEM file of certificates to verify receivers with; default: the system's"""
    outbox_hours: Annotated[float, Field(gt=0, le=24 * MAX_DAYS)] = 72.0
    """hours for which sending an event is retried, until it is marked dead"""
    outbox_rows: PositiveInt = 1_000_000
    """most events stored for one receiver, waiting or dead; above it, the oldest are dropped, dead ones
    first"""


class WebhookSettings(SinkSettings):
    """Settings of the webhook."""

    outbox_webhook: Annotated[str | None, NEEDS_RECORD] = None
    """http or https address that receives an event for each inspection and review"""
    outbox_webhook_secrets: Path | None = None
    """file of whsec_BASE64 lines; each of them signs the events of the webhook"""


class MqttSettings(SinkSettings):
    """Settings of the MQTT client."""

    outbox_mqtt: Annotated[str | None, NEEDS_RECORD] = None
    """MQTT broker (5 or 3.1.1) that receives the same events, mqtt://HOST:PORT/TOPIC, mqtts:// with TLS;
    USER:PASSWORD@ may precede the host (then use the variable, not the flag)"""
    outbox_mqtt_login: Path | None = None
    """file of one line, USER:PASSWORD of the broker"""
    outbox_mqtt_client: ClientId | None = None
    """client identifier at the broker; default: a different one for each process"""


class JsonLinesSettings(SinkSettings):
    """Settings of the file with an event in each line."""

    outbox_jsonl: Annotated[Path | None, NEEDS_RECORD] = None
    """file to which the same events are appended, one a line; recreated after a rotation"""


class OpcUaSettings(AccountSettings):
    """Settings of the OPC UA server."""

    opcua_endpoint: Annotated[str | None, NEEDS_RECORD] = None
    """address of an OPC UA server with the state of the line, for example opc.tcp://0.0.0.0:4840/segdec;
    needs the group opcua"""
    opcua_certificate: Path | None = None
    """certificate of the OPC UA server, PEM or DER; clients then have to sign and encrypt"""
    opcua_key: Path | None = None
    """private key of that certificate, PEM or DER"""
    opcua_anonymous: bool = False
    """let OPC UA clients read without a user name; on a loopback address they may anyway, if there are no
    keys"""


class DeliverySettings(WebhookSettings, MqttSettings, JsonLinesSettings, OpcUaSettings):
    """Settings of everything that receives what the record gets."""
