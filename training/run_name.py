"""Names of runs: of folders, models and files."""

import os
import re
import unicodedata

from segdec.errors import ConfigError
from segdec.runtime.identifiers import is_reserved_folder

PATTERN = r"^\w[\w.-]*$"
"""Digits, characters of any alphabet, `_`, `-` and `.`; the first is neither `-` nor `.`."""

MAX_NAME_BYTES = 150
"""File systems allow 255 bytes, and names of temporary files are longer than that of the run."""

DEFAULT = "run"


def make_run_name(text: str) -> str:
    """Makes a run's name from that of a folder: `Gehäuse außen (2)` becomes `Gehäuse_außen_2`.

    `run` if `text` has neither letters nor digits; a name that folders of models must not have is changed.
    """
    joined = re.sub(r"[^\w.-]+", "_", unicodedata.normalize("NFC", text))
    name = _shortened(joined.strip("_.-"))
    return _shortened(f"{DEFAULT}_{name.replace('.', '_')}") if is_reserved_folder(name) else name or DEFAULT


def _shortened(name: str) -> str:
    return os.fsencode(name)[:MAX_NAME_BYTES].decode(errors="ignore").rstrip("_.-")


def check_run_name(name: str) -> str:
    """Returns a name that may name a run; raises a `ConfigError` for others."""
    is_short = len(os.fsencode(name)) <= MAX_NAME_BYTES
    if not is_short or not re.fullmatch(PATTERN.rstrip("$"), name) or is_reserved_folder(name):
        raise ConfigError(
            f"'{name}' cannot name a run. Expected letters, digits, '_', '-' and '.', at most "
            f"{MAX_NAME_BYTES} bytes, no device of Windows, not ending in '.' or '.json', for example "
            f"'{make_run_name(name)}'; give it with --name."
        )
    return name
