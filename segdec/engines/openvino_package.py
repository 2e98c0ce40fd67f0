"""OpenVINO as a package that stays by itself."""

import sys
from functools import cache
from typing import Any

from segdec.errors import MissingExtraError


def import_openvino() -> Any:
    """Imports the package `openvino`, without its telemetry.

    Of itself it reports its import and every conversion to its makers. An inspection station calls nobody,
    and the processes that it would fork to do so come to a halt beside TensorFlow's threads.

    Raises:
        MissingExtraError: If it is not installed.
    """
    if "openvino" not in sys.modules:
        sys.modules["openvino_telemetry"] = None  # type: ignore[assignment] # as if it were not installed
    try:
        import openvino
    except ImportError as error:
        raise MissingExtraError("openvino", "openvino") from error
    return openvino


@cache
def openvino_core() -> Any:
    """Returns the one `openvino.Core` of the process, which is never given back.

    Each gives its thread a stack for signals and, when it goes, the one that it had found. Two of them that
    do not go in the reverse order of their coming leave a stack that is no more: the next signal then kills
    the process (OpenVINO 2026.4).

    Raises:
        MissingExtraError: If OpenVINO is not installed.
    """
    return import_openvino().Core()
