"""The benchmark of many screens."""

import json

import pytest

from benchmarks.serving import line_screens


@pytest.mark.slow
def test_line_screens(tmp_path):
    arguments = ["--folder", str(tmp_path), "--rows", "100", "--screens", "5", "--seconds", "1"]
    assert line_screens.main([*arguments, "--json", str(tmp_path / "out.json")]) in (0, 1)
    assert json.loads((tmp_path / "out.json").read_text())
