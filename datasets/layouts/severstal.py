"""Severstal's steel strips in their native layout.

    root/train_images/0002cc93b.jpg    1600×256
    root/train.csv                     ImageId,ClassId,EncodedPixels

Each row of the table marks one class (1 to 4) of one photograph as run lengths; all rows of a photograph are
drawn. Photographs without a row are good. The label is the class that covers most pixels. The table of the
competition, with one column `ImageId_ClassId` and rows without run lengths, is accepted too. The published
test set has no labels, so the default split is used: 60 % train, 20 % val and 20 % test of each class. The
classes have no published names; they are `defect_1` to `defect_4`.

Reference:
    Severstal: Steel Defect Detection, Kaggle, 2019.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from datasets.annotations.class_values import draw_parts
from datasets.annotations.drawn_mask import Shape
from datasets.annotations.labelled_shape import largest_class
from datasets.annotations.run_length_shape import RunLengthShape
from datasets.layouts.listing import files
from datasets.sample import Dataset, Problem, Record
from datasets.splitting import default_split
from datasets.text_file import CsvRow, read_csv
from segdec.errors import DatasetError

CLASSES = ("good", "defect_1", "defect_2", "defect_3", "defect_4")

HEIGHT, WIDTH = 256, 1600
"""Size of all published photographs, px; reading the photographs reports those with another size."""

PHOTOGRAPHS = "train_images"
TABLE = "train.csv"
COLUMNS = ("ImageId", "ClassId", "EncodedPixels")
COMPETITION_COLUMNS = ("ImageId_ClassId", "EncodedPixels")

Part = tuple[int, Shape]


def index(root: Path) -> Dataset:
    """Lists the photographs below `root` with the default split, each in its own group.

    Raises:
        DatasetError: If the folder or the table is missing, or the table has other columns.
    """
    photographs = {path.name: path for path in files(root / PHOTOGRAPHS) if path.suffix.lower() == ".jpg"}
    if not photographs:
        raise DatasetError(
            f"The folder {root / PHOTOGRAPHS} holds no photograph. Expected 0002cc93b.jpg and so on."
        )
    parts: dict[str, list[Part]] = defaultdict(list)
    problems: list[Problem] = []
    for file_name, found in _read_rows(root / TABLE, photographs):
        if isinstance(found, Problem):
            problems.append(found)
        else:
            parts[file_name].append(found)
    broken = {problem.name for problem in problems}
    records = (_record(path, parts[name], root / TABLE) for name, path in sorted(photographs.items()))
    kept = tuple(record for record in records if record.name not in broken)
    return default_split(Dataset(classes=CLASSES, records=kept, problems=tuple(problems)))


def _read_rows(table: Path, photographs: dict[str, Path]) -> Iterator[tuple[str, Part | Problem]]:
    """Yields file name, and defect or problem, of each row with run lengths."""
    columns, rows = read_csv(table)
    if not (set(columns) >= set(COLUMNS) or set(columns) >= set(COMPETITION_COLUMNS)):
        raise DatasetError(
            f"The table {table} has the columns {', '.join(columns)}. Expected {', '.join(COLUMNS)}, or "
            f"{', '.join(COMPETITION_COLUMNS)}: give the published train.csv."
        )
    for row in rows:
        file_name, class_id = _photograph_and_class(row)
        if not row.cells["EncodedPixels"]:
            continue
        try:
            yield file_name, _read_row(row, file_name, class_id, photographs)
        except ValueError as error:
            name = Path(file_name).stem
            text = f"{file_name}: {error}. Copy the published table again, or remove the row."
            yield file_name, Problem(f"{table}, line {row.line}", text, name)


def _photograph_and_class(row: CsvRow) -> tuple[str, str]:
    if "ImageId" in row.cells:
        return row.cells["ImageId"], row.cells["ClassId"]
    file_name, _, class_id = row.cells["ImageId_ClassId"].rpartition("_")
    return file_name, class_id


def _read_row(row: CsvRow, file_name: str, class_id: str, photographs: dict[str, Path]) -> Part:
    if file_name not in photographs:
        raise ValueError(f"the photograph is not in {PHOTOGRAPHS}")
    if class_id not in {"1", "2", "3", "4"}:
        raise ValueError(f"the class '{class_id}' is not one of 1, 2, 3 and 4")
    return int(class_id), RunLengthShape.from_starts(row.cells["EncodedPixels"], HEIGHT, WIDTH)


def _record(path: Path, parts: list[Part], table: Path) -> Record:
    if not parts:
        return Record(path.stem, path, None, label=0, group=path.stem)
    mask, values = draw_parts(f"{table}, {path.name}", HEIGHT, WIDTH, parts)
    label = largest_class(parts)
    return Record(path.stem, path, mask, label=label, group=path.stem, mask_values=values)
