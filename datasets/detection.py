"""Which layout a folder has, told by what lies at its top: names alone, no photograph is read."""

import re
from collections.abc import Callable
from pathlib import Path

from datasets.annotations.labels import is_good
from datasets.layouts import coco, cvat, dagm, kolektor2, magnetic_tile, manifest, mvtec, severstal
from datasets.layouts.listing import files, subfolders
from datasets.layouts.photograph_tree import folders_below, photographs_below
from datasets.text_file import read_json
from segdec.errors import DatasetError

Looks = Callable[[Path], bool]


def detect_layout(root: Path) -> str:
    """Returns the name of the one layout that the folder or file `root` shows the marks of.

    Raises:
        DatasetError: If it cannot be listed, holds no photograph, or shows the marks of none or of several;
            it names what was looked for.
    """
    if root.is_file():
        found = [name for name in ("coco", "manifest") if LAYOUT_SIGNS[name][1](root)]
    else:
        found = [name for name, (_, shows) in LAYOUT_SIGNS.items() if shows(root)]
    if len(found) == 1:
        return found[0]
    if found:
        raise DatasetError(
            f"{root} may be read in several ways: {', '.join(found)}. Say which is meant with --layout, for "
            f"example --layout {found[0]}."
        )
    raise DatasetError(_describe_nothing(root))


def _describe_nothing(root: Path) -> str:
    looked_for = "\n".join(f"  {name:<14} {what}" for name, (what, _) in LAYOUT_SIGNS.items())
    if root.is_file():
        return (
            f"{root} is a file, and neither annotations of COCO nor a manifest. Expected a folder of "
            f"photographs, good ones in its folder 'good'. Looked for:\n{looked_for}"
        )
    photographs = len(photographs_below(root))
    if not photographs:
        return (
            f"{root} holds no photograph. Expected a folder of photographs, good ones in {root / 'good'}. "
            f"Looked for:\n{looked_for}"
        )
    return (
        f"{root} holds {photographs} photographs, and nothing that says which are good. Put these into "
        f"{root / 'good'} and those with a defect into {root / 'defect'}, their masks into "
        f"{root / 'masks' / 'defect'}. Looked for:\n{looked_for}"
    )


# === Marks ===


def _names(folder: Path) -> set[str]:
    return {path.name for path in subfolders(folder)}


def _holds(*names: str) -> Looks:
    """Whether one of these files lies there, or is it."""
    return lambda root: (
        root.name in names if root.is_file() else any((root / name).is_file() for name in names)
    )


def _folder_like(pattern: str) -> Looks:
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
    """The first JSON file beside a photograph of its stem tells."""
    for folder in folders_below(root):
        for path in _json_files(folder):
            content = _content(path)
            if isinstance(content, dict) and isinstance(content.get("shapes"), list):
                return True
    return False


def _content(path: Path) -> object:
    """What a JSON file holds; None where it cannot be read, of which the layout's reader tells more."""
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


LAYOUT_SIGNS: dict[str, tuple[str, Looks]] = {
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
"""By layout: what is looked for, and whether a root shows it. A toy set has the layout `folder`."""
