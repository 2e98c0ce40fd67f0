"""The settings of the service, by flag (`--max-pixels`) or environment (`SEGDEC_MAX_PIXELS`); flags win."""

import os
import re
from collections.abc import Iterable, Sequence
from datetime import time
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)
from pydantic_settings import BaseSettings, CliApp, NoDecode, SettingsConfigDict, SettingsError

from api.addresses import is_loopback
from api.roles import UserRole
from segdec.artifact import UnlikeAction
from segdec.config import config_error
from segdec.engines import ENGINES
from segdec.errors import ConfigError
from segdec.runtime.identifiers import check_identifier
from segdec.runtime.suggestions import nearest_name
from segdec.runtime.threads import MAX_THREADS, available_cores

ENV_PREFIX = "SEGDEC_"
CLIENT_VARIABLES = {"SEGDEC_API_KEY"}
"""Variables of `python -m segdec predict --url`, which may run on the same machine."""

LogFormat = Literal["text", "json"]
RecordMode = Literal["required", "best-effort", "off"]
MAX_DAYS = 36_500.0
"""Longest finite time of keeping pictures."""
Days = Annotated[float, Field(gt=0, le=MAX_DAYS)]
Gigabytes = Annotated[float, Field(gt=0, le=1e9)]
Share = Annotated[float, Field(ge=0, le=1)]
ClientId = Annotated[str, Field(min_length=1, max_length=128), AfterValidator(check_identifier)]
ScheduledKind = Literal["shift", "day", "week"]
MailAddress = Annotated[str, Field(pattern=r"^[^@\s<>,]+@[^@\s<>,]+$")]
RECORD_SETTINGS = (
    "outbox_webhook",
    "outbox_mqtt",
    "outbox_jsonl",
    "opcua_endpoint",
    "openid_issuer",
    "report_schedule",
    "sam",
)
"""Settings of receivers, users, reports and labelling, which need a record."""
OPENID_SETTINGS = ("public_url", "openid_client", "openid_roles")


def _known_engine(name: str) -> str:
    if name not in ENGINES:
        raise ValueError(f"unknown; expected one of: {', '.join(ENGINES)}")
    return name


