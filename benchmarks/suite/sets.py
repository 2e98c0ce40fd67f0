"""The data sets of the suite, each with the photographs for training and those for testing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.defect_subsets import keep_defects
from datasets.detection import detect_layout
from datasets.loading import load_dataset
from datasets.name_lists import items_of_lines
from datasets.sample import Dataset, DataSetItem, Split
from datasets.splitting import SPLITS_FILE, read_split_lines
from segdec.errors import ConfigError, DatasetError

LAST_TRAINING_ITEM = "kos15"
"""KolektorSDD is published without a split: later items are for testing."""


@dataclass(frozen=True)
class SuiteSet:
    """A data set whose items are in the splits `train` and `test`."""

    name: str
    root: Path
    layout: str
    dataset: Dataset

    @property
    def test(self) -> Sequence[DataSetItem]:
        """The photographs for testing."""
        return self.dataset.of_split("test")

    def training(self, defects: int | None, seed: int) -> list[DataSetItem]:
        """Returns the photographs for training, with `defects` defective ones drawn by the seed; None = all.

        Raises:
            ConfigError: If there are fewer.
        """
        items = self.dataset.of_split("train")
        return list(items if defects is None else keep_defects(items, defects, seed))


def load_set(root: Path) -> SuiteSet:
    """Lists the data set in the folder `root`.

    The split is that of `splits.txt`, or else of the layout; photographs for validation are for training.
    The split file may divide groups, since the published figures of a set may do so.

    Raises:
        DatasetError: If the set cannot be read, or has no good photograph for training, or not both good and
            defective ones for testing.
    """
    if not root.is_dir():
        raise DatasetError(f"{root} does not exist. Expected the folder of a data set: check --sets.")
    layout = detect_layout(root)
    dataset = load_dataset(layout, root, skip_bad_split_file=True)
    places = _places(dataset, root, layout)
    items = tuple(item.with_split(places.get(item.name)) for item in dataset.items)
    dataset = replace(dataset, items=items)
    kinds = {(item.split, item.label > 0) for item in items}
    needed: dict[tuple[Split, bool], str] = {
        ("train", False): "good photographs for training",
        ("test", False): "good photographs for testing",
        ("test", True): "defective photographs for testing",
    }
    if missing := [text for kind, text in needed.items() if kind not in kinds]:
        raise DatasetError(f"{root} has no {', no '.join(missing)}. Expected some: check its {SPLITS_FILE}.")
    return SuiteSet(root.name, root, layout, dataset)


def list_sets(data: Path, names: Sequence[str]) -> tuple[list[SuiteSet], dict[str, str]]:
    """Lists the named data sets in the folder `data`, or all; returns them, and name → error of the others.

    Raises:
        ConfigError: If `data` is not a folder.
    """
    if not data.is_dir():
        raise ConfigError(f"'{data}' is not a folder. Expected a folder with one folder for each data set.")
    sets, errors = [], {}
    for name in names or sorted(path.name for path in data.iterdir() if path.is_dir()):
        try:
            sets.append(load_set(data / name))
        except DatasetError as error:
            errors[name] = str(error)
    return sets, errors


def _places(dataset: Dataset, root: Path, layout: str) -> dict[str, Split]:
    path = root / SPLITS_FILE
    if path.exists():
        words = [(line.word, item) for line, item in items_of_lines(dataset, read_split_lines(path))]
    elif layout == "kolektor":
        words = [("train" if item.group <= LAST_TRAINING_ITEM else "test", item) for item in dataset.items]
    else:
        words = [(item.split, item) for item in dataset.items if item.split is not None]
    return {item.name: "test" if word == "test" else "train" for word, item in words}
