"""The benchmark of batch inspection runs with small numbers."""

import json

import pytest

from benchmarks import batch_inspection

pytest.importorskip("pyarrow")


@pytest.mark.slow
def test_each_way_inspects_every_photograph(quick_artifact, tmp_path, monkeypatch):
    monkeypatch.setattr(batch_inspection, "find_spec", lambda _: None)
    monkeypatch.setattr(batch_inspection, "available_cores", lambda: 2)
    once = lambda ways, _: {name: [way()] for name, way in ways.items()}  # noqa: E731
    monkeypatch.setattr(batch_inspection, "interleave", once)
    written = tmp_path / "figures.json"
    arguments = [
        "--model",
        str(quick_artifact),
        "--size",
        "24x32",
        "--photographs",
        "4",
        "--json",
        str(written),
    ]
    assert batch_inspection.main(arguments) in (0, 1)
    rows = json.loads(written.read_text())["rows"]
    assert [row["way"] for row in rows] == ["one process", "2 shards"]
    assert all(row["s for all, median"] > 0 for row in rows)
