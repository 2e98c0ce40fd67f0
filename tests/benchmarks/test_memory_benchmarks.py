import json

import pytest

from benchmarks import photograph_memory
from benchmarks.serving import memory_bound


def test_photographs_of_all_kinds_are_measured(tmp_path):
    found = tmp_path / "found.json"
    photograph_memory.main(["--side", "256", "--json", str(found)])
    rows = json.loads(found.read_text())["rows"]
    assert len(rows) == 15 + 3 * (5 + 7)
    assert len({row["step"] for row in rows}) == len(rows)


@pytest.mark.slow
def test_service_keeps_to_its_memory(quick_artifact, tmp_path, monkeypatch):
    monkeypatch.setattr(memory_bound, "GIVEN_BACK_S", 0.0)
    found = tmp_path / "found.json"
    words = ["--memory-mb", "1500", "--engine", "openvino", "--rounds", "1", "--model", str(quick_artifact)]
    memory_bound.main([*words, "--json", str(found)])
    result = json.loads(found.read_text())
    missed = [target["name"] for target in result["targets"] if not target["met"]]
    assert [name for name in missed if not name.startswith("in use in the end")] == []
    assert result["limited_by"] in ("memory", "max_pixels")
    bodies = result["rows"][4]["answers"]
    assert "503 uploads_full" in bodies
