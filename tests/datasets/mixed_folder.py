"""Writes a folder whose photographs are annotated in every way: by folders, masks and labelling tools."""

import json
from collections.abc import Iterable
from pathlib import Path

import cv2
import numpy as np

from datasets.layouts.toy import make_sample
from datasets.sample import Sample
from segdec.images import write_png

SCRATCH = "Kratzer"
SIZE_PX = 64

WAYS = ("mask", "beside", "parts", "alpha", "labelme", "coco", "yolo", "voc", "label_studio", "class")
"""How a defect is annotated; `voc` draws a box, `class` states the class alone."""


def write_mixed_folder(root: Path, count: int) -> dict[str, Sample]:
    """Writes `count` good photographs and as many with defects for each of `WAYS`; returns all by name."""
    samples = iter([make_sample(index, size=SIZE_PX) for index in range(2 * count * len(WAYS))])
    written: dict[str, Sample] = {}
    tools: dict[str, list[tuple[str, Sample]]] = {way: [] for way in WAYS}
    for way in WAYS * count:
        good, defective = next(samples), next(samples)
        stem = f"{way}_{len(written)}"
        in_folder = way in WAYS[:5]
        name = f"NIO/{stem}" if way == "class" else f"{SCRATCH if in_folder else 'images'}/{stem}"
        written[name], written[f"gut/{stem}"] = defective, good
        tools[way].append((name, defective))
        if way in ("coco", "yolo", "label_studio"):  # tools that also state that a photograph is good
            tools[way].append((f"images/{stem}_good", good))
            written[f"images/{stem}_good"] = written.pop(f"gut/{stem}")
    for name, sample in written.items():
        _write(root / f"{name}.png", sample.image)
    for way, annotated in tools.items():
        _WRITERS[way](root, annotated)
    return written


def _write(path: Path, pixels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_png(path, pixels)


def _write_json(path: Path, content: object, encoding: str = "utf-8") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(json.dumps(content, ensure_ascii=False).encode(encoding))


def _polygons(sample: Sample) -> list[list[list[float]]]:
    """The outlines of the defects, [x, y] in px."""
    large = cv2.resize(sample.mask, None, fx=8, fy=8, interpolation=cv2.INTER_NEAREST)
    contours, _ = cv2.findContours(large, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    return [((contour[:, 0] + 0.5) / 8).tolist() for contour in contours]


Annotated = Iterable[tuple[str, Sample]]


def _masks(root: Path, annotated: Annotated) -> None:
    for name, sample in annotated:
        _write(root / f"masks/{name}.png", sample.mask)


def _masks_beside(root: Path, annotated: Annotated) -> None:
    for name, sample in annotated:
        _write(root / f"{name}_mask.png", sample.mask)


def _masks_in_parts(root: Path, annotated: Annotated) -> None:
    for name, sample in annotated:
        split = int(np.median(np.flatnonzero(sample.mask.any(axis=0))))
        for number, columns in enumerate((slice(0, split + 1), slice(split + 1, None))):
            part = np.zeros_like(sample.mask)
            part[:, columns] = sample.mask[:, columns]
            _write(root / f"masks/{name}_{number}.png", part)


def _masks_in_alpha(root: Path, annotated: Annotated) -> None:
    for name, sample in annotated:
        painted = np.dstack([np.full((*sample.mask.shape, 3), 90, np.uint8), sample.mask])
        (root / f"masks/{name}.png").parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(root / f"masks/{name}.png"), painted)


def _labelme(root: Path, annotated: Annotated) -> None:
    """A file of Windows in another encoding, with an accidental click."""
    for name, sample in annotated:
        shapes = [
            {"label": SCRATCH, "shape_type": "polygon", "points": points} for points in _polygons(sample)
        ]
        shapes.append({"label": SCRATCH, "shape_type": "rectangle", "points": [[3, 3], [3, 3]]})
        path = f"..\\Größe\\{name.rpartition('/')[2]}.png"
        size = {"imageHeight": SIZE_PX, "imageWidth": SIZE_PX}
        _write_json(root / f"{name}.json", {"shapes": shapes, "imagePath": path, **size}, "cp1252")


def _coco(root: Path, annotated: Annotated) -> None:
    """Paths of another machine, and ids that start at 1 in each photograph."""
    images, annotations = [], []
    for key, (name, sample) in enumerate(annotated):
        images.append(
            {"id": key, "file_name": f"D:\\line\\{name[7:]}.png", "height": SIZE_PX, "width": SIZE_PX}
        )
        if sample.label:
            flat = [[value for point in points for value in point] for points in _polygons(sample)]
            annotations.append({"id": 1, "image_id": key, "category_id": 7, "segmentation": flat})
    content = {"images": images, "annotations": annotations, "categories": [{"id": 7, "name": SCRATCH}]}
    _write_json(root / "annotations/instances_default.json", content)


def _yolo(root: Path, annotated: Annotated) -> None:
    (root / "labels").mkdir(exist_ok=True)
    (root / "classes.txt").write_text(f"{SCRATCH}\n")
    for name, sample in annotated:
        rows = [
            np.divide(points, SIZE_PX).reshape(-1) for points in (_polygons(sample) if sample.label else [])
        ]
        text = "".join(f"0 {' '.join(f'{value:.6f}' for value in row)}\n" for row in rows)
        (root / f"labels/{name[7:]}.txt").write_text(text)


def _voc(root: Path, annotated: Annotated) -> None:
    for name, sample in annotated:
        left, top, width, height = cv2.boundingRect(sample.mask)
        edges = {"xmin": left + 1, "ymin": top + 1, "xmax": left + width, "ymax": top + height}
        box = "".join(f"<{edge}>{value}</{edge}>" for edge, value in edges.items())
        size = f"<size><width>{SIZE_PX}</width><height>{SIZE_PX}</height><depth>1</depth></size>"
        drawn = f"<object><name>{SCRATCH}</name><bndbox>{box}</bndbox></object>"
        text = f"<annotation><filename>{name[7:]}.png</filename>{size}{drawn}</annotation>"
        (root / f"{name}.xml").write_text(text)


def _label_studio(root: Path, annotated: Annotated) -> None:
    tasks = []
    for key, (name, sample) in enumerate(annotated):
        results = [
            {
                "type": "polygonlabels",
                "original_width": SIZE_PX,
                "original_height": SIZE_PX,
                "value": {"points": (np.array(points) * 100 / SIZE_PX).tolist(), "polygonlabels": [SCRATCH]},
            }
            for points in (_polygons(sample) if sample.label else [])
        ]
        address = f"/data/upload/1/0a1b2c3d-{name[7:]}.png"
        tasks.append({"id": key, "data": {"image": address}, "annotations": [{"result": results}]})
    _write_json(root / "project-1.json", tasks)


def _class_alone(root: Path, _annotated: Annotated) -> None:
    (root / "supervision.txt").write_text("label  NIO\n")


_WRITERS = {
    "mask": _masks,
    "beside": _masks_beside,
    "parts": _masks_in_parts,
    "alpha": _masks_in_alpha,
    "labelme": _labelme,
    "coco": _coco,
    "yolo": _yolo,
    "voc": _voc,
    "label_studio": _label_studio,
    "class": _class_alone,
}
