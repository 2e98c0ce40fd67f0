"""Reads the folder that `python -m datasets convert` writes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from api.data_sets.class_masks import IGNORED, make_class_mask
from api.data_sets.new_file import NewFile
from api.data_sets.photographs import NewPhotograph
from api.data_sets.splits import LEFT_OUT
from api.data_sets.versions import read_content
from api.errors import RequestError
from api.messages.causes import Failure
from segdec.annotation_content import AnnotationContent
from segdec.config import GOOD
from segdec.data_set_schemas import Split
from segdec.images import decode_mask_values, read_file, read_size


@dataclass(frozen=True)
class ConvertedPhotograph:
    """A line of the manifest.

    Photographs of one part have the same `part`; it is empty for one alone. `split` is None if no photograph
    of the folder has one. `mask` is a file with the classes of the folder.
    """

    name: str
    part: str
    split: Split | None
    image: Path
    content: AnnotationContent
    mask: Path | None


@dataclass(frozen=True)
class LoadedPhotograph:
    """A photograph to be stored, with its annotation.

    `content` and `mask` have classes of the data set. `problem` says why the annotation cannot be used.
    """

    photograph: NewPhotograph
    content: AnnotationContent
    mask: NewFile | None
    problem: Failure | None = None


class ConvertedFolder:
    """The photographs and classes of a converted folder.

    The first of `classes`, those of defects, has the mask value 1.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        listed = (folder / "classes.txt").read_text("utf-8").splitlines()
        self.classes = [name for name in listed if name != GOOD]
        with (folder / "manifest.jsonl").open(encoding="utf-8") as lines:
            entries = [json.loads(line) for line in lines]
        rest = LEFT_OUT if any("split" in entry for entry in entries) else None
        self.photographs = [self._read(entry, rest) for entry in entries]

    def _read(self, entry: dict[str, Any], rest: Split | None) -> ConvertedPhotograph:
        """Reads a line of the manifest; without a split the photograph has that of the `rest`."""
        name, group = entry["name"], entry["group"]
        mask = entry.get("class_mask")
        return ConvertedPhotograph(
            name,
            "" if group == name else group,
            entry.get("split", rest),
            self._folder / entry["image"],
            read_content(entry),
            None if mask is None else self._folder / mask,
        )

    def used_classes(self) -> list[str]:
        """Returns the classes that labels or masks have; slow, so call it in a thread."""
        used = {photograph.content.label for photograph in self.photographs}
        numbers: set[int] = set()
        for photograph in self.photographs:
            if photograph.mask is not None:
                numbers.update(np.unique(_read_mask(photograph.mask, len(self.classes))).tolist())
        numbered = enumerate(self.classes, start=1)
        return [name for number, name in numbered if name in used or number in numbers]

    def load(
        self, photographs: Sequence[ConvertedPhotograph], classes: Sequence[str]
    ) -> list[LoadedPhotograph]:
        """Reads the files of photographs; `classes` are those of the data set. Slow, as `used_classes`."""
        return [self._load(photograph, classes) for photograph in photographs]

    def _load(self, photograph: ConvertedPhotograph, classes: Sequence[str]) -> LoadedPhotograph:
        height, width = read_size(photograph.image)
        file = NewFile(photograph.image.read_bytes(), photograph.image.suffix[1:], width, height)
        new = NewPhotograph(file, photograph.name, photograph.part, split=photograph.split)
        known = {name.casefold(): name for name in (GOOD, *classes)}
        label = photograph.content.label and known[photograph.content.label.casefold()]
        content = photograph.content.model_copy(update={"label": label})
        if photograph.mask is None or label is None:
            return LoadedPhotograph(new, content, None)
        numbers = np.zeros(256, np.uint8)
        numbers[IGNORED] = IGNORED
        for number, name in enumerate(self.classes, start=1):
            if name.casefold() in known:
                numbers[number] = classes.index(known[name.casefold()]) + 1
        pixels = numbers[_read_mask(photograph.mask, len(self.classes))]
        try:
            mask = make_class_mask(pixels, label, classes)
        except RequestError as error:
            unknown = content.model_copy(update={"label": None})
            return LoadedPhotograph(new, unknown, None, problem=Failure.of(error))
        return LoadedPhotograph(new, content, mask)


def _read_mask(path: Path, class_count: int) -> "np.ndarray[tuple[int, int], np.dtype[np.uint8]]":
    values = [*range(1, class_count + 1), IGNORED]
    pixels: np.ndarray[tuple[int, int], np.dtype[np.uint8]] = decode_mask_values(
        read_file(path), str(path), classes=values
    )
    return pixels
