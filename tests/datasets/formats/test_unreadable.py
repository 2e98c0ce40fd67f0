"""Formats that cannot be read are named."""

import json

import pytest

from datasets.formats.annotation_files import FORMATS, SUFFIXES, UNKNOWN, read_annotation_files
from datasets.listing import files_below, photographs_below

IMAGE = {"id": 1, "file_name": "a.png", "height": 12, "width": 20}
CONTENTS = {
    "VGG VIA project": {"_via_settings": {}, "_via_img_metadata": {}},
    "export of VGG VIA": {
        "a.png123": {"filename": "a.png", "size": 123, "regions": [], "file_attributes": {}}
    },
    "Supervisely": {"description": "", "tags": [], "size": {"height": 12, "width": 20}, "objects": []},
    "V7 Darwin": {"version": "2.0", "item": {"name": "a.png"}, "annotations": []},
    "Datumaro": {"info": {}, "categories": {}, "items": []},
    "COCO panoptic": {
        "images": [IMAGE],
        "categories": [],
        "annotations": [{"image_id": 1, "segments_info": []}],
    },
    "Label Studio as JSON-MIN": [{"image": "/data/a.png", "id": 1, "annotator": 1, "annotation_id": 2}],
    "Labelbox": [{"data_row": {"id": "x"}, "projects": {}}],
    "CreateML": [{"image": "a.png", "annotations": []}],
    "predictions": [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 0.5}],
    "VGG VIA": ("via.csv", "filename,file_size,region_count,region_id,region_shape_attributes\n"),
    "for TensorFlow": ("_annotations.csv", "filename,width,height,class,xmin,ymin,xmax,ymax\n"),
    "SageMaker": ("output.manifest", '{"source-ref":"s3://bucket/a.png","defect":1}\n'),
    "TFRecords": ("_label_map.pbtxt", 'item {\n    name: "scratch",\n    id: 1\n}\n'),
    "DOTA": ("a.txt", "imagesource:x\n2.0 1.0 6.0 1.0 6.0 4.0 2.0 4.0 scratch 0\n"),
    "CVAT for video": ("annotations.xml", "<annotations><track/></annotations>"),
}


@pytest.mark.parametrize("name, content", CONTENTS.items(), ids=CONTENTS)
def test_a_format_that_cannot_be_read_is_named(tmp_path, write_picture, name, content):
    write_picture(tmp_path / "a.png")
    file, text = content if isinstance(content, tuple) else ("project.json", json.dumps(content))
    (tmp_path / file).write_text(text)
    photographs, sources = photographs_below(tmp_path), files_below(tmp_path, *SUFFIXES)
    readers = read_annotation_files(tmp_path, sources, photographs, tuple(FORMATS), None)
    (problem,) = (problem for reader in readers.values() for problem in reader.problems)
    assert problem.place == str(tmp_path / file)
    assert name in problem.text and "xport" in problem.text
    assert [reader.annotations for reader in readers.values()] == [[]] * len(readers)
    assert UNKNOWN in readers
