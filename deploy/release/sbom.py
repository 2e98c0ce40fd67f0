"""Writes a software bill of materials for each image, as CycloneDX 1.6 JSON.

    python -m deploy.release.sbom [FOLDER]

`cyclonedx-py` reads the locks; the licences, which locks lack, are those of the page of licences. So it needs
neither the images nor a network.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from deploy.release.licences import PAGE, read_page
from deploy.release.locks import IMAGES, lock_file, read_lock
from segdec import __version__
from segdec.errors import SegdecError
from segdec.runtime.cli import clean_exit
from segdec.runtime.files import write_text_atomic

FOLDER = Path(__file__).parents[2] / "build" / "sbom"


def bill(image: str) -> str:
    """Returns the bill of materials of an image.

    Raises:
        SegdecError: The page of licences lacks a package.
    """
    licences = {(row.name, row.version): row.licence for row in read_page(PAGE.read_text(encoding="utf-8"))}
    missing = [package.name for package in read_lock(lock_file(image)) if package not in licences]
    if missing:
        raise SegdecError(f"{PAGE.name} lacks {', '.join(missing)} as locked for {image}. Run: make licences")
    command = [sys.executable, "-m", "cyclonedx_py", "requirements", "--short-PURLs", str(lock_file(image))]
    bom = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    parts = bom["components"]
    for part in parts:
        part["licenses"] = [{"expression": licences[part["name"], part["version"]]}]
    root = {"bom-ref": image, "type": "container", "name": f"segdec-{image}", "version": __version__}
    bom["metadata"]["component"] = {**root, "licenses": [{"expression": "Apache-2.0"}]}
    # Flat: a lock does not say which package requires which
    bom["dependencies"].append({"ref": image, "dependsOn": [part["bom-ref"] for part in parts]})
    return json.dumps(bom, indent=2)


def main() -> None:
    """Writes the bills of materials and prints where they lie."""
    parser = argparse.ArgumentParser(description="Writes a bill of materials for each image.")
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, metavar="FOLDER")
    folder = parser.parse_args().folder
    with clean_exit():
        folder.mkdir(parents=True, exist_ok=True)
        for image in IMAGES:
            write_text_atomic(folder / f"{image}.cdx.json", bill(image))
            print(folder / f"{image}.cdx.json")


if __name__ == "__main__":
    main()
