"""The files of a data set in a folder: photographs, masks, and files that may hold annotations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from datasets.annotations.labels import GOOD
from datasets.causes import Cause, CodedDatasetError
from datasets.formats.annotation_files import SUFFIXES
from datasets.layouts.mask_pairing import separate_masks
from datasets.listing import UNSUPPORTED_SUFFIXES, files_below, item_name, subfolders
from datasets.problems import list_names
from datasets.sample import DataSetIssue
from segdec.errors import DatasetError
from segdec.images import SUFFIXES as PHOTOGRAPH_SUFFIXES

TRAIN = "train"

ARCHIVE_SUFFIXES = frozenset({".zip", ".7z", ".rar", ".tar", ".tgz", ".gz"})
UNREAD_SUFFIXES = ARCHIVE_SUFFIXES | {".csv", ".jsonl", ".ndjson", ".xlsx"}
"""Files that may hold annotations, but are not read by the layout `folder`."""


@dataclass(frozen=True)
class FolderContents:
    """What a folder holds.

    Attributes:
        folder: The folder.
        photographs: Name → file of each photograph.
        masks: Mask files.
        texts: Files that may hold annotations.
        problems: Photographs of other types, or with equal names.
        notes: Sentences for the user about files that were ignored.
        advice: Sentence for errors about files that were not read; empty without any.
    """

    folder: Path
    photographs: dict[str, Path]
    masks: Sequence[Path]
    texts: Sequence[Path]
    problems: tuple[DataSetIssue, ...]
    notes: tuple[str, ...]
    advice: str


def list_contents(folder: Path) -> FolderContents:
    """Lists the files below `folder`.

    Raises:
        DatasetError: If a folder cannot be listed, holds no photograph, or holds several data sets.
    """
    files = files_below(folder)
    pictures = [path for path in files if path.suffix.lower() in PHOTOGRAPH_SUFFIXES]
    photographs, masks = separate_masks([path for path in pictures if not _is_converted(path)])
    unread = [str(path.relative_to(folder)) for path in files if path.suffix.lower() in UNREAD_SUFFIXES]
    advice = f" These files were not read: {list_names(unread)}. Unpack archives." if unread else ""
    if not photographs:
        types = ", ".join(sorted(PHOTOGRAPH_SUFFIXES))
        raise CodedDatasetError(
            f"The folder {folder} holds no photograph. Expected files of the types {types}, good ones in "
            f"{folder / GOOD}.{advice}",
            Cause("no_photographs", {"types": types}),
        )
    _check_one_product(folder)
    problems = list(_unsupported(folder, files, photographs))
    named = _by_name(folder, photographs, problems)
    texts = [path for path in files if path.suffix.lower() in SUFFIXES]
    notes = tuple(_describe_unread(pictures, unread))
    return FolderContents(folder, named, masks, texts, tuple(problems), notes, advice)


def find_folder(root: Path) -> Path:
    """Returns the folder of the photographs; `root` may be an annotation file, also in a folder of its own.

    Raises:
        DatasetError: If `root` is an archive.
    """
    if not root.is_file():
        return root
    if root.suffix.lower() in ARCHIVE_SUFFIXES:
        raise DatasetError(f"{root} is an archive. Unpack it and give the folder.")
    own = files_below(root.parent, *PHOTOGRAPH_SUFFIXES)
    return root.parent if own else root.parent.parent


def _check_one_product(root: Path) -> None:
    """Raises DatasetError if folders below `root` are data sets, as the categories of MVTec AD."""
    own = [folder.name for folder in subfolders(root) if (folder / TRAIN / GOOD).is_dir()]
    if len(own) > 1:
        names = ", ".join(own)
        raise CodedDatasetError(
            f"The folder {root} holds several data sets: {names}. Give the folder of one, for example "
            f"{root / own[0]}.",
            Cause("several_data_sets", {"names": names}),
        )


def _unsupported(folder: Path, files: Sequence[Path], photographs: Sequence[Path]) -> Iterator[DataSetIssue]:
    """Problems of photographs of other types, unless a converted one is beside them."""
    converted = {path.with_suffix("") for path in photographs}
    types = ", ".join(sorted(PHOTOGRAPH_SUFFIXES))
    for path in files:
        if path.suffix.lower() in UNSUPPORTED_SUFFIXES and path.with_suffix("") not in converted:
            text = f"{path} has an unsupported type. Expected {types}: convert or remove it."
            cause = Cause("unsupported_file", {"file": str(path), "types": types})
            yield DataSetIssue(str(path), text, item_name(folder, path), cause)


def _is_converted(picture: Path) -> bool:
    """Whether a picture is a copy that LabelMe's `labelme_export_json` makes beside the annotation."""
    folder = picture.parent
    return folder.name.endswith(("_json", "_export")) and (folder / "label_names.txt").is_file()


def _describe_unread(pictures: Sequence[Path], unread: Sequence[str]) -> list[str]:
    """Notes about archives and tables, and about copies of photographs."""
    copies = [str(path) for path in pictures if _is_converted(path)]
    return [
        *[f"Files that were not read: {list_names(unread)}. Unpack archives."] * bool(unread),
        *[f"Pictures that LabelMe exported were left out: {list_names(copies)}."] * bool(copies),
    ]


def _by_name(folder: Path, photographs: Sequence[Path], problems: list[DataSetIssue]) -> dict[str, Path]:
    """The photographs by name; equal names become problems."""
    named: dict[str, Path] = {}
    for path in photographs:
        name = item_name(folder, path)
        if (other := named.setdefault(name, path)) != path:
            text = f"Two photographs have the name '{name}': {other} and {path}. Rename one of them."
            cause = Cause("same_photograph_name", {"file": str(path), "other": str(other)})
            problems.append(DataSetIssue(str(path), text, name, cause))
    return named
