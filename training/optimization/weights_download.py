"""Downloads the published weights of an encoder."""

import hashlib
import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory

from segdec.encoders import Encoder
from segdec.errors import ConfigError

SCRIPT = """
import json, sys, keras
build, arguments = getattr(keras.applications, sys.argv[1]), json.loads(sys.argv[2])
build(include_top=False, weights="imagenet", input_shape=(None, None, 3), **arguments)
"""
"""Downloads into KERAS_HOME, compares the checksum if Keras knows it, and reads all weights."""


TIMEOUT_S = 60.0
"""Time without an answer after which a download fails, s."""


def download_weights(row: Encoder, path: Path) -> None:
    """Downloads to `path`, atomically.

    Raises:
        ConfigError: If the weights cannot be downloaded or are damaged.
        OSError: If the address of the row cannot be reached, or the file cannot be written.
    """
    print(f"Downloading {path.name} to {path.parent}", flush=True)
    with TemporaryDirectory(prefix=".download-", dir=path.parent) as folder:
        if row.url is None:
            _download_with_keras(row, folder)
        else:
            _download_file(row.url, row.sha256, Path(folder, "models", path.name))
        Path(folder, "models", path.name).replace(path)


def _download_file(url: str, sha256: str | None, path: Path) -> None:
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
        data = answer.read()
    if (digest := hashlib.sha256(data).hexdigest()) != sha256:
        raise ConfigError(f"{url} has the SHA-256 {digest}, expected {sha256}")
    path.parent.mkdir()
    path.write_bytes(data)


def _download_with_keras(row: Encoder, folder: str) -> None:
    """Downloads with `keras.applications` to `models` in the folder.

    Keras writes to the final file, which a killed process would leave incomplete. Its folder is read from the
    environment when it is imported, hence the second process with a temporary one.
    """
    command = [sys.executable, "-c", SCRIPT, row.application, json.dumps(dict(row.arguments))]
    environment = {**os.environ, "KERAS_HOME": folder}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigError((done.stderr.strip().splitlines() or ["no message"])[-1])
