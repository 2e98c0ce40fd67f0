"""Downloads the ImageNet weights of an encoder with `keras.applications`."""

import json
import os
import subprocess
import sys
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


def download_imagenet(row: Encoder, path: Path) -> None:
    """Downloads to `path`, atomically.

    Keras writes to the final file, which a killed process would leave incomplete. Its folder is read from the
    environment when it is imported, hence the second process with a temporary one.

    Raises:
        ConfigError: If the weights cannot be downloaded or are damaged.
    """
    print(f"Downloading {path.name} to {path.parent}", flush=True)
    with TemporaryDirectory(prefix=".download-", dir=path.parent) as folder:
        command = [sys.executable, "-c", SCRIPT, row.application, json.dumps(dict(row.arguments))]
        environment = {**os.environ, "KERAS_HOME": folder}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ConfigError((done.stderr.strip().splitlines() or ["no message"])[-1])
        Path(folder, "models", path.name).replace(path)
