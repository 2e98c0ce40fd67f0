"""What, beside configuration and data, decides the last bits of a run: versions, threads, devices."""

import os
import platform
from importlib.metadata import version

import tensorflow as tf

PACKAGES = ("tensorflow", "keras", "numpy", "opencv-python-headless")


def describe_environment() -> dict[str, str]:
    """Name → value of whatever may change rounding or order of additions on this machine."""
    threads = tf.config.threading
    return {
        **{package: version(package) for package in PACKAGES},
        "machine": platform.machine(),
        "cpus": str(os.cpu_count()),
        "intra_op_threads": str(threads.get_intra_op_parallelism_threads()),
        "oneDNN": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default"),
        "devices": ", ".join(device.name for device in tf.config.list_logical_devices()),
    }


def describe_differences(former: dict[str, str], present: dict[str, str]) -> list[str]:
    """One phrase for each value that differs: `cpus: 8, now 2`."""
    return [
        f"{name}: {former.get(name, 'unknown')}, now {value}"
        for name, value in present.items()
        if former.get(name) != value
    ]
