"""What every framework does with a photograph: the same decoder, the same stub, the same answer.

Imported in the peers' environments, which have OpenCV and NumPy but not `segdec`.
"""

import base64
import math
import os
import time
from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

STRIDE = 8
"""Pixels per mask logit along each side."""
CLASS_LOGITS = (1.0, 3.0)
MASK_LOGIT = 4.0
MODEL_MS = "BENCHMARK_MODEL_MS"
"""Environment variable: how long a call of the stub takes, milliseconds."""
MODEL_MS_EACH = "BENCHMARK_MODEL_MS_EACH"
"""Environment variable: how much longer for each photograph of the call, milliseconds."""
MAX_BATCH = "BENCHMARK_MAX_BATCH"
"""Environment variable: photographs that a framework may give to one call; 1 = it shall not batch."""


def run_stub(count: int) -> None:
    """Takes as long as the model would for `count` photographs.

    It sleeps, as a thread does that waits for an accelerator, so that no core is taken from the framework.
    """
    time.sleep((_number(MODEL_MS, 1) + count * _number(MODEL_MS_EACH, 0)) / 1000)


def max_batch() -> int:
    """Returns how many photographs a framework may give to one call."""
    return int(_number(MAX_BATCH, 1))


def mask_logits(height: int, width: int) -> NDArray[np.float32]:
    """Returns logits [height/8, width/8]: a defect in the middle third."""
    rows, columns = height // STRIDE, width // STRIDE
    logits = np.full((rows, columns), -MASK_LOGIT, np.float32)
    logits[rows // 3 : 2 * rows // 3, columns // 3 : 2 * columns // 3] = MASK_LOGIT
    return logits


def inspect(photographs: Sequence[bytes]) -> list[dict[str, Any]]:
    """Decodes photographs, asks the stub once, and answers label, score and mask (PNG, base64) of each.

    Raises:
        ValueError: If one cannot be decoded.
    """
    decoded = [_decode(photograph) for photograph in photographs]
    run_stub(len(decoded))
    return [_answer(*pixels.shape) for pixels in decoded]


def _decode(photograph: bytes) -> NDArray[np.uint8]:
    pixels = cv2.imdecode(np.frombuffer(photograph, np.uint8), cv2.IMREAD_GRAYSCALE)
    if pixels is None:
        raise ValueError("Not an image.")
    return np.asarray(pixels, np.uint8)


def _answer(height: int, width: int) -> dict[str, Any]:
    small = 1 / (1 + np.exp(-mask_logits(height, width)))
    scores = cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR)
    mask = np.where(scores >= 0.5, 255, 0).astype(np.uint8)
    encoded = base64.b64encode(bytes(cv2.imencode(".png", mask)[1])).decode("ascii")
    score = 1 / (1 + math.exp(CLASS_LOGITS[0] - CLASS_LOGITS[1]))
    return {"label": "defect", "score": score, "mask": encoded}


def _number(variable: str, default: float) -> float:
    return float(os.environ.get(variable, default))
