"""The items of a set of shards, created from its table on access."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from datasets.sample import DataSetItem, LazyItems, Split
from datasets.sharding.item_table import SPLITS, SUPERVISIONS, ItemTable


class ShardItems(LazyItems):
    """Items of a table, or some of them.

    `places` are rows of the table, ascending; None for all.
    """

    def __init__(
        self, table: ItemTable, shards: Sequence[str], places: NDArray[np.int32] | None = None
    ) -> None:
        self._table = table
        self._shards = shards
        self._places = np.arange(len(table), dtype=np.int32) if places is None else places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> DataSetItem: ...

    @overload
    def __getitem__(self, index: slice) -> "ShardItems": ...

    def __getitem__(self, index: int | slice) -> "DataSetItem | ShardItems":
        if isinstance(index, slice):
            return ShardItems(self._table, self._shards, self._places[index])
        return self._table.item(int(self._places[index]), self._shards)

    def of_split(self, split: Split) -> "ShardItems":
        chosen = self._places[self._column("split") == SPLITS.index(split)]
        return ShardItems(self._table, self._shards, chosen)

    def labels(self) -> NDArray[np.int64]:
        return self._column("label").astype(np.int64)

    def unlocalized(self) -> NDArray[np.bool_]:
        by_label = self._column("supervision") == SUPERVISIONS.index("label")
        unlocalized: NDArray[np.bool_] = (self._column("label") != 0) & (~self._column("masked") | by_label)
        return unlocalized

    def shapes(self) -> dict[tuple[int, int, int], int]:
        shapes, first = np.unique(self._column("shape"), axis=0, return_index=True)
        by_shape = zip(shapes.tolist(), first.tolist(), strict=True)
        return {(height, width, channels): index for (height, width, channels), index in by_shape}

    def equal_files(self) -> list[tuple[int, ...]]:
        digests = np.ascontiguousarray(self._column("photograph"))
        beginnings = digests.view("<u8")[:, 0]
        order = np.argsort(beginnings, kind="stable")
        alike = np.flatnonzero(np.diff(beginnings[order]) == 0)
        same: dict[bytes, list[int]] = defaultdict(list)
        for index in sorted(set(order[alike].tolist()) | set(order[alike + 1].tolist())):
            same[digests[index].tobytes()].append(index)
        return [tuple(indices) for indices in same.values() if len(indices) > 1]

    def identities(self) -> Iterator[bytes]:
        return self._table.identities(self._places)

    def _column(self, name: str) -> NDArray[Any]:
        column: NDArray[Any] = self._table.rows[name][self._places]
        return column
