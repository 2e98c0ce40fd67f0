"""Training splits with fewer defective photographs."""

from collections.abc import Iterator, Sequence

import numpy as np

from datasets.sample import DataSetItem
from segdec.errors import ConfigError


def keep_defects(items: Sequence[DataSetItem], defects: int, seed: int) -> Iterator[DataSetItem]:
    """Yields the items with `defects` defective training photographs, drawn by the seed.

    Without any, validation has no defective photographs either.

    Raises:
        ConfigError: If there are fewer.
    """
    defective = [item.name for item in items if item.split == "train" and item.label]
    if defects > len(defective):
        raise ConfigError(f"--defects {defects}: the training split has only {len(defective)} defects.")
    kept = set(np.random.default_rng(seed).permutation(defective)[:defects].tolist())
    dropped = set(defective) - kept
    if not defects:
        dropped |= {item.name for item in items if item.split == "val" and item.label}
    return (item for item in items if item.name not in dropped)
