import pytest

from benchmarks.serving import large_data_set


@pytest.mark.slow
def test_large_data_set(tmp_path, capsys):
    arguments = ["--folder", str(tmp_path), "--photographs", "20", "--times", "1"]
    assert large_data_set.main(arguments) in (0, 1)
    printed = capsys.readouterr().out
    assert "the next photograph to label" in printed and "a version" in printed
