"""LabelMe (versions 3 to 5): one JSON file for each photograph.

    root/0001.jpg
    root/0001.json           written by LabelMe; embedded pictures (imageData) are ignored
    root/line-2/0002.jpg     folders of any depth; good without a JSON file or without shapes
    root/splits.txt          optional; without it 60 % train, 20 % val and 20 % test

A JSON file belongs to the photograph with its stem in the same folder, otherwise to the one in its
`imagePath`. Polygons, rectangles (supervision `box`), circles and masks are drawn, lines and points 10 px
wide as in LabelMe. A flag that is set on a photograph without shapes is its class (supervision `label`). The
labels and flags `good`, `ok` and `_background_` mark no defect. JSON files of other programs without a
photograph are ignored.

Reference:
    https://github.com/wkentaro/labelme
"""

from collections import defaultdict
from pathlib import Path, PurePosixPath

from datasets.annotations.labelled_shape import LabelledShape, read_annotated_size
from datasets.annotations.labelme_shapes import read_shape
from datasets.layouts.annotation_records import AnnotationRecord, build_dataset, problem, read_shapes
from datasets.layouts.listing import files
from datasets.layouts.photograph_tree import folders_below, photographs_below, record_name
from datasets.sample import Dataset, Problem
from datasets.text_file import read_json
from segdec.errors import DatasetError

TOOL = "LabelMe"


def index(root: Path) -> Dataset:
    """Lists the photographs below `root` with their annotations.

    Raises:
        DatasetError: If a folder cannot be listed, photographs or LabelMe files are missing, or the split
            file is invalid.
    """
    photographs = photographs_below(root)
    sources = [
        path for folder in folders_below(root) for path in files(folder) if path.suffix.lower() == ".json"
    ]
    if not photographs or not sources:
        raise DatasetError(
            f"The folder {root} holds {len(photographs)} photographs and {len(sources)} JSON files. "
            "Expected photographs, and a LabelMe file for each defective one, such as "
            f"{root / '0001.json'}."
        )
    return _Tree(root, photographs).read(sources)


class _Tree:
    """Reads the files of one root and collects annotations and problems."""

    def __init__(self, root: Path, photographs: list[Path]) -> None:
        self._root = root
        self._known = set(photographs)
        self._beside: dict[Path, list[Path]] = defaultdict(list)
        self._of_stem: dict[str, list[Path]] = defaultdict(list)
        for path in photographs:
            self._beside[path.with_suffix("")].append(path)
            self._of_stem[path.stem].append(path)
        self._annotations: list[AnnotationRecord] = []
        self._problems: list[Problem] = []

    def read(self, sources: list[Path]) -> Dataset:
        read = sum(self._read_file(source) for source in sources)
        if not read and not self._problems:
            raise DatasetError(
                f"None of the {len(sources)} JSON files below {self._root} is from LabelMe: they have no "
                "'shapes'. Give the folder in which the photographs were annotated."
            )
        said = {annotation.photograph for annotation in self._annotations}
        plain = [AnnotationRecord(path, str(path)) for path in sorted(self._known - said)]
        return build_dataset(self._root, [*self._annotations, *plain], self._problems)

    def _read_file(self, source: Path) -> bool:
        """Returns whether `source` is a LabelMe file, or should be one."""
        beside = self._beside.get(source.with_suffix(""), [])
        name = record_name(self._root, source) if beside else ""
        try:
            content = read_json(source)
        except DatasetError as error:
            self._complain(source, str(error), name)
            return True
        if not isinstance(content, dict) or not isinstance(content.get("shapes"), list):
            if beside:
                text = "the file has no list 'shapes', so it is not from LabelMe. Remove it."
                self._complain(source, text, name)
            return bool(beside)
        try:
            photograph = self._photograph(source, beside, content.get("imagePath"))
        except ValueError as error:
            self._complain(source, f"{error}.", name)
        else:
            self._annotate(source, photograph, content)
        return True

    def _photograph(self, source: Path, beside: list[Path], image_path: object) -> Path:
        """Returns the photograph of `source`; ValueError if there is none, or more than one."""
        text = image_path.replace("\\", "/") if isinstance(image_path, str) else ""
        named = _below(self._root, source.parent, text)
        if len(beside) > 1 and named not in beside:
            raise ValueError(f"the file may belong to {' or '.join(map(str, beside))}. Rename one of them")
        if named in self._known and beside and named not in beside:
            raise ValueError(
                f"the file belongs to {beside[0]} by its name and to {named} by its imagePath. Rename the "
                "file, or correct imagePath"
            )
        if named in self._known:
            return named
        if beside:
            return beside[0]
        raise ValueError(
            f"the photograph is missing: there is no picture '{source.stem}' in the folder of the file, and "
            f"its imagePath {text[:80]!r} is not below {self._root}. Copy the photograph, or remove the file"
        )

    def _annotate(self, source: Path, photograph: Path, content: dict[str, object]) -> None:
        name = record_name(self._root, photograph)
        shapes = content["shapes"] if isinstance(content["shapes"], list) else []
        labels = _raised(content.get("flags"))
        height = width = 0
        if shapes:
            try:
                height, width = read_annotated_size(content.get("imageHeight"), content.get("imageWidth"))
            except ValueError as error:
                self._complain(source, f"{error}. Open the photograph in {TOOL} and save it again.", name)
        drawn: tuple[LabelledShape, ...] = ()
        if height:
            entries = [(f"{source}, shape {number}", shape) for number, shape in enumerate(shapes, start=1)]
            drawn, problems = read_shapes(entries, lambda shape: read_shape(shape, height, width), name, TOOL)
            self._problems += problems
        self._annotations.append(AnnotationRecord(photograph, str(source), height, width, drawn, labels))

    def _complain(self, source: Path, text: str, name: str) -> None:
        """Adds a problem; without a name, one for each photograph that the file may belong to."""
        of_stem = self._of_stem.get(source.stem, [])
        meant = [name] if name else [record_name(self._root, path) for path in of_stem]
        self._problems += [problem(str(source), text, each) for each in meant or [""]]


def _below(root: Path, folder: Path, text: str) -> Path:
    """The path `text` relative to `folder`; `root` itself if it is outside `root`."""
    path = folder
    for part in PurePosixPath(text).parts:
        if part == "/" or (part == ".." and path == root):
            return root
        path = path.parent if part == ".." else path / part
    return path


def _raised(flags: object) -> tuple[str, ...]:
    """The names of the flags that are set, without LabelMe's own such as `__ignore__`."""
    if not isinstance(flags, dict):
        return ()
    return tuple(
        str(name) for name, value in flags.items() if value is True and not str(name).startswith("__")
    )
