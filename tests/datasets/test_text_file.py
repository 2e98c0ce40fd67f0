import pytest

from datasets.text_file import guess_encoding, parse_json, read_annotation_text, read_csv
from segdec.errors import DatasetError


@pytest.mark.parametrize("text", ["", '{"images": [', "[" * 100_000])
def test_broken_json_is_one_clear_error(tmp_path, text):
    with pytest.raises(DatasetError, match=r"a\.json is not JSON"):
        parse_json(text, tmp_path / "a.json")


def test_missing_file_is_named(tmp_path):
    with pytest.raises(DatasetError, match=r"gone\.json does not exist"):
        read_annotation_text(tmp_path / "gone.json")


@pytest.mark.parametrize(
    ("text", "encoding", "guess"),
    [
        ("plain", "ascii", "utf-8-sig"),
        ("Öl über", "utf-8-sig", "utf-8-sig"),
        ("Öl über", "utf-16", "utf-16"),
        ("Öl über", "cp1252", "cp1252"),
        ("éraflure", "cp1252", "cp1252"),
        ("划痕", "gbk", "gb2312"),
        ("キズ", "cp932", "cp932"),
    ],
)
def test_encodings_are_guessed(text, encoding, guess):
    assert guess_encoding(text.encode(encoding)) == guess


def table(path):
    columns, rows = read_csv(path)
    return columns, [(row.line, *row.cells.values(), row.surplus) for row in rows]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_table_is_read_with_the_separator_of_its_first_line(tmp_path, separator):
    path = tmp_path / "a.csv"
    text = 'image,label,box\r\na.png, good ,\r\n\r\n"b,;\n.png",dent,"1,2"\r\n c.png\r\n'
    path.write_bytes(b"\xef\xbb\xbf" + text.replace(",", separator).encode())
    columns, rows = table(path)
    assert columns == ["image", "label", "box"]
    quoted = [f"b{separator};\n.png", "dent", f"1{separator}2"]
    assert rows == [(2, "a.png", "good", "", 0), (5, *quoted, 0), (6, "c.png", "", "", 0)]


def test_the_apostrophe_before_a_formula_is_removed(tmp_path):
    (tmp_path / "a.csv").write_text("image,label\n'=1.png,'good'\n")
    assert table(tmp_path / "a.csv")[1] == [(2, "=1.png", "'good'", 0)]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\nimage,label\n", "is empty"),
        (b"image,label,image\n", "column 'image' twice"),
        (b'image,label\na.png,good\n"b.png,good\n', "line 3: invalid CSV"),
        (b"image,label\n" + b"a" * 200_000 + b",good\n", "line 2: invalid CSV"),
    ],
)
def test_broken_table_is_one_clear_error(tmp_path, data, words):
    path = tmp_path / "a.csv"
    path.write_bytes(data)
    with pytest.raises(DatasetError, match=words):
        table(path)
