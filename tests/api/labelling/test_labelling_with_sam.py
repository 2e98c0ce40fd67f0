"""Regions from clicks over HTTP, of a service with the files of SAM."""

import numpy as np
import pytest

from api.settings import Settings, read_settings
from segdec.errors import ConfigError
from segdec.images import encode_png
from tests.api.conftest import ServiceClient
from tests.api.engineer_client import EngineerClient
from tests.api.labelling.sam_graphs import BEST_RADIUS as RADIUS
from tests.api.labelling.sam_graphs import draw_clicks, iou, write_sam

SIZE = 40, 90


@pytest.fixture(scope="module")
def engineer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("record")
    with EngineerClient(folder, sam=write_sam(folder / "sam")) as client:
        yield client


@pytest.fixture
def add_photograph(engineer):
    """Adds a bright photograph of its own; returns its path."""

    def add(number):
        pixels = np.full((*SIZE, 3), 255 - number, np.uint8)
        created = engineer.post("/v1/data-sets", json={"name": f"Bright {number}"}).json()
        path = f"/v1/data-sets/{created['id']}/photographs"
        sent = engineer.post(path, content=encode_png(pixels), headers={"Content-Type": "image/png"}).json()
        return f"{path}/{sent['photograph']['id']}"

    return add


def test_sam_marks_the_region_and_the_encoder_runs_once_for_a_photograph(
    find_region, add_photograph, encoded
):
    photograph, other = add_photograph(0), add_photograph(1)
    clicks = (30, 25, True), (45, 25, False), (70, 35, True)
    for number in (1, 2, 3, 1):
        expected = draw_clicks(SIZE, clicks[:number], RADIUS)
        assert iou(find_region(photograph, SIZE, *clicks[:number]), expected) > 0.85
    assert encoded == [(*SIZE, 3)]
    find_region(other, SIZE, clicks[0])
    find_region(photograph, SIZE, clicks[2])
    assert encoded == 2 * [(*SIZE, 3)]


def test_a_service_with_other_files_does_not_start(make_app, tmp_path):
    app = make_app(record="required", record_folder=tmp_path / "record", sam=tmp_path / "none")
    with pytest.raises(ConfigError, match=r"none', has these files \*encoder.onnx: none"), ServiceClient(app):
        pass


def test_the_files_need_a_record():
    with pytest.raises(ConfigError, match="--sam needs a record"):
        read_settings(["--model", "m", "--sam", "files"])
    assert Settings().sam is None
