"""The shared harness of the benchmarks."""

import json
import math

import pytest

from benchmarks.harness import Target, finish, interleave, paired_ratio


def test_a_missed_target_is_the_exit_code(tmp_path, capsys):
    targets = [Target("rate", 2.0, lowest=2), Target("failures", 1, highest=0)]
    assert finish(tmp_path / "new" / "figures.json", [{"a": "x", "b": 1.5}], targets, side_px=8) == 1
    printed = capsys.readouterr().out
    assert "met     rate: 2 (≥ 2)" in printed
    assert "MISSED  failures: 1 (≤ 0)" in printed
    written = json.loads((tmp_path / "new" / "figures.json").read_text())
    assert [target["met"] for target in written["targets"]] == [True, False]
    assert (written["rows"], written["side_px"]) == ([{"a": "x", "b": 1.5}], 8)
    assert written["machine"]["cores"]
    assert not Target("nothing measured", float("nan"), highest=1).met


def test_competitors_take_turns():
    asked = []

    def measure(name):
        asked.append(name)
        return float(len(asked))

    measured = interleave({name: lambda name=name: measure(name) for name in "ab"}, rounds=2)
    assert asked == ["a", "b"] * 3
    assert measured == {"a": [3.0, 5.0], "b": [4.0, 6.0]}  # the first round warms up


def test_a_ratio_of_what_was_measured_side_by_side():
    ratio = paired_ratio([2.0, 8.0], [1.0, 2.0])  # logarithms: 1 and 2 ln 2, deviation ln 2 / √2
    half = 12.706 * math.log(2) / 2
    assert ratio["ratio"] == pytest.approx(2**1.5)
    assert math.log(ratio["to"] / ratio["ratio"]) == pytest.approx(half, rel=1e-4)
    assert math.log(ratio["ratio"] / ratio["from"]) == pytest.approx(half, rel=1e-4)
    assert math.isnan(paired_ratio([2.0], [1.0])["from"])
