"""Regions from clicks over HTTP; how well they fit is measured by benchmarks/clicks.py."""

import math

import numpy as np
import pytest

from api.data_sets.tables import data_set_files
from api.inference.memory_budget import BYTES_PER_PIXEL, PhotographCost
from api.labelling import labelling_routes as labelling
from segdec.images import encode_png
from tests.api.conftest import problem
from tests.api.engineer_client import EngineerClient

PNG = {"Content-Type": "image/png"}
SIZE = HEIGHT, WIDTH = 80, 120


@pytest.fixture(scope="module")
def engineer(tmp_path_factory):
    """A client that all tests of this module share."""
    with EngineerClient(tmp_path_factory.mktemp("record")) as client:
        yield client


@pytest.fixture(scope="module")
def photograph(engineer):
    """The path of a dark photograph with a bright square."""
    pixels = np.random.default_rng(0).integers(50, 60, (HEIGHT, WIDTH)).astype(np.uint8)
    pixels[20:40, 30:50] += 120
    created = engineer.post("/v1/data-sets", json={"name": "Squares", "classes": ["dent"]}).json()
    path = f"/v1/data-sets/{created['id']}/photographs"
    sent = engineer.post(path, content=encode_png(pixels), headers=PNG).json()
    return f"{path}/{sent['photograph']['id']}"


def click(x, y):
    return {"x": x, "y": y, "is_defect": True}


def test_a_click_on_a_defect_marks_it_and_a_click_beside_it_corrects(find_region, photograph):
    square = np.zeros((HEIGHT, WIDTH), bool)
    square[20:40, 30:50] = True
    found = find_region(photograph, SIZE, (40, 30, True))
    assert (found & square).sum() / (found | square).sum() > 0.9
    corrected = find_region(photograph, SIZE, (40, 30, True), (48, 30, False))
    assert corrected[30, 40] and not corrected[30, 48]
    np.testing.assert_array_equal(find_region(photograph, SIZE, (40, 30, True)), found)
    assert not find_region(photograph, SIZE, (5, 5, False)).any()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"clicks": []}, (400, "bad_json")),
        ({"clicks": [{"x": 1, "y": -1, "is_defect": True}]}, (400, "bad_json")),
        ({"clicks": [{"x": 1.5, "y": 1, "is_defect": True}]}, (400, "bad_json")),
        ({"clicks": [click(WIDTH, 1)]}, (400, "bad_click")),
        ({"clicks": 201 * [click(1, 1)]}, (400, "bad_json")),
    ],
)
def test_invalid_clicks_are_rejected(engineer, photograph, body, expected):
    assert problem(engineer.post(f"{photograph}/segment", json=body)) == expected


def test_an_unknown_photograph_is_not_found(engineer, photograph):
    path = photograph.rpartition("/")[0]
    answer = engineer.post(f"{path}/999/segment", json={"clicks": [click(1, 1)]})
    assert problem(answer) == (404, "photograph_not_found")


@pytest.mark.parametrize("use", ["segment", "image?form=png", "image?form=thumbnail"])
def test_a_photograph_is_not_opened_while_others_need_the_memory(engineer, use):
    pixels = np.random.default_rng(len(use)).integers(0, 255, (HEIGHT, WIDTH, 3), np.uint8)
    created = engineer.post("/v1/data-sets", json={"name": use}).json()
    path = f"/v1/data-sets/{created['id']}/photographs"
    sent = engineer.post(path, content=encode_png(pixels), headers=PNG).json()
    place = f"{path}/{sent['photograph']['id']}/{use}"
    service = engineer.app.state.service
    forget = data_set_files.update().values(thumbnail=None)
    engineer.run(
        lambda: service.features.data_sets.write(lambda connection: connection.execute(forget) and None)
    )

    def ask():
        return (
            engineer.post(place, json={"clicks": [click(1, 1)]}) if use == "segment" else engineer.get(place)
        )

    memory = service.inspection.memory
    inspected = PhotographCost(memory.available_bytes - BYTES_PER_PIXEL * HEIGHT * WIDTH + 1, 0.0)
    memory.reserve(inspected)
    refused = ask()
    memory.release(inspected)
    assert (problem(refused), "Retry-After" in refused.headers) == ((503, "queue_full"), True)
    assert (ask().status_code, memory.reserved_bytes) == (200, 0)


def test_after_the_deadline_the_clicks_so_far_are_kept(engineer, find_region, photograph, monkeypatch):
    places = (31, 31), (45, 35), (35, 22)
    body = {"clicks": [click(*place) for place in places]}
    monkeypatch.setattr(labelling, "perf_counter", lambda: math.inf)
    answers = [problem(engineer.post(f"{photograph}/segment", json=body)) for _ in places]
    assert answers == 3 * [(504, "deadline_passed")]
    assert find_region(photograph, SIZE, *((*place, True) for place in places)).any()
