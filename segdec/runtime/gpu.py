"""Finds out why TensorFlow does not use an existing GPU."""

import os
import re
import subprocess
import sys
from pathlib import Path

DEVICES = Path("/dev")
"""Where NVIDIA's driver has a file for each GPU that this process or container may use."""
HIDDEN = ("", "-1")
"""Values of `CUDA_VISIBLE_DEVICES` that hide all GPUs."""
ASK = "import tensorflow; tensorflow.config.list_physical_devices('GPU')"
TIMEOUT_S = 120


def gpu_unused_reason() -> str | None:
    """Returns why TensorFlow, already imported, does not use a GPU that the machine has.

    TensorFlow prints the reason only during its import, which the entry points hide. Another process
    therefore imports it again; this takes seconds, but only if a GPU is present and unused. None if
    TensorFlow uses a GPU, there is none, or `CUDA_VISIBLE_DEVICES` hides them.
    """
    import tensorflow as tf

    if os.environ.get("CUDA_VISIBLE_DEVICES") in HIDDEN or not any(DEVICES.glob("nvidia[0-9]*")):
        return None
    if tf.config.list_physical_devices("GPU"):
        return None
    asked = subprocess.run(
        [sys.executable, "-c", ASK],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0"},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TIMEOUT_S,
        check=False,
    )
    lines = [line for line in asked.stderr.splitlines() if re.search("gpu|cuda", line, re.I)]
    messages = dict.fromkeys(line.partition("] ")[2].strip() for line in lines)  # without time and source
    return " ".join(filter(None, messages)) or "TensorFlow gives no reason. Try: nvidia-smi"