def _read_shifts(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    words = [word.strip() for word in value.split(",")]
    if not all(re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", word) for word in words):
        raise ValueError("expected times of the day such as 06:00,14:00,22:00")
    return tuple(sorted({time.fromisoformat(word) for word in words}))


def _read_words(value: Any) -> Any:
    return [word.strip() for word in value.split(",") if word.strip()] if isinstance(value, str) else value


def _read_hosts(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    names = [word.strip() for word in value.split(",")]
    if not all(re.fullmatch(r"\*|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", name) for name in names):
        raise ValueError("expected names such as inspection.plant or *.plant, without https:// and port")
    return tuple(names)


def _page_address(url: str) -> str:
    if not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", url):
        raise ValueError("expected an http or https address such as https://inspect.plant, without ? and #")
    return url.rstrip("/")


def _issuer_address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        raise ValueError("expected an https address such as https://login.plant/realms/plant")
    return url


def _read_roles(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    pairs = [word.rpartition("=") for word in value.split(",") if word.strip()]
    return {group.strip(): role.strip() for group, _, role in pairs}


def _known_zone(name: str) -> str:
    try:
        return ZoneInfo(name).key
    except (KeyError, ValueError, OSError) as error:  # unknown, not a file name, or a folder
        raise ValueError("unknown; expected a time zone such as Europe/Berlin") from error


def _cores_but_one() -> int:
    return min(max(available_cores() - 1, 1), 8)


class Settings(BaseSettings):
    """Serves a model over HTTP.

    Other commands, each with --help: key NAME (a key for clients), health, export-reviewed, report,
    user add NAME (people who log in to the pages).
    """

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_ignore_empty=True,
        frozen=True,
        use_attribute_docstrings=True,
        cli_prog_name="python -m api",
        cli_kebab_case=True,
        cli_implicit_flags=True,
        cli_exit_on_error=False,
        cli_parse_none_str="none",
        env_parse_none_str="none",
    )

    # === Models and address ===
    model: Path | None = None
    """folder of one exported model"""
    models: Path | None = None
    """folder of several models: NAME/VERSION/ (or NAME/ as fit writes it), NAME/labels.json has labels"""
    allow_no_model: bool = False
    """start although the folder of --models has no model yet, to train the first one"""
    default_model: str | None = None
    """name of the model that /v1/predict uses; not needed if there is only one"""
    require_signature: Path | None = None
    """PEM file of trusted public keys, read again at each reload; a model that none of them signed is not
    served"""
    host: str = "127.0.0.1"
    """address to listen on"""
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """port to listen on; 0: a free one"""
    tls_certificate: Path | None = None
    """PEM file of the certificate chain: serves https"""
    tls_key: Path | None = None
    """PEM file of the certificate's private key"""

    # === Requests ===
    max_body_bytes: PositiveInt = 32 * 1024**2
    """largest request body, bytes"""
    max_pixels: PositiveInt = 2**24
    """largest photograph, height × width; smaller if the model, measured when it is loaded, would need more
    memory than available"""
    max_side: PositiveInt = 2**14
    """longest side of a photograph, px"""
    accept_webp: bool = False
    """accept WebP files; they are rejected otherwise, because their damage is not detected: a file that is
    half zeros may be answered as good"""
    unlike_training: UnlikeAction = "reject"
    """whether a photograph that is unlike those of the training (black, out of focus, another product) is
    rejected or inspected with a warning; a model without limits accepts any photograph"""
    max_batch_files: PositiveInt = 64
    """maximum number of photographs in a batch request"""
    max_uploads: PositiveInt = 64
    """request bodies read at the same time, at most half of them from one key (or address, without keys);
    more replace slow ones, or get a 503"""
    max_upload_bytes: PositiveInt | None = None
    """memory for request bodies, from their first byte to their answer; more get a 503; default: an eighth of
    memory-bytes, at least enough for the largest body"""
    memory_bytes: PositiveInt | None = None
    """memory that the process may use; default: the lowest limit of its control groups (the container) and
    the machine"""
    upload_timeout_s: PositiveFloat = 30.0
    """seconds in which a body has to arrive, and in which a client has to read some of its answer"""
    keep_alive_s: PositiveInt = 75
    """seconds for which an idle connection stays open; longer than proxies keep it (often 60 s), or they send
    requests on a closed connection"""
    max_connections: PositiveInt = 512
    """open connections; above it, a new one replaces the one that is idle longest, or gets a 503"""

    # === Scheduling ===
    queue_size: NonNegativeInt = 32
    """photographs that may wait while others run; more get a 503"""
    batch_sizes: tuple[Annotated[int, Field(gt=0)], ...] = Field((1, 2, 4, 8), min_length=1)
    """numbers of photographs that the network processes together"""
    batch_pixels: PositiveInt | None = None
    """most pixels in a batch, also of tiles; default: 524,288 on a CPU (131,072 with OpenVINO), where more
    are not faster, and 16,777,216 on a GPU"""
    batch_wait_ms: NonNegativeFloat = 0.0
    """milliseconds to wait for a batch to fill; above 0, every answer is slower"""
    deadline_ms: PositiveFloat = 30_000.0
    """milliseconds from a request's head to a 504 if there is no answer; a request may shorten it with the
    header X-Deadline-Ms"""
    engine_timeout_s: PositiveFloat = 120.0
    """seconds that a batch in the engine, or a photograph in an image thread, may take; after that the
    service is stalled and rejects photographs until the step ends; a step of loading a model may take five
    times as long"""
    engine_lost_s: PositiveFloat = 300.0
    """seconds after which a hanging step makes /livez fail, so that the process is replaced; a minute later
    the process exits with code 70"""
    retry_after_s: NonNegativeInt = 1
    """seconds in the Retry-After of a 503"""
    engine: Annotated[str, AfterValidator(_known_engine)] | None = Field(
        None,
        description=f"engine of the models, {', '.join(ENGINES)}; default: the preferred one of those that "
        "the model was exported for and that are installed",
    )
    threads: Annotated[int, Field(gt=0, le=MAX_THREADS)] | None = None
    """threads of the engine; default: one for each core of the process"""
    image_threads: PositiveInt = Field(default_factory=_cores_but_one)
    """threads that decode photographs and encode masks, and threads of SAM; default: cores − 1, at most 8"""
    drain_delay_s: NonNegativeFloat = 0.0
    """seconds after SIGTERM in which new requests still get a 503"""
    drain_s: NonNegativeInt = 30
    """seconds after SIGTERM in which running requests may finish"""

    # === Record ===
    record: RecordMode = "off"
    """whether /v1/inspect records inspections: required answers 503 if it cannot, best-effort answers with a
    warning, off records nothing"""
    record_folder: Path = Path("record")
    """folder of the record's pictures and database, unless the next two settings name others"""
    record_pictures: str | None = None
    """store of the pictures, s3://BUCKET/PREFIX, configured by the variables AWS_…; default: files in
    record-folder"""
    record_database: str | None = None
    """URL of the record's database, postgresql://USER:PASSWORD@HOST/NAME; default: an SQLite file in
    record-folder"""
    record_defect_share: Share = 1.0
    """share of the defects, and of photographs for review, that is queued for review"""
    record_good_share: Share = 0.02
    """random share of the good photographs that is queued for review: it estimates how many defects are
    missed"""
    record_near: Share = 0.5
    """fraction of the threshold: good photographs above it are all queued for review; 1: none of them"""
    record_good_days: Days | None = 30.0
    """days for which pictures of good photographs are kept; none: without limit"""
    record_sample_share: Share = 0.02
    """random share of the good photographs that is kept longer, as a sample"""
    record_sample_days: Days | None = 365.0
    """days for which that sample, and photographs queued for review, are kept"""
    record_defect_days: Days | None = 730.0
    """days for which pictures of defects, and of photographs for review, are kept"""
    record_reviewed_days: Days | None = None
    """days for which reviewed pictures are kept; default: without limit"""
    record_budget_gb: Gigabytes | None = None
    """most gigabytes of pictures; above it, the least valuable are deleted first"""
    record_free_share: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """share of the pictures' disk that stays free; deletes the least valuable pictures first, unless
    that cannot suffice"""
    record_reserved_mb: NonNegativeFloat = 64.0
    """megabytes of the pictures' disk that are reserved by a file, for deleting pictures when the disk is
    full; 0: none"""

    import_gb: Gigabytes = 20.0
    """most gigabytes of an archive for a data set, and of its files after unpacking"""
    import_minutes: PositiveFloat = 60.0
    """minutes that reading an archive may take"""
    import_memory_gb: Gigabytes = 6.0
    """gigabytes of address space for reading an archive, in a process of its own"""
    sam: Path | None = None
    """folder with encoder and decoder of SAM 2.1 as ONNX files, which then find the masks from clicks on
    /label; needs the group sam"""

    record_shifts: Annotated[tuple[time, ...], NoDecode, BeforeValidator(_read_shifts)] = Field(
        "06:00,14:00,22:00", validate_default=True, min_length=1
    )
    """start times of the shifts, for the counts at /line and for reports"""
    record_zone: Annotated[str, AfterValidator(_known_zone)] = "UTC"
    """time zone of the plant, for shifts and days at /line, /trends and in reports: Europe/Berlin"""

    # === Reports ===
    report_schedule: Annotated[tuple[ScheduledKind, ...], NoDecode, BeforeValidator(_read_words)] = ()
    """reports that are made at the end of each period: shift,day,week"""
    report_folder: Path | None = None
    """folder for these reports, as PDF and Excel"""
    report_smtp: str | None = None
    """mail server that sends them, smtp://HOST:PORT, smtps:// with TLS; USER:PASSWORD@ may precede the host
    (then use the variable, not the flag)"""
    report_from: str = ""
    """e-mail address of the sender"""
    report_to: Annotated[tuple[MailAddress, ...], NoDecode, BeforeValidator(_read_words)] = ()
    """e-mail addresses of the receivers, separated by commas"""
    report_language: str = "en"
    """language of these reports: en, de"""

    # === Receivers of messages ===
    public_url: Annotated[str, AfterValidator(_page_address)] | None = None
    """address at which people open the pages, for example https://inspect.plant; events link to them"""
    outbox_webhook: str | None = None
    """http or https address that receives an event for each inspection and review"""
    outbox_webhook_secrets: Path | None = None
    """file of whsec_BASE64 lines; each of them signs the events of the webhook"""
    outbox_mqtt: str | None = None
    """MQTT broker (5 or 3.1.1) that receives the same events, mqtt://HOST:PORT/TOPIC, mqtts:// with TLS;
    USER:PASSWORD@ may precede the host (then use the variable, not the flag)"""
    outbox_mqtt_login: Path | None = None
    """file of one line, USER:PASSWORD of the broker"""
    outbox_mqtt_client: ClientId | None = None
    """client identifier at the broker; default: a different one for each process"""
    outbox_jsonl: Path | None = None
    """file to which the same events are appended, one a line; recreated after a rotation"""
    outbox_ca: Path | None = None
    """PEM file of certificates to verify receivers with; default: the system's"""
    outbox_hours: Annotated[float, Field(gt=0, le=24 * MAX_DAYS)] = 72.0
    """hours for which sending an event is retried, until it is marked dead"""
    outbox_rows: PositiveInt = 1_000_000
    """most events stored for one receiver, waiting or dead; above it, the oldest are dropped, dead ones
    first"""
    opcua_endpoint: str | None = None
    """address of an OPC UA server with the state of the line, for example opc.tcp://0.0.0.0:4840/segdec;
    needs the group opcua"""
    opcua_certificate: Path | None = None
    """certificate of the OPC UA server, PEM or DER; clients then have to sign and encrypt"""
    opcua_key: Path | None = None
    """private key of that certificate, PEM or DER"""
    opcua_anonymous: bool = False
    """let OPC UA clients read without a user name; on a loopback address they may anyway, if there are no
    keys"""

    # === Access ===
    api_keys: Path | None = None
    """file of NAME:SHA256 lines, keys that may predict; without it everyone may"""
    review_keys: Path | None = None
    """file of NAME:SHA256 lines, keys that may also read and review the record; without it everyone may if no
    other keys are set, otherwise only admin keys"""
    admin_keys: Path | None = None
    """file of NAME:SHA256 lines, keys that may also change models; without it nobody may"""
    train_keys: Path | None = None
    """file of NAME:SHA256 lines, keys of training workers, which may fetch training jobs and nothing else;
    without it there are no workers"""
    local_role: UserRole = "quality"
    """role of everybody on this machine while there are neither users nor keys, on a loopback address that
    nobody else can reach"""
    openid_issuer: Annotated[str, AfterValidator(_issuer_address)] | None = None
    """address of an OpenID Connect provider at which people log in, for example
    https://login.plant/realms/plant; needs public-url, openid-client and openid-roles"""
    openid_client: str | None = None
    """identifier of this service at the provider"""
    openid_secret: Path | None = None
    """file with the secret of this service at the provider; none for a public client"""
    openid_claim: str = "groups"
    """claim of the ID token that lists the groups of a person"""
    openid_roles: Annotated[dict[str, UserRole], NoDecode, BeforeValidator(_read_roles)] = Field(
        default_factory=dict
    )
    """roles of groups at the provider, GROUP=ROLE: qs-team=quality,it=administrator; others may not log in"""
    openid_hours: Annotated[float, Field(gt=0, le=168)] = 12.0
    """hours after which a person logs in at the provider again, so that changed groups count"""
    rate_limit: PositiveFloat | None = None
    """requests a second for each key (or address, without keys); more get a 429"""
    rate_burst: PositiveInt = 20
    """requests that may come at once within the rate limit"""
    allowed_hosts: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_read_hosts)] = ()
    """names in the URLs of clients, for example inspection.plant,*.plant; others get a 400, except IP
    addresses, names without a dot, those ending in .local or .internal, and the machine's own name; *: any
    name"""
    cors_origins: tuple[str, ...] = ()
    """web origins whose pages may call the service, for example https://hmi.plant"""

    # === Page and log ===
    page: bool = True
    """serve the page for inspecting photographs at /"""
    access_log: bool = False
    """log a line for each request"""
    log_format: LogFormat = "text"
    """format of the log on stderr"""


def read_settings(arguments: Sequence[str]) -> Settings:
    """Reads the settings from command-line `arguments`, then from the process's environment.

    Args:
        arguments: The command line without the program's name.

    Raises:
        ConfigError: If a flag or a variable is unknown, or a value cannot be used.
    """
    _refuse_unknown((word.split("=")[0] for word in arguments if word.startswith("--")), _known_flags())
    variables = {name.upper() for name in os.environ if name.upper().startswith(ENV_PREFIX)}
    known = [ENV_PREFIX + field.upper() for field in Settings.model_fields]
    _refuse_unknown(variables - CLIENT_VARIABLES, known)
    try:
        settings = CliApp.run(Settings, cli_args=list(arguments))
    except SettingsError as error:
        raise ConfigError(f"{error}. The flags are listed by: python -m api --help") from error
    except ValidationError as error:
        raise config_error(error, Settings) from error
    _check(settings)
    return settings


def _check(settings: Settings) -> None:
    """Rejects settings that contradict each other."""
    if settings.model is None and settings.models is None:
        raise ConfigError(
            "No model given. Pass --model FOLDER, an exported model, or --models FOLDER, several of them, or "
            f"set {ENV_PREFIX}MODEL or {ENV_PREFIX}MODELS."
        )
    if settings.model is not None and settings.models is not None:
        raise ConfigError(
            f"Both --model {settings.model} and --models {settings.models} are given (a flag, or a variable "
            f"{ENV_PREFIX}…). Expected one of them."
        )
    if settings.allow_no_model and settings.models is None:
        raise ConfigError("--allow-no-model needs --models FOLDER, where the first model will be put.")
    if settings.deadline_ms > 1000 * settings.engine_timeout_s:
        raise ConfigError(
            f"--deadline-ms {settings.deadline_ms:g} is longer than --engine-timeout-s "
            f"{settings.engine_timeout_s:g}: the engine would be stalled before the deadline. "
            f"Raise --engine-timeout-s to {settings.deadline_ms / 1000:g} or more."
        )
    if settings.engine_lost_s < settings.engine_timeout_s:
        raise ConfigError(
            f"--engine-lost-s {settings.engine_lost_s:g} is shorter than --engine-timeout-s "
            f"{settings.engine_timeout_s:g}. Expected at least as long."
        )
    _check_record_settings(settings)


def _check_record_settings(settings: Settings) -> None:
    for name in RECORD_SETTINGS:
        if getattr(settings, name) and settings.record == "off":
            raise ConfigError(
                f"--{name.replace('_', '-')} needs a record. Pass --record required or best-effort."
            )
    if settings.openid_issuer is not None:
        missing = [name for name in OPENID_SETTINGS if not getattr(settings, name)]
        if missing:
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in missing)
            raise ConfigError(f"--openid-issuer needs further settings: {flags}.")
    if settings.report_schedule and settings.report_folder is None and settings.report_smtp is None:
        raise ConfigError("--report-schedule needs --report-folder or --report-smtp.")
    if settings.report_smtp is not None and not (settings.report_from and settings.report_to):
        raise ConfigError("--report-smtp needs --report-from and --report-to.")


def _known_flags() -> list[str]:
    flags = ["--help"]
    for name, field in Settings.model_fields.items():
        kebab = name.replace("_", "-")
        flags += [f"--{kebab}", f"--no-{kebab}"] if field.annotation is bool else [f"--{kebab}"]
    return flags


def _refuse_unknown(names: Iterable[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise ConfigError(f"Unknown setting {name}. Did you mean {nearest_name(name, known)}?")
