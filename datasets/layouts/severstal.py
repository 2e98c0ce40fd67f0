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

from pathlib import Path

from datasets.annotations.labelled_shape import LabelledShape
from datasets.annotations.run_length_shape import RunLengthShape
from datasets.formats.annotation_reader import AnnotationReader
from datasets.listing import files
from datasets.sample import Dataset
from datasets.text_file import read_csv
from segdec.errors import DatasetError

CLASSES = ("good", "defect_1", "defect_2", "defect_3", "defect_4")

SIZE = (256, 1600)
"""Height and width of all published photographs, px; reading them reports those with another size."""

PHOTOGRAPHS = "train_images"
TABLE = "train.csv"
COLUMNS = ("ImageId", "ClassId", "EncodedPixels")
COMPETITION_COLUMNS = ("ImageId_ClassId", "EncodedPixels")


def index(root: Path) -> Dataset:
    """Lists the photographs below `root` with the default split, each in its own group.

    Raises:
        DatasetError: If the folder or the table is missing, or the table has other columns.
    """
    folder, table = root / PHOTOGRAPHS, root / TABLE
    photographs = files(folder, ".jpg")
    if not photographs:
        raise DatasetError(f"The folder {folder} holds no photograph. Expected 0002cc93b.jpg and so on.")
    columns, rows = read_csv(table)
    if not (set(columns) >= set(COLUMNS) or set(columns) >= set(COMPETITION_COLUMNS)):
        raise DatasetError(
            f"The table {table} has the columns {', '.join(columns)}. Expected {', '.join(COLUMNS)}, or "
            f"{', '.join(COMPETITION_COLUMNS)}: give the published train.csv."
        )
    reader = AnnotationReader(folder, "Copy the published table again, or remove the row.")
    by_name = {path.name: reader.add(path, f"{table}, {path.name}", *SIZE) for path in photographs}
    for row in rows:
        if not row.cells["EncodedPixels"]:
            continue
        if "ImageId" in columns:
            name, class_id = row.cells["ImageId"], row.cells["ClassId"]
        else:
            name, _, class_id = row.cells["ImageId_ClassId"].rpartition("_")
        with reader.problem_at(f"{table}, line {row.line}, {name}", Path(name).stem):
            if name not in by_name:
                raise ValueError(f"the photograph is not in {PHOTOGRAPHS}")
            if class_id not in {"1", "2", "3", "4"}:
                raise ValueError(f"the class '{class_id}' is not one of 1, 2, 3 and 4")
            shape = RunLengthShape.from_starts(row.cells["EncodedPixels"], *SIZE)
            by_name[name].shapes.append(LabelledShape(CLASSES[int(class_id)], shape))
    return reader.dataset(CLASSES)
