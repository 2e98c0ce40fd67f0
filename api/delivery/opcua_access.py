"""Who may read the state of the line by OPC UA."""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from api.addresses import is_loopback
from api.delivery.settings import OpcUaSettings
from segdec.errors import ConfigError

CheckLogin = Callable[[str, str], bool]
"""Returns whether a user name and its key may read."""


@dataclass(frozen=True)
class OpcUaAccess:
    """Who may read.

    `anonymous`: clients may read without a user name. `check_login` checks user names; None: none are
    accepted.
    """

    anonymous: bool
    check_login: CheckLogin | None = None


def opcua_access(endpoint: str, settings: OpcUaSettings, check_login: CheckLogin) -> OpcUaAccess:
    """Returns who may read, according to the settings; raises a ConfigError if nobody could."""
    keys = settings.review_keys or settings.admin_keys
    has_keys = keys or settings.api_keys
    anonymous = settings.opcua_anonymous or (not has_keys and _is_loopback(endpoint))
    # Without a certificate, passwords would be sent in plain text.
    with_login = bool(keys) and settings.opcua_certificate is not None
    if not anonymous and not with_login:
        raise ConfigError(
            f"Nobody could read from --opcua-endpoint {endpoint}. Pass --review-keys, --opcua-certificate "
            "and --opcua-key: clients then log in with name and key. Or pass --opcua-anonymous: everybody "
            "may read."
        )
    return OpcUaAccess(anonymous, check_login if with_login else None)


def _is_loopback(endpoint: str) -> bool:
    try:
        return is_loopback(urlsplit(endpoint).hostname or "")
    except ValueError:  # not an address, which the server reports
        return False
