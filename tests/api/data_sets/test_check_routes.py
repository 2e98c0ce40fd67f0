"""Checks of the labelled photographs of a data set, in the background."""

import pytest

from datasets.layouts.toy import make_sample
from segdec.images import encode_png
from tests.api.conftest import PNG, problem

pytestmark = pytest.mark.usefixtures("program_in_this_process")


def add(client, path, name, pixels, label="good"):
    """Adds a photograph with a label; returns its id."""
    sent = client.post(f"{path}/photographs?name={name}", content=encode_png(pixels), headers=PNG)
    number = sent.json()["photograph"]["id"]
    body = {"label": label, "based_on": None}
    assert client.put(f"{path}/photographs/{number}/annotation", json=body).status_code == 200
    return number


def test_findings_name_the_photographs(engineer, path, wait_for):
    never = engineer.get(f"{path}/check")
    assert (never.status_code, never.json()) == (200, None)
    assert problem(engineer.post(f"{path}/check")) == (409, "nothing_labelled")
    parts = [make_sample(2 * number, size=64).image for number in range(12)]
    ids = {str(number): add(engineer, path, number, pixels) for number, pixels in enumerate(parts)}
    ids["brighter"] = add(engineer, path, "brighter", parts[0].clip(0, 254) + 1)
    ids["small"] = add(engineer, path, "small", parts[1][:40])
    answer = engineer.post(f"{path}/check")
    assert answer.status_code == 202 and answer.json()["state"] == "running"
    assert answer.json()["checked"] == 14
    shown = wait_for(f"{path}/check")
    assert (shown["state"], shown["error"]) == ("done", None)
    found = [(one["kind"], [each["name"] for each in one["photographs"]]) for one in shown["findings"]]
    assert ("near_duplicates", ["0", "brighter"]) in found
    assert ("size", ["small"]) in found
    assert shown["findings"][0]["photographs"][0]["id"] == ids["0"]
    engineer.delete(f"{path}/photographs/{ids['brighter']}")
    names = [each["name"] for each in engineer.get(f"{path}/check").json()["findings"][0]["photographs"]]
    assert names == ["0"]


def test_contradictions_have_names_instead_of_files(engineer, path, wait_for):
    pixels = make_sample(0, size=64).image
    add(engineer, path, "one", pixels)
    add(engineer, path, "other", pixels.repeat(3, axis=2), "scratch")  # in colour: another file
    engineer.post(f"{path}/check")
    shown = wait_for(f"{path}/check")
    assert shown["state"] == "done", shown
    assert all("data_set/" not in one["text"] for one in shown["findings"])
