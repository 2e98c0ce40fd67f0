"""Reads inspection plans from TOML files."""

import base64
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from segdec.config import config_error
from segdec.errors import ConfigError, ImageError
from segdec.images import encode_png, read_mask
from segdec.imaging.inspected_area import MAX_BASE64_CHARACTERS
from segdec.plan.inspection_plan import Plan

MAX_FILE_BYTES = 2**20

GREY_LEVEL = 127
"""Levels of a mask up to which a pixel is outside: compression and smoothing make grey ones."""


def read_plan(path: Path) -> Plan:
    """Reads a plan.

    Raises:
        ConfigError: If the file cannot be read, has more than `MAX_FILE_BYTES`, is not TOML or not a plan.
    """
    expected = "Expected a TOML file with an inspection plan, as in docs/plan.md"
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"The plan {path} cannot be read: {reason}. {expected}.") from error
    if len(content) > MAX_FILE_BYTES:
        raise ConfigError(f"The plan {path} has more than {MAX_FILE_BYTES} bytes. {expected}.")
    return parse_plan(content, str(path), path.parent)


def parse_plan(content: bytes, name: str, folder: Path | None = None) -> Plan:
    """Parses the TOML of a plan; `name` names it in errors, which are those of `read_plan`.

    Paths of masks are relative to `folder`; None: masks are base64.
    """
    try:
        values = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"The plan {name} is not valid TOML: {error}.") from error
    if folder is not None:
        _read_masks(values, folder)
    try:
        return Plan.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"The plan {name} is not valid.\n{config_error(error, Plan)}") from error


def _read_masks(values: dict[str, Any], folder: Path) -> None:
    """Replaces the path of each zone's mask by the content of the file, as base64."""
    zones = values.get("zones")
    for name, zone in zones.items() if isinstance(zones, dict) else ():
        if isinstance(zone, dict) and isinstance(zone.get("mask"), str):
            path = folder / zone["mask"]
            try:
                drawn = encode_png(read_mask(path, threshold=GREY_LEVEL))
                zone["mask"] = base64.b64encode(drawn).decode("ascii")
            except (OSError, ValueError, ImageError) as error:
                raise ConfigError(f"The mask of the zone '{name}' cannot be read: {error}") from error
            if len(zone["mask"]) > MAX_BASE64_CHARACTERS:
                raise ConfigError(
                    f"The mask of the zone '{name}' has too many details. Expected simple shapes."
                )
