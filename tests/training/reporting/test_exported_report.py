import pytest

from training.reporting import exported_report
from training.reporting.exported_report import read_report

PAGE = '<p><a href="#errors">é</a><img src="data:image/png;base64,AA"><svg><path d="M0"/></svg></p>'


def test_a_page_in_one_file_is_returned_as_it_is(tmp_path, capsys):
    assert read_report(tmp_path) is None
    (tmp_path / "report.html").write_text(PAGE, encoding="utf-8")
    assert read_report(tmp_path) == PAGE.encode()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'<img src="part.png">', "needs other files, the first is 'part.png'"),
        (b'<link rel="stylesheet" href="https://example.com/a.css">', "needs other files"),
        (b'<iframe src="javascript:alert(1)"></iframe>', "needs other files"),
        (b"\xff\xfe", "codec can't decode"),
        (b" " * 101, r"0.0 MB, expected at most 0 MB"),
    ],
)
def test_other_pages_are_omitted_with_the_reason(tmp_path, monkeypatch, capsys, content, reason):
    monkeypatch.setattr(exported_report, "MAX_REPORT_BYTES", 100)
    (tmp_path / "report.html").write_bytes(content)
    assert read_report(tmp_path) is None
    note = capsys.readouterr().err
    assert note.startswith("note: The model is exported without its report:") and reason in note


def test_an_unreadable_report_is_omitted(tmp_path, capsys):
    (tmp_path / "report.html").mkdir()
    assert read_report(tmp_path) is None
    assert "Is a directory" in capsys.readouterr().err
