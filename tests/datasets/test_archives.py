"""Archives that damage a computer, or lose a part of a data set, are rejected."""

import shutil
import struct
import zipfile

import pytest

from datasets.__main__ import main
from datasets.archives import ArchiveLimits, unpack
from segdec.errors import DatasetError


@pytest.fixture
def make(tmp_path):
    """Writes an archive of names and contents; returns its path."""

    def make(*entries, method=zipfile.ZIP_DEFLATED):
        path = tmp_path / "parts.zip"
        with zipfile.ZipFile(path, "w", method) as archive:
            for name, *content in entries:
                archive.writestr(name, *content or (b"content",))
        return path

    return make


def with_mode(name, mode):
    entry = zipfile.ZipInfo(name)
    entry.create_system, entry.external_attr = 3, mode << 16
    return entry


def below(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def check_rejected(archive, out, words, **limits):
    with pytest.raises(DatasetError, match=words):
        unpack(archive, out, ArchiveLimits(**limits))
    assert [path.name for path in out.parent.iterdir()] == [archive.name]


def test_files_are_written_without_those_of_operating_systems(make, tmp_path):
    archive = make(
        ("parts/good/ä.png", b"a"),
        ("parts\\dent\\b.png", b"b"),  # of a Windows program
        ("parts/empty/", b""),
        ("__MACOSX/parts/good/._a.png", b"x"),
        ("parts/good/.DS_Store", b"x"),
        ("parts/Thumbs.db", b"x"),
        ("parts/more.zip", b"x"),
        (with_mode("parts/c.png", 0o100644), b"c"),
    )
    notes = unpack(archive, tmp_path / "out")
    assert notes == ["Archives in the archive are not unpacked: 1 (parts/more.zip)."]
    assert below(tmp_path / "out") == ["parts/c.png", "parts/dent/b.png", "parts/good/ä.png"]
    assert (tmp_path / "out/parts/dent/b.png").read_bytes() == b"b"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("../a.png", "outside of the archive's folder"),
        ("good/../../a.png", "outside of"),
        ("..\\a.png", "outside of"),
        ("/etc/a.png", "outside of"),
        ("\\\\server\\a.png", "outside of"),
        ("C:/a.png", "outside of"),
        ("good//a.png", "outside of"),
        ("good/ .. /a.png", "outside of"),
        ("good/a\n.png", "unprintable"),
        (f"{'a/' * 600}a.png", "too long"),
        (f"{'ä' * 128}.png", "more than 255 bytes"),
        (with_mode("a.png", 0o120777), "a link or a device"),
        (with_mode("a.png", 0o020666), "a link or a device"),
    ],
)
def test_names_outside_of_the_folder_links_and_devices_are_rejected(make, tmp_path, name, words):
    archive = make(("good/first.png",), (name, b"/etc/passwd"))
    check_rejected(archive, tmp_path / "out", words)
    assert not (tmp_path / "a.png").exists()


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ("good/a.png", "good/A.png", "differs only in case"),
        ("good/a.png", "Good/b.png", "differs only in case"),
        ("good/\u00e4.png", "good/a\u0308.png", "differs only in case"),
        ("good", "good/a.png", "twice"),
        ("good/a.png", "good", "twice"),
        ("good/", "Good", "differs only in case"),
    ],
)
def test_names_that_would_overwrite_each_other_are_rejected(make, tmp_path, one, other, words):
    check_rejected(make((one,), (other,)), tmp_path / "out", words)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_is_there_twice_is_rejected(make, tmp_path):
    check_rejected(make(("good/a.png",), ("good/a.png",)), tmp_path / "out", "twice")


def test_limits_hold_before_anything_is_written(make, tmp_path):
    out = tmp_path / "out"
    archive = make(*((f"{number}.png", bytes(1000)) for number in range(10)), method=zipfile.ZIP_STORED)
    check_rejected(archive, out, "10 files and folders. Expected at most 9", files=9)
    check_rejected(archive, out, "GB after unpacking. Expected at most", unpacked_bytes=9_999)
    archive = make(("bomb.png", bytes(5_000_000)))
    check_rejected(archive, out, "more than 200 to 1")
    assert unpack(archive, out, ArchiveLimits(ratio=2000)) == []


def test_a_full_disk_is_noticed_before(make, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 0))
    check_rejected(make(("a.png",)), tmp_path / "out", "Free space on the disk")


def flip(archive, signature, offset, value):
    """Replaces two bytes after the last `signature`."""
    data = bytearray(archive.read_bytes())
    place = data.rindex(signature) + offset
    data[place : place + 2] = struct.pack("<H", value)
    archive.write_bytes(bytes(data))
    return archive


