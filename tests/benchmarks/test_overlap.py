"""The benchmark of overlapping runs; its figures are for people to read."""

import json

import pytest

from benchmarks.overlap import PARTS, main


def test_all_ways_are_measured(tiny_artifact, tmp_path):
    written = tmp_path / "figures.json"
    small = ["--size", "24x32", "--photographs", "3", "--rounds", "2"]
    assert main(["--model", str(tiny_artifact), *small, "--json", str(written)]) == 0
    figures = json.loads(written.read_text())
    assert [row["photographs/s"] for row in figures["rows"]] == [
        "one by one",
        "overlapped, batch 1",
        "overlapped",
    ]
    assert all(0 < row["min"] <= row["median"] <= row["max"] for row in figures["rows"])
    assert figures["rows"][0]["ratio"] == 1
    assert list(figures["shares"]) == list(PARTS)
    assert sum(figures["shares"].values()) == pytest.approx(1, abs=0.01)
