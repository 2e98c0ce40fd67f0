"""Checks a photograph that arrived, as an inspection does, and makes its thumbnail."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select, update

from api.data_sets.new_file import NewFile
from api.data_sets.tables import data_set_files
from api.inference.memory_budget import BYTES_PER_PIXEL, MemoryBudget, PhotographCost
from api.inspecting.encoded_photograph import EncodedPhotograph
from api.inspecting.settings import InspectionSettings
from segdec.images import MAX_PIXEL_LIMIT, CheckSize, Photograph, decode_image

T = TypeVar("T")
THUMBNAIL_SIDE = 320
"""Longest side of a thumbnail, px."""
JPEG_QUALITY = 80


@dataclass(frozen=True)
class ReceivedPhotograph:
    """A photograph that can be added, and what may be unexpected about it."""

    file: NewFile
    warnings: tuple[str, ...]


def check_photograph(
    sent: EncodedPhotograph, settings: InspectionSettings, memory: MemoryBudget
) -> ReceivedPhotograph:
    """Decodes a photograph within the limits of the service. Slow, so call it in a thread.

    Raises:
        ImageError: If it is not a complete photograph of a supported kind.
        RequestError: 503 if the memory does not suffice beside the photographs that are being inspected.
    """
    with _reservation(memory) as reserve:
        photograph = sent.decode(settings, None, reserve)
        return ReceivedPhotograph(_make_file(sent.data, photograph), photograph.warnings)


@contextmanager
def _reservation(memory: MemoryBudget) -> Iterator[CheckSize]:
    """Yields a function that reserves the memory of height × width px until the end."""
    with ExitStack() as reserved:

        def reserve(height: int, width: int) -> None:
            cost = PhotographCost(BYTES_PER_PIXEL * height * width, 0.0)
            memory.reserve(cost)
            reserved.callback(memory.release, cost)

        yield reserve


def _make_file(data: bytes, photograph: Photograph) -> NewFile:
    height, width = photograph.pixels.shape[:2]
    return NewFile(data, photograph.format, width, height, make_thumbnail(photograph.pixels))


def make_thumbnail(pixels: NDArray[np.uint8]) -> bytes:
    """Returns a JPEG of uint8 [H, W, C], at most `THUMBNAIL_SIDE` px long or high."""
    height, width = pixels.shape[:2]
    scale = min(1.0, THUMBNAIL_SIDE / max(height, width))
    size = max(1, round(width * scale)), max(1, round(height * scale))
    small = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    stored = small[..., ::-1] if small.ndim == 3 else small  # OpenCV stores BGR
    quality = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY]
    return bytes(cv2.imencode(".jpg", np.ascontiguousarray(stored), quality)[1])


def use_pixels(data: bytes, memory: MemoryBudget, use: Callable[[NDArray[np.uint8]], T]) -> T:
    """Decodes a stored photograph and returns what `use` makes of its pixels, uint8 [H, W, C]. Slow.

    Today's limits on its size do not apply: it was accepted under earlier ones.

    Raises:
        RequestError: 503 if the memory does not suffice beside the photographs that are being inspected.
    """
    name = "the photograph of the data set"
    with _reservation(memory) as reserve:
        photograph = decode_image(
            data, name, max_pixels=MAX_PIXEL_LIMIT, accept_webp=True, check_size=reserve
        )
        return use(photograph.pixels)


def find_thumbnail(connection: Connection, sha256: bytes) -> bytes | None:
    """Returns the thumbnail of a photograph; None if it is not made yet."""
    statement = select(data_set_files.c.thumbnail).where(data_set_files.c.sha256 == sha256)
    thumbnail = connection.execute(statement).scalar()
    return None if thumbnail is None else bytes(thumbnail)


def set_thumbnail(connection: Connection, sha256: bytes, thumbnail: bytes) -> None:
    """Stores the thumbnail of a photograph."""
    changed = update(data_set_files).where(data_set_files.c.sha256 == sha256)
    connection.execute(changed.values(thumbnail=thumbnail))
