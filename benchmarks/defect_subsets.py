"""Training splits with fewer defective photographs."""

from collections.abc import Iterator, Sequence

import numpy as np

from datasets.sample import Record
from segdec.errors import ConfigError


def keep_defects(records: Sequence[Record], defects: int, seed: int) -> Iterator[Record]:
    """Yields the records with `defects` defective training photographs, drawn by the seed.

    Without any, validation has no defective photographs either.

    Raises:
        ConfigError: If there are fewer.
    """
    defective = [record.name for record in records if record.split == "train" and record.label]
    if defects > len(defective):
        raise ConfigError(f"--defects {defects}: the training split has only {len(defective)} defects.")
    kept = set(np.random.default_rng(seed).permutation(defective)[:defects].tolist())
    dropped = set(defective) - kept
    if not defects:
        dropped |= {record.name for record in records if record.split == "val" and record.label}
    return (record for record in records if record.name not in dropped)
