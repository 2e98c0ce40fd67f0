"""Settings of the server: its address, the limits of requests, the log."""

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)
from pydantic_settings import NoDecode

from api.setting_group import SettingGroup

LogFormat = Literal["text", "json"]


def _read_hosts(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    names = [word.strip() for word in value.split(",")]
    if not all(re.fullmatch(r"\*|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", name) for name in names):
        raise ValueError("expected names such as inspection.plant or *.plant, without https:// and port")
    return tuple(names)


def _read_networks(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return tuple(str(ipaddress.ip_network(word.strip())) for word in value.split(",") if word.strip())
    except ValueError as error:
        raise ValueError(f"{error}; expected addresses and networks such as 10.0.0.0/8,::1") from error


def _page_address(url: str) -> str:
    if not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", url):
        raise ValueError("expected an http or https address such as https://inspect.plant, without ? and #")
    return url.rstrip("/")


class ServerSettings(SettingGroup):
    """Settings of the server."""

    host: str = "127.0.0.1"
    """address to listen on"""
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """port to listen on; 0: a free one"""
    tls_certificate: Path | None = None
    """PEM file of the certificate chain: serves https"""
    tls_key: Path | None = None
    """PEM file of the certificate's private key"""
    public_url: Annotated[str, AfterValidator(_page_address)] | None = None
    """address at which people open the pages, for example https://inspect.plant; events link to them"""
    max_body_bytes: PositiveInt = 32 * 1024**2
    """largest request body, bytes"""
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
    deadline_ms: PositiveFloat = 30_000.0
    """milliseconds from a request's head to a 504 if there is no answer; a request may shorten it with the
    header X-Deadline-Ms"""
    retry_after_s: NonNegativeInt = 1
    """seconds in the Retry-After of a 503"""
    drain_delay_s: NonNegativeFloat = 0.0
    """seconds after SIGTERM in which new requests still get a 503"""
    drain_s: NonNegativeInt = 30
    """seconds after SIGTERM in which running requests may finish"""
    rate_limit: PositiveFloat | None = None
    """requests a second for each key (or address, without keys); more get a 429"""
    rate_burst: PositiveInt = 20
    """requests that may come at once within the rate limit"""
    allowed_hosts: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_read_hosts)] = ()
    """names in the URLs of clients, for example inspection.plant,*.plant; others get a 400, except IP
    addresses, names without a dot, those ending in .local or .internal, and the machine's own name; *: any
    name"""
    trusted_proxies: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_read_networks)] = ()
    """addresses and networks of proxies, for example 127.0.0.1,10.0.0.0/8: X-Forwarded-For and
    X-Forwarded-Proto from these alone name the client and https"""
    cors_origins: tuple[str, ...] = ()
    """web origins whose pages may call the service, for example https://hmi.plant"""
    page: bool = True
    """serve the page for inspecting photographs at /"""
    access_log: bool = False
    """log a line for each request"""
    log_format: LogFormat = "text"
    """format of the log on stderr"""
