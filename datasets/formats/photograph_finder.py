"""Finds photographs by the names that annotation files give them.

An annotation file may have been written on another machine, so a name may be a path of another system, a URL,
or hold escapes such as `%20`. Label Studio replaces spaces by `_` in the names of uploaded files, and drops
other characters. Accented letters are compared in their composed form: macOS stores decomposed
ones.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, unquote_plus, urlsplit

from datasets.listing import comparison_key, composed
from segdec.images import SUFFIXES

_UPLOAD_PREFIX = re.compile(r"[0-9a-f]{8}-")
"""Label Studio adds this prefix to the name of an uploaded file."""

_DROPPED = re.compile(r"[^-\w.]")
"""Characters that it drops from this name."""

_LOCAL_FILE = re.compile(r"/data/local-files/?\?d=(.*)", re.DOTALL)
"""Label Studio's address of a file in its local storage. The path may hold an unescaped `#`, `?` or `&`."""

_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)


class PhotographFinder:
    """Finds some of the `photographs` of a data set by name."""

    def __init__(self, photographs: Iterable[Path]) -> None:
        self.photographs = tuple(photographs)
        self._by_name: dict[str, list[Path]] = defaultdict(list)
        self._by_stem: dict[str, list[Path]] = defaultdict(list)
        self._by_uploaded_name: dict[str, list[Path]] = defaultdict(list)
        for path in self.photographs:
            self._by_name[comparison_key(path.name)].append(path)
            self._by_stem[comparison_key(path.stem)].append(path)

    def find(
        self, written: object, near: Path, folders: Sequence[str] = (), *, is_stem: bool = False
    ) -> Path:
        """Returns the photograph that an annotation file names.

        Of several photographs with the name, returns the one whose folders agree best with those of
        `written`, else with `folders`, else the one nearest to `near`, else the one whose folders agree best
        with those of `near`.

        Args:
            written: The name in the annotation file: a file name, path or URL, with or without a suffix.
            near: The folder of the annotation file.
            folders: Names of folders in which the photograph probably is, such as `train`.
            is_stem: Whether `written` has no suffix, although it may have a dot.

        Raises:
            ValueError: If `written` is not a name, or there is no such photograph or more than one.
        """
        if not isinstance(written, str) or not written.strip():
            raise ValueError(f"{written!r:.40} is not the name of a photograph")
        for path in _spellings(written.strip()):
            candidates = self._by_name.get(comparison_key(path.name), [])
            if not candidates and path.suffix.lower() not in SUFFIXES:
                stem = path.name if is_stem else path.stem
                candidates = self._by_stem.get(comparison_key(path.name), []) or self._by_stem.get(
                    comparison_key(stem), []
                )
            if candidates:
                return _best(candidates, path, near, folders)
        if _UPLOAD_PREFIX.match(_last(written)) and (
            candidates := self._uploaded().get(comparison_key(path.name), [])
        ):
            return _best(candidates, path, near, folders)
        raise ValueError(
            f"the photograph {_last(written)!r} is missing. Copy it to a folder below the root of the data "
            "set, give it this name again if it was renamed, or remove its entry"
        )

    def _uploaded(self) -> dict[str, list[Path]]:
        """Photographs by the name that Label Studio gives an uploaded file."""
        if not self._by_uploaded_name:
            for path in self.photographs:
                self._by_uploaded_name[comparison_key(_DROPPED.sub("", path.name.replace(" ", "_")))].append(
                    path
                )
        return self._by_uploaded_name

    def beside(self, path: Path) -> list[Path]:
        """Returns the photographs in the folder of the file `path` with its stem."""
        same_stem = self._by_stem.get(comparison_key(path.stem), [])
        return [photograph for photograph in same_stem if photograph.parent == path.parent]

    def related(self, path: Path) -> list[Path]:
        """Returns the photographs beside the file `path` with its stem, otherwise those in other folders."""
        return self.beside(path) or self._by_stem.get(comparison_key(path.stem), [])


def _last(written: str) -> str:
    return written.replace("\\", "/").rsplit("/", 1)[-1][:80]


def _spellings(written: str) -> Iterator[PurePosixPath]:
    """Yields what `written` may mean: as it is, then without escapes, a query or an upload prefix."""
    text = written.replace("\\", "/")
    if local := _LOCAL_FILE.search(text):
        text = local[1]
    texts = [text, unquote(text), unquote_plus(text)]
    if _URL.match(text) or "/" in text:
        with suppress(ValueError):  # for example an unmatched bracket
            texts.append(unquote(urlsplit(text).path))
    for candidate in dict.fromkeys(texts):
        yield PurePosixPath(candidate)
    for candidate in dict.fromkeys(texts):
        path = PurePosixPath(candidate)
        if _UPLOAD_PREFIX.match(path.name):
            yield path.with_name(_UPLOAD_PREFIX.sub("", path.name, count=1))


def _best(candidates: list[Path], written: PurePosixPath, near: Path, folders: Sequence[str]) -> Path:
    exact = composed(written.name)
    candidates = [path for path in candidates if composed(path.name) == exact] or candidates
    if len(candidates) == 1:
        return candidates[0]

    def rank(path: Path) -> tuple[int, int, int, int]:
        parts = path.parent.parts
        inside = sum(folder in parts for folder in folders)
        named = _common(parts[::-1], written.parent.parts[::-1])
        return named, inside, _common(parts, near.parts), _common(parts[::-1], near.parts[::-1])

    best = max(map(rank, candidates))
    chosen = [path for path in candidates if rank(path) == best]
    if len(chosen) > 1:
        raise ValueError(
            f"the photograph {written.name[:80]!r} may be {' or '.join(map(str, chosen[:3]))}. Rename or "
            "remove the others"
        )
    return chosen[0]


def _common(parts: Sequence[str], others: Sequence[str]) -> int:
    """Returns the number of equal parts at the start."""
    pairs = enumerate(zip(map(comparison_key, parts), map(comparison_key, others), strict=False))
    return next((count for count, (a, b) in pairs if a != b), min(len(parts), len(others)))
