"""Masks of defects from a few clicks, by SAM 2.1."""

from collections.abc import Iterator, Sequence
from threading import Lock

import cv2
import numpy as np

from api.labelling.clicks import Click, check_clicks
from api.labelling.pixel_features import Floats
from api.labelling.sam_model import Embedding, SamModel
from api.labelling.segmenter import Mask
from api.labelling.windows import Box, Image, Window, list_windows

MAX_EMBEDDINGS = 8
"""Windows of a photograph whose features are stored: more than the clicks on one defect need."""
ROWS_AT_ONCE = 256
"""Rows for which a mask is enlarged at once: the logits of all rows would need much memory."""

Clicks = tuple[Click, ...]


class SamSegmenter:
    """Segments the defects of one photograph from clicks. The same clicks give the same mask.

    The encoder runs once for a photograph that is not larger than its input, when it is opened. Of a larger
    photograph the encoder gets windows around the clicks, each twice as wide as the one before, until the
    mask does not reach the side of the window. Features of the latest windows are stored.

    Args:
        model: Encoder and decoder.
        photograph: uint8 [H, W] or [H, W, C], C = 1 (grey) or 3 (RGB).
    """

    def __init__(self, model: SamModel, photograph: Image) -> None:
        self.photograph = photograph
        self.height, self.width = photograph.shape[:2]
        self._model = model
        self._embeddings: dict[Window, Embedding] = {}
        self._lock = Lock()
        self._latest: tuple[Clicks, Window, Floats] | None = None
        first, *wider = self._list_windows(Box(0, 0, 1, 1))
        if not wider:
            self._encode(first)

    @property
    def nbytes(self) -> int:
        """Size of the photograph and its features in memory."""
        embeddings = list(self._embeddings.values())
        return self.photograph.nbytes + sum(part.nbytes for one in embeddings for part in one.values())

    def segment(self, clicks: Sequence[Click]) -> Mask:
        """Returns the mask after the clicks, uint8 [H, W]: 255 is defect, 0 is not.

        Raises:
            RequestError: With the code `bad_click`.
        """
        mask = np.zeros((self.height, self.width), np.uint8)
        checked = check_clicks(clicks, self.height, self.width)
        if any(click.is_defect for click in checked):
            while (result := self._find(checked)) is None:
                pass
            window, logits = result
            _draw(logits, window.crop(mask))
        return mask

    def take_step(self, clicks: Sequence[Click]) -> bool:
        """Runs the encoder at most once; returns False if `segment` needs no further run.

        Raises:
            RequestError: With the code `bad_click`.
        """
        checked = check_clicks(clicks, self.height, self.width)
        return any(click.is_defect for click in checked) and self._find(checked) is None

    def _find(self, clicks: Clicks) -> tuple[Window, Floats] | None:
        """The window of the mask and its logits; None after a run of the encoder: call it again."""
        with self._lock:  # several people may label one photograph
            if self._latest is None or self._latest[0] != clicks:
                self._latest = self._search(clicks)
            return None if self._latest is None else self._latest[1:]

    def _search(self, clicks: Clicks) -> tuple[Clicks, Window, Floats] | None:
        x, y = [click.x for click in clicks], [click.y for click in clicks]
        for window in self._list_windows(Box(min(x), min(y), max(x) + 1, max(y) + 1)):
            embedding = self._embeddings.get(window)
            if embedding is None:
                self._encode(window)
                return None
            logits = self._decode(embedding, window, clicks)
            if not window.is_cut((logits > 0).astype(np.uint8), self.height, self.width):
                break
        return clicks, window, logits

    def _list_windows(self, inside: Box) -> Iterator[Window]:
        height, width = self._model.size
        side, pixels = min(height, width), height * width
        return list_windows(inside, self.height, self.width, side=side, max_whole_px=pixels)

    def _encode(self, window: Window) -> None:
        self._embeddings[window] = self._model.encode(window.crop(self.photograph))
        while len(self._embeddings) > MAX_EMBEDDINGS:
            self._embeddings.pop(next(iter(self._embeddings)))

    def _decode(self, embedding: Embedding, window: Window, clicks: Clicks) -> Floats:
        inner = [Click(one.x - window.left, one.y - window.top, one.is_defect) for one in clicks]
        size = window.bottom - window.top, window.right - window.left
        return self._model.decode(embedding, inner, size)


def _draw(logits: Floats, mask: Mask) -> None:
    """Sets the pixels of a mask, uint8 [H, W], to 255 where the logits of a lower resolution are above 0."""
    height, width = mask.shape
    rows = cv2.resize(logits, (logits.shape[1], height), interpolation=cv2.INTER_LINEAR)
    for top in range(0, height, ROWS_AT_ONCE):
        band = rows[top : top + ROWS_AT_ONCE]
        if (band > 0).any():
            enlarged = cv2.resize(band, (width, len(band)), interpolation=cv2.INTER_LINEAR)
            mask[top : top + ROWS_AT_ONCE][enlarged > 0] = 255
