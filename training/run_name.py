"""Names of runs: of folders, models and files."""

import os
import re
import unicodedata

from segdec.errors import ConfigError

PATTERN = r"^\w[\w.-]*$"
"""Digits, characters of any alphabet, `_`, `-` and `.`; the first is neither `-` nor `.`."""

MAX_NAME_BYTES = 150
"""File systems allow 255 bytes, and names of temporary files are longer than that of the run."""

DEFAULT = "run"


def make_run_name(text: str) -> str:
    """Makes a run's name from that of a folder: `Gehäuse außen (2)` becomes `Gehäuse_außen_2`.

    `run` if `text` has neither letters nor digits.
    """
    joined = re.sub(r"[^\w.-]+", "_", unicodedata.normalize("NFC", text))
    short = os.fsencode(joined.strip("_.-"))[:MAX_NAME_BYTES].decode(errors="ignore")
    return short.rstrip("_.-") or DEFAULT


def check_run_name(name: str) -> str:
    """Returns a name that may name a run; raises a `ConfigError` for others."""
    if not re.fullmatch(PATTERN.rstrip("$"), name) or len(os.fsencode(name)) > MAX_NAME_BYTES:
        raise ConfigError(
            f"'{name}' cannot name a run. Expected letters, digits, '_', '-' and '.', at most "
            f"{MAX_NAME_BYTES} bytes, for example '{make_run_name(name)}'; give it with --name."
        )
    return name
