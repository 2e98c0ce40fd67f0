"""The locks of the images: what is installed into each, by name, version and hashes."""

from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCKS = Path(__file__).parents[1] / "image"
IMAGES = ("serve", "serve-gpu", "train")


@dataclass(frozen=True)
class Package:
    """A locked package, under its normalised name; one hash for each of its files."""

    name: str
    version: str
    sha256: tuple[str, ...]


def lock_file(image: str) -> Path:
    """Returns where the lock of an image lies."""
    return LOCKS / f"{image}.txt"


def read_lock(file: Path) -> list[Package]:
    """Reads the packages of a lock as `uv pip compile --generate-hashes` writes it."""
    lines = file.read_text(encoding="utf-8").replace("\\\n", "").splitlines()
    return [_package(line) for line in lines if line and not line.startswith("#")]


def _package(line: str) -> Package:
    pinned, *hashes = line.split("--hash=sha256:")
    requirement = Requirement(pinned.strip())
    version = str(requirement.specifier).removeprefix("==")
    return Package(canonicalize_name(requirement.name), version, tuple(one.strip() for one in hashes))
