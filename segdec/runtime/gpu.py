"""Why TensorFlow uses no GPU although the machine has one, in its own words."""

import os
import re
import subprocess
import sys
from pathlib import Path

DEVICES = Path("/dev")
"""Where NVIDIA's driver shows a file for each GPU that this process, or its container, may use."""
HIDDEN = ("", "-1")
"""Values of `CUDA_VISIBLE_DEVICES` by which a user takes the GPUs away."""
ASK = "import tensorflow; tensorflow.config.list_physical_devices('GPU')"
TIMEOUT_S = 120


def gpu_unused_reason() -> str | None:
    """Asks TensorFlow why it uses none of the GPUs that are there; TensorFlow must have started.

    It says so only while it is imported, and the entry points hide what it prints then: so another process
    imports it once more, which takes seconds, where a GPU is there and unused alone.

    Returns:
        Its words; None if it uses a GPU, the machine has none, or `CUDA_VISIBLE_DEVICES` hides them.
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
    return _reasons(asked.stderr) or "TensorFlow gives no reason. Try: nvidia-smi"


def _reasons(printed: str) -> str:
    """The sentences about GPUs in what TensorFlow `printed`, each once, without time and place."""
    told = [line.partition("] ")[2] for line in printed.splitlines() if re.search("gpu|cuda", line, re.I)]
    return " ".join(dict.fromkeys(reason.strip() for reason in told if reason.strip()))
