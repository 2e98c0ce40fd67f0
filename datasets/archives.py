"""Unpacks a zip archive that somebody else made.

Nothing is written outside the new folder, and limits hold before anything is written: an archive of a few
kilobytes can expand to terabytes. Everything that is wrong with an archive is an error, because a data set of
which a part is missing looks complete.
"""

import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path, PurePosixPath
from zipfile import ZipFile, ZipInfo

from datasets.causes import Cause, CodedDatasetError
from datasets.listing import comparison_key, is_clutter
from datasets.problems import list_names
from segdec.errors import DatasetError
from segdec.runtime.files import atomic_folder

MAX_NAME_BYTES = 255
"""Length of the name of a file or folder, UTF-8; file systems take no more."""
MAX_PATH_BYTES = 1024
NESTED_SUFFIXES = frozenset({".zip", ".7z", ".rar", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst"})
"""Archives in the archive; they are not unpacked."""

_CHUNK_BYTES = 2**20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others can need gigabytes of memory
_IS_ENCRYPTED = 1
_FILE, _END = b"PK\3\4", b"PK\5\6"
"""Signatures of a file in an archive and of the record at its end."""
_END_BYTES = 22
"""Length of the record at the end; its last two bytes are the length of the comment that follows."""
_DRIVE = re.compile("[A-Za-z]:")

Progress = Callable[[Sequence[PurePosixPath]], Iterable[PurePosixPath]]


@dataclass(frozen=True)
class ArchiveLimits:
    """Limits on an archive.

    Attributes:
        files: Number of files and folders.
        unpacked_bytes: Bytes of all files after unpacking.
        ratio: Unpacked bytes for each byte of the archive. Masks compress by 1000, photographs hardly.
    """

    files: int = 200_000
    unpacked_bytes: int = 100_000_000_000
    ratio: int = 200


def unpack(
    archive: Path, out: Path, limits: ArchiveLimits | None = None, *, progress: Progress = iter
) -> list[str]:
    """Unpacks the zip file `archive` into the new folder `out`, atomically.

    Files that operating systems add, and archives in the archive, are ignored. `progress` wraps the loop
    over the files.

    Returns:
        Notes for the user about files that were ignored.

    Raises:
        DatasetError: If the file is not a zip file, damaged or several, exceeds a limit, does not fit on the
            disk, or has an entry that is encrypted, a link, outside of the folder, or named like another one.
        OSError: If `out` exists or cannot be written.
    """
    if not archive.is_file():
        raise DatasetError(f"{archive} is not a file. Expected a zip file.")
    try:
        with ZipFile(archive) as opened:
            entries = opened.infolist()
            _check_single(archive, opened)
            _check_sizes(archive, entries, limits or ArchiveLimits())
            files = {_path(entry): entry for entry in entries if not entry.is_dir()}
            _check_names(entries)
            used = [path for path in files if not _is_ignored(path)]
            _check_space([files[path] for path in used], out)
            with atomic_folder(out) as folder:
                for path in progress(used):
                    _write(opened, files[path], folder / path)
    except zipfile.BadZipFile as error:
        raise CodedDatasetError(
            f"{archive.name} is not a zip file, or it is damaged ({error}). Expected a zip file: pack the "
            "photographs again, and check that the copy is complete.",
            Cause("archive_damaged"),
        ) from error
    nested = [str(path) for path in files if path.suffix.lower() in NESTED_SUFFIXES]
    return [f"Archives in the archive are not unpacked: {list_names(nested)}."] * bool(nested)


# === Checks ===


def _check_single(archive: Path, opened: ZipFile) -> None:
    """Raises if there is an archive before or after the one that is read, or in its comment.

    Other bytes are allowed before and after, such as a program that unpacks the archive.
    """
    with archive.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        first = min((entry.header_offset for entry in opened.infolist()), default=opened.start_dir)
        after = data.rfind(_END, opened.start_dir) + _END_BYTES
        if all(data.find(kind, 0, first) < 0 and data.find(kind, after) < 0 for kind in (_FILE, _END)):
            return
    raise CodedDatasetError(
        f"{archive.name} holds a second archive, whose files would be missing. Expected one archive in a "
        "file: unpack both, and pack all photographs into one.",
        Cause("archive_several"),
    )


def _check_sizes(archive: Path, entries: Sequence[ZipInfo], limits: ArchiveLimits) -> None:
    total, packed = sum(entry.file_size for entry in entries), archive.stat().st_size
    if len(entries) > limits.files:
        excess = f"{len(entries):,} files and folders. Expected at most {limits.files:,}"
        cause = Cause("archive_files", {"files": len(entries), "limit": limits.files})
    elif total > limits.unpacked_bytes:
        excess = f"{total / 1e9:.1f} GB after unpacking. Expected at most {limits.unpacked_bytes / 1e9:g} GB"
        cause = Cause(
            "archive_unpacked", {"gigabytes": _gigabytes(total), "limit": _gigabytes(limits.unpacked_bytes)}
        )
    elif total > limits.ratio * packed:
        excess = (
            f"{total / 1e6:.0f} MB in {packed / 1e6:.3f} MB, more than {limits.ratio} to 1. Photographs "
            "never reach that"
        )
        cause = Cause("archive_ratio", {"ratio": limits.ratio})
    else:
        return
    raise CodedDatasetError(f"{archive.name} has {excess}. Pack fewer photographs into an archive.", cause)


def _check_space(entries: Iterable[ZipInfo], out: Path) -> None:
    total, free = sum(entry.file_size for entry in entries), shutil.disk_usage(_existing(out)).free
    if total > free:
        raise CodedDatasetError(
            f"The archive has {total / 1e9:.1f} GB after unpacking, the disk of {out} {free / 1e9:.1f} GB. "
            "Free space on the disk, or pack fewer photographs into an archive.",
            Cause("archive_disk", {"gigabytes": _gigabytes(total), "free": _gigabytes(free)}),
        )


def _gigabytes(size: int) -> float:
    return round(size / 1e9, 1)


def _existing(path: Path) -> Path:
    return next(parent for parent in path.absolute().parents if parent.exists())


def _path(entry: ZipInfo) -> PurePosixPath:
    """The path of an entry; DatasetError if it is not a plain file or folder below the root."""
    name = entry.orig_filename.replace("\\", "/")  # archives of some Windows programs
    parts = name.removesuffix("/").split("/")
    mode = entry.external_attr >> 16
    file = _shown(name)
    if not name.isprintable() or len(name.encode(errors="replace")) > MAX_PATH_BYTES:
        wrong = "has a name that is too long, or with unprintable characters"
        cause = Cause("archive_name", {"file": file})
    elif any(len(part.encode(errors="replace")) > MAX_NAME_BYTES for part in parts):
        wrong = f"has a name of more than {MAX_NAME_BYTES} bytes"
        cause = Cause("archive_name", {"file": file})
    elif any(part.strip() in ("", ".", "..") for part in parts) or _DRIVE.match(name):
        wrong, cause = "lies outside of the archive's folder", Cause("archive_outside", {"file": file})
    elif mode and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode) and stat.S_IFMT(mode):
        wrong, cause = "is a link or a device", Cause("archive_link", {"file": file})
    elif entry.flag_bits & _IS_ENCRYPTED:
        wrong, cause = "is encrypted", Cause("archive_encrypted", {"file": file})
    elif entry.compress_type not in _METHODS:
        wrong = f"is compressed by method {entry.compress_type}, expected 8 (deflate) or 0"
        cause = Cause("archive_method", {"file": file})
    else:
        return PurePosixPath(*parts)
    text = "Expected an archive of plain files: pack the folder of photographs again."
    raise CodedDatasetError(f"{name!r:.200} {wrong}. {text}", cause)


def _check_names(entries: Sequence[ZipInfo]) -> None:
    """Raises if names are equal or differ only in case, of files, of folders, or of a file and a folder."""
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for entry in entries:
        path = _path(entry)
        above = [str(place) for place in (*path.parents[:-1], *[path] * entry.is_dir())]
        for place in above:
            key = comparison_key(place)
            if key in files or folders.setdefault(key, place) != place:
                raise _same_name(place, files.get(key) or folders[key])
        if not entry.is_dir():
            key = comparison_key(str(path))
            if key in files or key in folders:
                raise _same_name(str(path), files.get(key) or folders[key])
            files[key] = str(path)


def _same_name(one: str, other: str) -> DatasetError:
    same = "twice" if one == other else f"and {other!r:.200}, which differs only in case"
    cause = Cause("archive_same_name", {"file": _shown(one), "other": _shown(other)})
    return CodedDatasetError(f"The archive has the name {one!r:.200} {same}. Rename one of the two.", cause)


def _shown(name: str) -> str:
    """The beginning of a name, with escapes for unprintable characters."""
    return repr(name)[1:-1][:200]


def _is_ignored(path: PurePosixPath) -> bool:
    return path.suffix.lower() in NESTED_SUFFIXES or any(map(is_clutter, path.parts))


# === Files ===


def _write(archive: ZipFile, entry: ZipInfo, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    try:
        with path.open("xb") as file:
            for chunk in _chunks(archive, entry):
                written += len(chunk)
                file.write(chunk)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise CodedDatasetError(
            f"{entry.filename!r:.200} in the archive is damaged ({error}). Pack it again, and check that the "
            "copy is complete.",
            Cause("archive_file_damaged", {"file": _shown(entry.filename)}),
        ) from error
    if written != entry.file_size:
        raise CodedDatasetError(
            f"{entry.filename!r:.200} in the archive has {written} bytes, expected {entry.file_size}. Pack "
            "it again.",
            Cause("archive_file_damaged", {"file": _shown(entry.filename)}),
        )


def _chunks(archive: ZipFile, entry: ZipInfo) -> Iterator[bytes]:
    with archive.open(entry) as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk
