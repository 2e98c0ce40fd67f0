"""Loads a data set by the name of its layout."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from datasets import file_systems
from datasets.annotations.label_meanings import check_answers
from datasets.causes import Cause, CodedDatasetError
from datasets.exif_rotation import apply_rotation
from datasets.formats.annotation_files import FORMATS
from datasets.layouts import (
    dagm,
    folder,
    kolektor,
    kolektor2,
    magnetic_tile,
    manifest,
    severstal,
    shards,
    toy,
)
from datasets.reading_options import DEFAULTS, ReadingOptions
from datasets.reviewed import add_reviewed
from datasets.sample import Dataset, DataSetIssue, DataSetItem, Layout
from datasets.splitting import SplitFileError, apply_split_file, apply_splits, has_split_file
from datasets.supervision import apply_mask_values, apply_supervision, interpret_masks, merged_defects
from datasets.test_folder import add_test_folder, split_test_folder
from segdec.errors import DatasetError
from segdec.runtime.identifiers import is_reserved_class
from segdec.runtime.suggestions import nearest_name

FOLDER_LAYOUTS: dict[str, Layout] = {
    "dagm": dagm.index,
    "kolektor": kolektor.index,
    "kolektor2": kolektor2.index,
    "magnetic_tile": magnetic_tile.index,
    "manifest": manifest.index,
    "severstal": severstal.index,
    "toy": toy.index,
}
"""Layouts that need a fixed file tree in a local folder."""

PUBLISHED = frozenset({"dagm", "kolektor", "kolektor2", "magnetic_tile"})
"""Layouts whose modules do not read `splits.txt`."""

FORMATS_OF_LAYOUT: dict[str, tuple[str, ...]] = {
    "folder": tuple(FORMATS),
    "mvtec": (),
    **{name: (name,) for name in FORMATS},
}
"""Layouts that read any local folder → annotation formats that they read."""

SHARDS = "shards"
"""The layout that also reads URLs."""

LAYOUTS = (*sorted({**FOLDER_LAYOUTS, **FORMATS_OF_LAYOUT}), SHARDS)


def load_dataset(
    layout: str,
    root: Path | str,
    splits: Path | None = None,
    reading: ReadingOptions = DEFAULTS,
    *,
    supervision: Path | None = None,
    merge_defects: bool = False,
    reviewed: Sequence[Path] = (),
    test_root: Path | None = None,
    skip_bad_split_file: bool = False,
    bounds: Path | None = None,
) -> Dataset:
    """Lists the data set of `layout` below `root`, assigns its splits and limits its annotations.

    Photographs that cannot be used become problems of the data set.

    Args:
        layout: A name in `LAYOUTS`.
        root: Folder of the data set; for `shards` also a URL that TensorFlow can read.
        splits: Split file; replaces the split of the layout, and the file `splits.txt` in `root`.
        reading: How masks and annotations are read.
        supervision: Supervision file; see `datasets.supervision`.
        merge_defects: Merge all classes of defects into one class, `defect`.
        reviewed: Folders of reviewed photographs to add.
        test_root: Separate folder of the same layout with further photographs, all in the split test.
        skip_bad_split_file: Give no photograph a split if `splits.txt` in `root` is invalid; a note says why.
        bounds: Folder outside of which a manifest names no file that is read; photographs with another one
            become problems.

    Raises:
        DatasetError: If the layout is unknown, or a folder, the split file or the supervision file is
            invalid.
        MissingExtraError: If the layout is `shards` and TensorFlow is not installed.
    """
    if layout not in LAYOUTS:
        raise DatasetError(
            f"Unknown layout '{layout}'. Expected one of {', '.join(LAYOUTS)}. "
            f"Did you mean '{nearest_name(layout, LAYOUTS)}'?"
        )
    if reading.mask_values and reading.invert_masks:
        raise DatasetError(
            "data.invert_masks and data.mask_values exclude each other: the values that name classes are "
            "not inverted. Set one of them."
        )
    list_own = _list_or_skip_split if skip_bad_split_file else _list
    dataset = list_own(layout, str(root), reading, own_splits=splits is None, bounds=bounds)
    labels = {*dataset.labels, *dataset.classes[1:]}
    if test_root is not None:
        if layout == SHARDS:
            raise DatasetError(
                f"A separate test folder ({test_root}) cannot be added to shards. Pack the photographs with "
                "a split instead: python -m datasets pack --splits FILE."
            )
        tested = _list(layout, str(test_root), reading)
        labels |= tested.labels
        dataset = add_test_folder(dataset, tested, test_root, merge_defects=merge_defects)
    check_answers(reading, labels)
    if reading.mask_values:
        dataset = apply_mask_values(dataset, reading.mask_values)
    if reading.annotations_before_rotation is not None:
        dataset = apply_rotation(dataset, before=reading.annotations_before_rotation)
    if reviewed:
        dataset = add_reviewed(dataset, reviewed, reading, merge_defects=merge_defects)
    if splits is not None:
        dataset = apply_splits(dataset, splits)
    if test_root is not None:
        own, tests = split_test_folder(dataset)
        dataset = replace(dataset, items=(*own, *tests))
    if supervision is not None:
        dataset = apply_supervision(dataset, supervision)
    return merged_defects(dataset) if merge_defects else dataset


def _list_or_skip_split(
    layout: str, place: str, reading: ReadingOptions, *, own_splits: bool, bounds: Path | None
) -> Dataset:
    """As `_list`, but without a split if `splits.txt` is invalid."""
    try:
        return _list(layout, place, reading, own_splits=own_splits, bounds=bounds)
    except SplitFileError as error:
        note = f"No split is used, because the split file is invalid. {error}"
        unsplit = replace(error.unsplit, notes=(*error.unsplit.notes, note))
        return _usable(layout, unsplit, place, reading)


def _list(
    layout: str, place: str, reading: ReadingOptions, *, own_splits: bool = False, bounds: Path | None = None
) -> Dataset:
    """Lists a data set; with `own_splits`, a published one has the split of its `splits.txt`, if any."""
    if layout == SHARDS:
        listed = shards.index(place if file_systems.is_url(place) else str(Path(place)))
        return interpret_masks(listed, reading)
    _check_local(layout, place)
    if layout == "manifest":
        dataset = manifest.index(Path(place), bounds, reading)
    elif layout in FOLDER_LAYOUTS:
        dataset = FOLDER_LAYOUTS[layout](Path(place))
        if own_splits and layout in PUBLISHED and has_split_file(Path(place)):
            dataset = _published_split(dataset, Path(place))
    else:
        dataset = folder.index(Path(place), FORMATS_OF_LAYOUT[layout], reading)
    return _usable(layout, dataset, place, reading)


def _published_split(dataset: Dataset, folder: Path) -> Dataset:
    """The split of `splits.txt`; if it is invalid, that of the layout: published splits may divide groups."""
    try:
        return apply_split_file(dataset, folder)
    except SplitFileError as error:
        note = f"The split file is not used, because it is invalid. {error}"
        return replace(dataset, notes=(*dataset.notes, note))


def _usable(layout: str, dataset: Dataset, place: str, reading: ReadingOptions) -> Dataset:
    _check_classes(dataset, place)
    if layout not in FORMATS_OF_LAYOUT:  # `folder.index` needs the masks to find the classes
        dataset = interpret_masks(dataset, reading)
    return _with_plain_names(_strict(dataset) if reading.strict else dataset)


def _check_classes(dataset: Dataset, place: str) -> None:
    """Raises if a class has a reserved name; photographs that somebody is unsure about show no class."""
    for name in filter(is_reserved_class, dataset.classes):
        raise CodedDatasetError(
            f"'{place}' has the class '{name}', a name that is reserved. Expected names of defects: rename "
            "the class, or leave these photographs out: move them to a folder `ignore` (in a manifest: "
            "remove their lines).",
            Cause("reserved_class", {"name": name}),
        )


def _with_plain_names(dataset: Dataset) -> Dataset:
    """Turns photographs into problems if a split file cannot hold their names."""
    return dataset.with_items(r if _is_plain(r.name) else _odd_name(r) for r in dataset.items)


def _strict(dataset: Dataset) -> Dataset:
    """Turns the dropped shapes into problems."""
    broken = {problem.name for problem in dataset.dropped}
    items = tuple(item for item in dataset.items if item.name not in broken)
    return replace(dataset, items=items, problems=(*dataset.problems, *dataset.dropped), dropped=())


def _is_plain(name: str) -> bool:
    try:
        return name.encode().decode().splitlines() == [name.strip()]
    except UnicodeEncodeError:  # bytes of another encoding, as archives from Windows leave them
        return False


def _odd_name(item: DataSetItem) -> DataSetIssue:
    text = (
        f"The name {item.name!r} starts or ends with a space, or holds a line break or bytes that are not "
        "UTF-8, so a split file cannot hold it. Rename the photograph and its mask."
    )
    return DataSetIssue(str(item.image_file), text, item.name, Cause("photograph_name"))


def _check_local(layout: str, root: str) -> None:
    if file_systems.is_url(root):
        raise DatasetError(
            f"The layout '{layout}' reads local folders, not {root}. Copy the set to a folder, or pack it "
            f"(python -m datasets pack {layout} FOLDER {root}) and use the layout '{SHARDS}'."
        )
