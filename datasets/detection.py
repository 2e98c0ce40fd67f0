"""Detects the layout of a folder from file names and JSON keys, without reading photographs."""

import re
from collections.abc import Callable
from pathlib import Path

from datasets.annotations.labels import is_good
from datasets.layouts import coco, cvat, dagm, kolektor2, magnetic_tile, manifest, mvtec, severstal
from datasets.layouts.listing import files, subfolders
from datasets.layouts.photograph_tree import folders_below, photographs_below
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
    if root.is_file():
        return (
            f"{root} is a file, but neither COCO annotations nor a manifest. Expected a folder of "
            f"photographs with good ones in the subfolder 'good'. Searched for:\n{looked_for}"
        )
    photographs = len(photographs_below(root))
    if not photographs:
        return (
            f"{root} holds no photograph. Expected a folder of photographs with good ones in "
            f"{root / 'good'}. Searched for:\n{looked_for}"
        )
    return (
        f"{root} holds {photographs} photographs, but does not show which are good. Put good ones into "
        f"{root / 'good'}, defective ones into {root / 'defect'} and their masks into "
        f"{root / 'masks' / 'defect'}. Searched for:\n{looked_for}"
    )


# === Signs ===


def _names(folder: Path) -> set[str]:
    return {path.name for path in subfolders(folder)}


def _holds(*names: str) -> Matcher:
    """Matches a folder with one of these files, or one of these files itself."""
    return lambda root: (
        root.name in names if root.is_file() else any((root / name).is_file() for name in names)
    )


def _folder_like(pattern: str) -> Matcher:
    return lambda root: any(re.fullmatch(pattern, name) for name in _names(root))


def _json_files(folder: Path) -> list[Path]:
    return [path for path in files(folder) if path.suffix.lower() == ".json"] if folder.is_dir() else []


def _is_coco(root: Path) -> bool:
    if root.is_file():
        return root.suffix.lower() == ".json" and _has_lists(root)
    return any(_has_lists(path) for path in (*_json_files(root), *_json_files(root / coco.FOLDER)))


def _has_lists(path: Path) -> bool:
    content = _content(path)
    return isinstance(content, dict) and all(isinstance(content.get(name), list) for name in coco.LISTS)


def _is_label_studio(root: Path) -> bool:
    contents = (_content(path) for path in _json_files(root))
    return any(
        isinstance(content, list) and bool(content) and isinstance(content[0], dict) and "data" in content[0]
        for content in contents
    )


def _is_labelme(root: Path) -> bool:

    for folder in folders_below(root):
        for path in _json_files(folder):
            content = _content(path)
            if isinstance(content, dict) and isinstance(content.get("shapes"), list):
                return True
    return False


def _content(path: Path) -> object:
    """The content of a JSON file; None if it cannot be read."""
    try:
        return read_json(path)
    except DatasetError:
        return None


def _is_kolektor2(root: Path) -> bool:
    return set(kolektor2.FOLDERS) <= _names(root) and any(
        path.name.endswith("_GT.png") for name in kolektor2.FOLDERS for path in files(root / name)
    )


def _is_mvtec(root: Path) -> bool:
    return {"train", "test"} <= _names(root) and mvtec.GOOD in _names(root / "train")


def _is_severstal(root: Path) -> bool:
    return severstal.PHOTOGRAPHS in _names(root) and (root / severstal.TABLE).is_file()


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
    "shards": (
        "index.json and records.table of packed shards",
        lambda root: (root / "records.table").is_file(),
    ),
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
