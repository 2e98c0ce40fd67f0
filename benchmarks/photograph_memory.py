"""What does a photograph take outside of the network? Bytes a pixel, by kind of file and form of mask.

    python -m benchmarks.photograph_memory [--side 2048] [--json FILE]

Each step runs alone, and its peak (`VmHWM`) counts from what was in use before it. `api.inference.memory_budget` counts
with one number for all of them.
"""

import io
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any, get_args

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from api.inference.memory_budget import BYTES_PER_PIXEL
from api.inspection.mask_encoding import encode_mask
from benchmarks.reporting import Target, benchmark_parser, conclude
from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.errors import RunError
from segdec.images import decode_image
from segdec.inference.postprocessing import interpret
from segdec.process_memory import measure_peak, release_free_memory, resident_bytes
from segdec.runtime.cli import clean_exit
from segdec.schemas import MaskForm

CLASSES = ("good", "defect"), ("good", "dent", "scratch", "stain")
"""Of models with one mask for all, and with one for each class of defects."""

CLASS_FORMS: tuple[MaskForm, ...] = ("classes", "class_rle")
"""Forms of the mask that only the latter have."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--side", type=int, default=2048, help="of the photograph, px (default: %(default)s)")
    options = parser.parse_args(arguments)
    with clean_exit(group="serve"):
        cv2.setNumThreads(1)
        rows = [*measure_files(options.side), *measure_answers(options.side)]
    highest = max(float(str(row["bytes a pixel"])) for row in rows)
    target = Target("most bytes a pixel", highest, highest=BYTES_PER_PIXEL)
    return conclude(options.json, rows, [target])


def measure_files(side: int) -> list[dict[str, object]]:
    """Returns a row for each kind of file."""
    return [
        {"step": f"decode {name}", "bytes a pixel": grown(partial(_decode, data)) / side**2}
        for name, data in make_files(side).items()
    ]


def measure_answers(side: int) -> list[dict[str, object]]:
    """Returns a row for each form of the mask and each stride of the network's, with one mask and several."""
    rows: list[dict[str, object]] = []
    for stride, classes, form in product((8, 2, 1), CLASSES, get_args(MaskForm)):
        several = len(classes) > 2
        if form in CLASS_FORMS and not several:
            continue
        network = NetworkConfig(
            preset="compact", mask_stride=stride, num_classes=len(classes), mask_classes=several
        )
        config = ModelConfig(network=network, input=InputConfig(), classes=classes)
        logits = _logits(side, stride, network.mask_channels)
        taken = grown(partial(_answer, logits, side, config, form))
        step = f"answer, stride {stride}, masks {network.mask_channels}, mask {form}"
        rows.append({"step": step, "bytes a pixel": taken / side**2})
    return rows


def grown(work: Callable[[], object]) -> int:
    """Does `work`; the most bytes that it had in use.

    Raises:
        RunError: Where the system does not tell.
    """
    work()  # what it loads is no photograph's
    release_free_memory()
    before, peak = resident_bytes(), measure_peak(work)
    if before is None or peak is None:
        raise RunError("This system does not tell the peak of a process's memory. Expected Linux.")
    return max(peak - before, 0)


def make_files(side: int) -> dict[str, bytes]:
    """Returns a photograph of `side` × `side` px as files of all kinds, by their names."""
    noise = np.random.default_rng(0).normal(110, 3, (side, side)).clip(0, 255).astype(np.uint8)
    color = np.dstack([noise] * 3)
    alpha = np.dstack([color, np.full_like(noise, 255)])
    grey_16, color_16 = (array.astype(np.uint16) * 257 for array in (noise, color))
    turned = Image.Exif()
    turned[0x112] = 6
    return {
        "PNG, grey": _by_opencv(noise, ".png"),
        "PNG, colour": _by_opencv(color, ".png"),
        "PNG, alpha": _by_opencv(alpha, ".png"),
        "PNG, grey, 16 bits": _by_opencv(grey_16, ".png"),
        "PNG, colour, 16 bits": _by_opencv(color_16, ".png"),
        "PNG, palette": _by_pillow(np.asarray(color), "PNG", palette=True),
        "JPEG, grey": _by_pillow(noise, "JPEG"),
        "JPEG, colour, progressive": _by_pillow(color, "JPEG", progressive=True),
        "JPEG, colour, turned": _by_pillow(color, "JPEG", exif=turned),
        "BMP, colour": _by_pillow(color, "BMP"),
        "TIFF, colour": _by_pillow(color, "TIFF", compression="tiff_lzw"),
        "TIFF, alpha, deflated": _by_pillow(alpha, "TIFF", compression="tiff_adobe_deflate"),
        "TIFF, grey, 16 bits": _by_opencv(grey_16, ".tif"),
        "TIFF, colour, 16 bits": _by_opencv(color_16, ".tif"),
        "WebP": _by_pillow(color, "WEBP"),
    }


def _by_opencv(image: NDArray[Any], suffix: str) -> bytes:
    return bytes(cv2.imencode(suffix, image)[1])


def _by_pillow(image: NDArray[np.uint8], kind: str, *, palette: bool = False, **options: Any) -> bytes:
    file, picture = io.BytesIO(), Image.fromarray(image)
    if palette:
        picture, options = picture.quantize(8), {"transparency": 0}
    picture.save(file, kind, **options)
    return file.getvalue()


def _decode(data: bytes) -> None:
    decode_image(data, "photograph", white_level=65535, accept_webp=True)


def _logits(side: int, stride: int, masks: int) -> NDArray[np.float32]:
    """What a network answers: they count as the network's."""
    cells = side // stride
    logits = np.random.default_rng(0).standard_normal((cells, cells, masks), np.float32)
    logits *= 3
    logits[side // 64 :] = -3  # else a mask of noise has more regions than any part has defects
    return logits


def _answer(logits: NDArray[np.float32], side: int, config: ModelConfig, form: MaskForm) -> None:
    prediction = interpret(logits, np.zeros(len(config.classes), np.float32), (side, side), config)
    encode_mask(prediction, form, "input")


if __name__ == "__main__":
    sys.exit(main())
