"""Settings of keys, users and their log-in."""

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import NoDecode

from api.addresses import is_loopback
from api.record.settings import NEEDS_RECORD, RecordSettings
from api.roles import UserRole
from api.setting_group import flag_of
from segdec.errors import ConfigError


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


IssuerAddress = Annotated[str, AfterValidator(_issuer_address)]


class AccountSettings(RecordSettings):
    """Settings of keys, users and their log-in."""

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
    openid_issuer: Annotated[IssuerAddress | None, NEEDS_RECORD] = None
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

    def check(self) -> None:
        super().check()
        if self.openid_issuer is not None:
            needed = ("public_url", "openid_client", "openid_roles")
            missing = [flag_of(name) for name in needed if not getattr(self, name)]
            if missing:
                raise ConfigError(f"--openid-issuer needs further settings: {', '.join(missing)}.")
