"""Writes a software bill of materials for each image, as CycloneDX 1.6 JSON.

    python -m deploy.release.sbom [FOLDER]

From the locks and the page of licences, so it needs neither the images nor a network.
"""

import argparse
from pathlib import Path

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from deploy.release.licences import PAGE, read_page
from deploy.release.locks import IMAGES, Package, lock_file, read_lock
from segdec import __version__
from segdec.errors import SegdecError
from segdec.runtime.cli import clean_exit
from segdec.runtime.files import write_text_atomic

FOLDER = Path(__file__).parents[2] / "build" / "sbom"


def bill(image: str) -> str:
    """Returns the bill of materials of an image, valid.

    Raises:
        SegdecError: The page of licences lacks a package, or the bill breaks the schema of CycloneDX.
    """
    licences = {(row.name, row.version): row.licence for row in read_page(PAGE.read_text(encoding="utf-8"))}
    packages = read_lock(lock_file(image))
    missing = [one.name for one in packages if (one.name, one.version) not in licences]
    if missing:
        raise SegdecError(f"{PAGE.name} lacks {', '.join(missing)} as locked for {image}. Run: make licences")
    root = Component(
        name=f"segdec-{image}",
        version=__version__,
        type=ComponentType.CONTAINER,
        bom_ref=image,
        licenses=[LicenseExpression("Apache-2.0")],
    )
    parts = [_component(one, licences[one.name, one.version]) for one in packages]
    bom = Bom(components=parts)
    bom.metadata.component = root
    bom.register_dependency(root, parts)  # flat: a lock does not say which package brought which
    text = JsonV1Dot6(bom).output_as_string(indent=2)
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise SegdecError(f"The bill of materials for {image} is no valid CycloneDX 1.6: {error}")
    return text


def _component(package: Package, licence: str) -> Component:
    """One component; its hashes are those of its files, of which a machine gets one."""
    purl = PackageURL("pypi", name=package.name, version=package.version)
    files = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(str(purl)),  # from which index is for whoever builds the image to say
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=one) for one in package.sha256],
    )
    return Component(
        name=package.name,
        version=package.version,
        type=ComponentType.LIBRARY,
        bom_ref=str(purl),
        purl=purl,
        licenses=[LicenseExpression(licence)],
        external_references=[files],
    )


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
