"""The locks of the images: what is installed into each, by name and version."""

from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCKS = Path(__file__).parents[1] / "image"
IMAGES = ("serve", "serve-gpu", "train")


class Package(NamedTuple):
    """A locked package, under its normalised name."""

    name: str
    version: str


def lock_file(image: str) -> Path:
    """Returns where the lock of an image lies."""
    return LOCKS / f"{image}.txt"


def read_lock(file: Path) -> list[Package]:
    """Reads the packages of a lock as `uv pip compile --generate-hashes` writes it."""
    lines = file.read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line.rstrip(" \\")) for line in lines if line[:1].isalnum()]
    return [Package(canonicalize_name(pin.name), str(pin.specifier).removeprefix("==")) for pin in pins]
