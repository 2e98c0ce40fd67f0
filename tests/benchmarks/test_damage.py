"""The benchmark of damaged files runs with small numbers."""

import json

from benchmarks.damage import FORMATS, OVERWRITES, main


def test_every_format_has_its_row(tmp_path):
    written = tmp_path / "figures.json"
    assert main(["--photographs", "2", "--times", "3", "--json", str(written)]) == 0
    rows = {row["format"]: row for row in json.loads(written.read_text())["rows"]}
    assert list(rows) == list(FORMATS)
    assert {rows["PNG"][name] for name in OVERWRITES} == {100}
    assert {name for name, row in rows.items() if row["integrity"] == "checked"} == {"PNG"}
    assert all(0 <= row[name] <= 100 for row in rows.values() for name in OVERWRITES)
    assert rows["BMP"]["random"] < 100
