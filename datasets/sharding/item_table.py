"""The items of a set of shards as one table: 115 bytes and a name for each, on disk and in memory."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from datasets.sample import VALUES_ARE_CLASSES, DataSetItem, Split, Supervision, identity
from datasets.shard_file import MASK, PHOTOGRAPH, ShardFile

SPLITS: tuple[Split, ...] = get_args(Split)
SUPERVISIONS: tuple[Supervision, ...] = get_args(Supervision)

NO_THRESHOLD = -1
"""Value in the column `mask_threshold` of an item without a threshold."""

CLASS_MASK = -2
"""Value in the column `mask_threshold` if the mask values are classes."""

_ROW = np.dtype(
    [
        ("text_end", "<u8"),
        ("name_bytes", "<u4"),
        ("label", "<u2"),
        ("split", "u1"),
        ("supervision", "u1"),
        ("mask_threshold", "<i2"),
        ("shard", "<u4"),
        ("offset", "<u8"),
        ("bytes", "<u8"),
        ("shape", "<u4", 3),
        ("photograph", "u1", 32),
        ("mask", "u1", 32),
        ("masked", "?"),
    ]
)


class PackedItem(NamedTuple):
    """An item with split, shape and digests, and its place.

    Attributes:
        item: The item; its files may be elsewhere.
        shard: Number of its shard.
        offset: Start of its TFRecord in the shard, bytes.
        bytes: Length of the TFRecord with its frame.
    """

    item: DataSetItem
    shard: int
    offset: int
    bytes: int


class ItemTable:
    """Packed items sorted by name.

    Rows have the type `_ROW`; `text` has the names, each followed by its group if that differs, in UTF-8.
    """

    def __init__(self, rows: NDArray[Any], text: bytes | memoryview) -> None:
        self.rows = rows
        self._text = text

    @classmethod
    def from_items(cls, packed: Iterable[PackedItem]) -> "ItemTable":
        """Builds the table of these items."""
        ordered = sorted(packed, key=lambda entry: entry.item.name)
        rows, text = np.zeros(len(ordered), _ROW), bytearray()
        for row, (item, *place) in zip(rows, ordered, strict=True):
            name, (photograph, *mask) = item.name.encode(), item.digests or ()
            text += name + (item.group.encode() if item.group != item.name else b"")
            row["text_end"], row["name_bytes"] = len(text), len(name)
            row["label"], row["split"] = item.label, SPLITS.index(item.split or "train")
            row["supervision"] = SUPERVISIONS.index(item.supervision)
            threshold = NO_THRESHOLD if item.mask_threshold is None else item.mask_threshold
            row["mask_threshold"] = threshold if item.mask_values is None else CLASS_MASK
            row["shard"], row["offset"], row["bytes"] = place
            row["shape"], row["masked"] = item.shape or 0, bool(mask)
            row["photograph"] = np.frombuffer(bytes.fromhex(photograph), np.uint8)
            row["mask"] = np.frombuffer(bytes.fromhex(mask[0]), np.uint8) if mask else 0
        return cls(rows, bytes(text))

    @classmethod
    def from_bytes(cls, data: bytearray, count: int) -> "ItemTable":
        """Parses the result of `to_bytes`; raises ValueError for fewer than `count` items."""
        rows = np.frombuffer(data, _ROW, count)
        return cls(rows, memoryview(data)[rows.nbytes :])

    def to_bytes(self) -> bytes:
        """Returns rows and text."""
        return self.rows.tobytes() + bytes(self._text)

    def __len__(self) -> int:
        return len(self.rows)

    def item(self, place: int, shards: Sequence[str]) -> DataSetItem:
        """Returns the item in the row `place`; `shards` are the paths or URLs of all shards."""
        (
            _, _, label, split, supervision, threshold, shard, offset, length, shape, photograph, mask, masked
        ) = self.rows[place].tolist()  # fmt: skip
        name, group = self._texts(place)
        height, width, channels = shape.tolist()
        digests = (bytes(photograph).hex(), bytes(mask).hex())[: 2 if masked else 1]
        features = zip((PHOTOGRAPH, MASK), digests, strict=False)
        files = [ShardFile(shards[shard], offset, length, name, *feature) for feature in features]
        return DataSetItem(
            name,
            files[0],
            files[1] if masked else None,
            label,
            group,
            SPLITS[split],
            SUPERVISIONS[supervision],
            None if threshold in (NO_THRESHOLD, CLASS_MASK) else threshold,
            VALUES_ARE_CLASSES if threshold == CLASS_MASK else None,
            (height, width, channels),
            digests,
            drawn_on="upright",
        )

    def identities(self, places: NDArray[np.int32]) -> Iterator[bytes]:
        """Yields `DataSetItem.identity` of these items, without creating them."""
        for place in places.tolist():
            row = self.rows[place].tolist()
            _, _, label, split, supervision, threshold, *_, photograph, mask, masked = row
            contents = bytes(photograph) + (bytes(mask) if masked else b"")
            if threshold == CLASS_MASK:
                contents += repr(VALUES_ARE_CLASSES).encode()
            known = None if threshold in (NO_THRESHOLD, CLASS_MASK) else threshold
            name, _ = self._texts(place)
            yield identity(name, SPLITS[split], label, SUPERVISIONS[supervision], known, contents)

    def _texts(self, place: int) -> tuple[str, str]:
        """The name and the group."""
        start = int(self.rows["text_end"][place - 1]) if place else 0
        end = int(self.rows["text_end"][place])
        middle = start + int(self.rows["name_bytes"][place])
        name = str(self._text[start:middle], "utf-8")
        return name, str(self._text[middle:end], "utf-8") if middle < end else name
