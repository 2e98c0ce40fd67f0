"""Artifacts as somebody else would write them: any content, and checksums that fit it."""

import hashlib
import json
from pathlib import Path
from typing import Any


def forge(folder: Path, **changes: Any) -> None:
    """Makes manifest and checksums fit what is in `folder` now, with these fields changed."""
    values = {**json.loads((folder / "manifest.json").read_text()), **changes}
    beside = ("manifest.json", "manifest.sha256", "signatures/")
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    values["files"] = {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in sorted(found.items())
        if not name.startswith(beside)
    }
    write_manifest(folder, json.dumps({**values, **changes}).encode())


def write_manifest(folder: Path, content: bytes) -> None:
    """Writes any manifest, with the checksum that fits it."""
    (folder / "manifest.json").write_bytes(content)
    (folder / "manifest.sha256").write_text(f"{hashlib.sha256(content).hexdigest()}  manifest.json\n")