def test_encrypted_and_damaged_archives_are_rejected(make, tmp_path):
    out = tmp_path / "out"
    check_rejected(flip(make(("a.png",)), b"PK\1\2", 8, 1), out, "is encrypted")
    check_rejected(flip(make(("a.png",)), b"PK\1\2", 10, 14), out, "compressed by method 14")
    check_rejected(flip(make(("a.png",), method=0), b"a.pngcont", 5, 0), out, "is damaged")
    archive = make(("a.png",))
    archive.write_bytes(archive.read_bytes()[:-30])
    check_rejected(archive, out, "not a zip file, or it is damaged")
    archive.write_bytes(b"Rar!")
    check_rejected(archive, out, "not a zip file")


def shifted(archive, before):
    """The archive after `before` bytes, with corrected offsets, as `zip --adjust-sfx` writes them."""
    data = bytearray(archive)
    for signature, offset in ((b"PK\1\2", 42), (b"PK\5\6", 16)):
        place = data.rindex(signature) + offset
        data[place : place + 4] = struct.pack("<I", before + struct.unpack("<I", data[place : place + 4])[0])
    return bytes(data)


@pytest.mark.parametrize(
    "joined",
    [
        lambda first, second: first + second,
        lambda first, second: first + b"\n" * 3 + second,
        lambda first, second: b"#!/bin/sh\n" + first + second,
        lambda first, second: first[:-30] + second,  # the first one has no end
        lambda first, second: first + shifted(second, len(first)),
        lambda first, second: first + second[:-30],
        lambda first, second: first[:-2] + struct.pack("<H", len(second)) + second,  # as a comment
    ],
)
def test_several_archives_in_a_file_are_rejected(make, tmp_path, joined):
    first = make(("good/a.png",)).read_bytes()
    archive = make(("dent/b.png",))
    archive.write_bytes(joined(first, archive.read_bytes()))
    check_rejected(archive, tmp_path / "out", "holds a second archive")


@pytest.mark.parametrize("adjust", [lambda data, _: data, shifted])
def test_bytes_around_an_archive_lose_nothing(make, tmp_path, adjust):
    archive, stub = make(("good/a.png",)), b"#!/bin/sh\nunzip -qq $0\n"
    archive.write_bytes(stub + adjust(archive.read_bytes(), len(stub)) + bytes(512))
    assert unpack(archive, tmp_path / "out") == []
    assert below(tmp_path / "out") == ["good/a.png"]


@pytest.mark.parametrize("before", [b"", b"#!/bin/sh\n"])
def test_zip64_archives_are_unpacked(make, tmp_path, monkeypatch, before):
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)  # instead of 65,535 files
    archive = make(("good/a.png", b"a"), ("good/b.png", b"b"))
    data = archive.read_bytes()
    assert b"PK\6\6" in data and b"PK\6\7" in data
    archive.write_bytes(before + data)
    assert unpack(archive, tmp_path / "out") == []
    assert below(tmp_path / "out") == ["good/a.png", "good/b.png"]
    archive.write_bytes(data + data)
    with pytest.raises(DatasetError, match="holds a second archive"):
        unpack(archive, tmp_path / "again")


def test_a_size_that_is_a_lie_is_noticed(make, tmp_path):
    archive = make(("a.png", bytes(100_000)))
    data = bytearray(archive.read_bytes())
    place = data.rindex(b"PK\1\2") + 24
    data[place : place + 4] = struct.pack("<I", 100)
    archive.write_bytes(bytes(data))
    check_rejected(archive, tmp_path / "out", "is damaged")


def test_existing_folder_stays(make, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(FileExistsError):
        unpack(make(("a.png",)), tmp_path / "out")


def test_command_unpacks_and_reports(make, tmp_path, capsys):
    archive = make(("good/a.png",), ("b.zip",))
    main(["unpack", str(archive), str(tmp_path / "out")])
    printed = capsys.readouterr()
    assert "1 file in" in printed.out and "note: Archives in the archive" in printed.err
    with pytest.raises(SystemExit):
        main(["unpack", str(archive), str(tmp_path / "again"), "--max-gb", "0.000000001"])
    assert capsys.readouterr().err.startswith("error: parts.zip has 0.0 GB after unpacking")
    with pytest.raises(SystemExit):
        main(["unpack", str(tmp_path / "none.zip"), str(tmp_path / "again")])
    assert "none.zip is not a file" in capsys.readouterr().err
