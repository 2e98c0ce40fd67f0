"""Detects the layout of a folder from file names and JSON keys, without reading photographs."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from datasets.annotations.labels import is_good
from datasets.layouts import coco, cvat, dagm, kolektor2, magnetic_tile, manifest, mvtec, severstal
from datasets.layouts.listing import files, files_below, photographs_below, subfolders
from datasets.text_file import read_json
from segdec.errors import DatasetError

Matcher = Callable[[Path], bool]


def detect_layout(root: Path) -> str:
    """Returns the layout of the folder or file `root`.

    Raises:
        DatasetError: If `root` cannot be listed, holds no photograph, or matches no layout or several.
    """
    if root.is_file():
        found = [name for name in ("coco", "manifest") if LAYOUT_SIGNS[name][1](root)]
    else:
        found = [name for name, (_, matches) in LAYOUT_SIGNS.items() if matches(root)]
    if len(found) == 1:
        return found[0]
    if found:
        raise DatasetError(
            f"{root} matches several layouts: {', '.join(found)}. Choose one with --layout, for example "
            f"--layout {found[0]}."
        )
    raise DatasetError(_describe_no_match(root))


def _describe_no_match(root: Path) -> str:
    looked_for = "\n".join(f"  {name:<14} {what}" for name, (what, _) in LAYOUT_SIGNS.items())
    good, photographs = root / "good", [] if root.is_file() else photographs_below(root)
    if root.is_file():
        text = (
            f"{root} is a file, but neither COCO annotations nor a manifest. Expected a folder of "
            "photographs with good ones in the subfolder 'good'."
        )
    elif photographs:
        text = (
            f"{root} holds {len(photographs)} photographs, but does not show which are good. Put good ones "
            f"into {good}, defective ones into {root / 'defect'} and their masks into "
            f"{root / 'masks' / 'defect'}."
        )
    else:
        text = f"{root} holds no photograph. Expected a folder of photographs with good ones in {good}."
    return f"{text} Searched for:\n{looked_for}"


# === Signs ===


def _names(folder: Path) -> set[str]:
    return {path.name for path in subfolders(folder)}


def _holds(*names: str) -> Matcher:
    """Matches a folder with one of these files."""
    return lambda root: any((root / name).is_file() for name in names)


def _folder_like(pattern: str) -> Matcher:
    return lambda root: any(re.fullmatch(pattern, name) for name in _names(root))


def _contents(paths: Iterable[Path]) -> Iterator[object]:
    """The contents of JSON files that can be read."""
    for path in paths:
        with suppress(DatasetError):
            yield read_json(path)


def _is_coco(root: Path) -> bool:
    paths = [root] if root.suffix.lower() == ".json" else []
    if root.is_dir():
        folders = (folder for folder in (root, root / coco.FOLDER) if folder.is_dir())
        paths = [path for folder in folders for path in files(folder, ".json")]
    return any(
        isinstance(content, dict) and all(isinstance(content.get(name), list) for name in coco.LISTS)
        for content in _contents(paths)
    )


def _is_label_studio(root: Path) -> bool:
    return any(
        isinstance(content, list) and bool(content) and isinstance(content[0], dict) and "data" in content[0]
        for content in _contents(files(root, ".json"))
    )


def _is_labelme(root: Path) -> bool:
    return any(
        isinstance(content, dict) and isinstance(content.get("shapes"), list)
        for content in _contents(files_below(root, ".json"))
    )


def _is_kolektor2(root: Path) -> bool:
    return set(kolektor2.FOLDERS) <= _names(root) and any(
        path.name.endswith("_GT.png") for name in kolektor2.FOLDERS for path in files(root / name)
    )


def _is_mvtec(root: Path) -> bool:
    return {"train", "test"} <= _names(root) and mvtec.GOOD in _names(root / "train")


def _is_severstal(root: Path) -> bool:
    return severstal.PHOTOGRAPHS in _names(root) and _holds(severstal.TABLE)(root)


def _is_dagm(root: Path) -> bool:
    return set(dagm.FOLDERS) <= _names(root) or _folder_like(r"Class\d+")(root)


def _is_manifest(root: Path) -> bool:
    if root.is_file():
        return root.suffix.lower() in {Path(name).suffix for name in manifest.NAMES}
    return _holds(*manifest.NAMES)(root)


LAYOUT_SIGNS: dict[str, tuple[str, Matcher]] = {
    "folder": ("a folder good/ (or ok/) of photographs", lambda root: any(map(is_good, _names(root)))),
    "manifest": ("manifest.csv or manifest.jsonl", _is_manifest),
    "coco": ("a JSON file with images, annotations and categories", _is_coco),
    "labelme": ("JSON files of LabelMe beside the photographs", _is_labelme),
    "cvat": (f"{cvat.FILE} of CVAT", _holds(cvat.FILE)),
    "label_studio": ("a JSON file of Label Studio's tasks", _is_label_studio),
    "shards": ("index.json and records.table of packed shards", _holds("records.table")),
    "mvtec": ("train/good/ and test/ of a category of MVTec AD", _is_mvtec),
    "kolektor": ("folders kos01/ and so on of KolektorSDD", _folder_like(r"kos\d+")),
    "kolektor2": ("train/ and test/ with masks *_GT.png of KolektorSDD2", _is_kolektor2),
    "dagm": ("Train/ and Test/, or Class1/ and so on, of DAGM", _is_dagm),
    "severstal": ("train.csv and train_images/ of Severstal", _is_severstal),
    "magnetic_tile": (
        "the folder MT_Free/ of the magnetic tiles",
        lambda root: magnetic_tile.FREE in _names(root),
    ),
}
"""For each layout: what is searched for, and whether a root has it. A toy set has the layout `folder`."""
