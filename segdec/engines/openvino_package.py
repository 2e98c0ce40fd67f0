"""Imports OpenVINO without telemetry, and shares one `openvino.Core`."""

import sys
from functools import cache
from typing import Any

from segdec.errors import MissingExtraError


def import_openvino() -> Any:
    """Imports the package `openvino` without its telemetry; raises MissingExtraError if it is missing.

    By default it reports its import and every conversion to its makers. An inspection station must not send
    data. The processes that OpenVINO starts for telemetry also hang if TensorFlow has started threads.
    """
    if "openvino" not in sys.modules:
        sys.modules["openvino_telemetry"] = None  # type: ignore[assignment] # acts as not installed
    try:
        import openvino
    except ImportError as error:
        raise MissingExtraError("openvino", "openvino") from error
    return openvino


@cache
def openvino_core() -> Any:
    """Returns the only `openvino.Core` of the process, which is never freed.

    Each core replaces its thread's signal stack and restores the previous one when it is freed. Two cores
    that are freed in the wrong order leave an invalid stack, and the next signal kills the process (OpenVINO
    2026.4).
    """
    return import_openvino().Core()
