"""Names the formats of files that are not read, so that messages can say what arrived."""

import re

SIGNATURES = {
    b"\0\0\0\x0cjP  ": "JPEG 2000",
    b"\xff\x4f\xff\x51": "JPEG 2000",
    b"\0\0\0\x0cJXL ": "JPEG XL",
    b"\xff\x0a": "JPEG XL",
    b"II\xbc\x01": "JPEG XR",
    b"GIF8": "GIF",
    b"8BPS": "Photoshop",
    b"%PDF": "PDF",
    b"v/1\x01": "OpenEXR",
    b"#?RADIANCE": "Radiance HDR",
    b"SIMPLE  =": "FITS",
    b"qoif": "QOI",
    b"IIRO": "raw camera",
    b"IIU\0": "raw camera",
    b"FUJIFILM": "raw camera",
    b"PK\x03\x04": "ZIP",
    b"<svg": "SVG",
    b"<!DOCTYPE html": "HTML",
    b"<html": "HTML",
}

BRANDS = {b"avif": "AVIF", b"avis": "AVIF", b"crx ": "raw camera", b"jxl ": "JPEG XL"}
BRANDS |= dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"), "HEIC")
"""Brands of the container ISO BMFF, at most 8 of which are read."""

NETPBM = re.compile(rb"P[1-7]\s")
DICOM_OFFSET = 128


def name_format(data: bytes) -> str | None:
    """Returns the name of the format of a file that is not read, or None if it is unknown."""
    for signature, kind in SIGNATURES.items():
        if data.startswith(signature):
            return kind
    if NETPBM.match(data):
        return "PBM, PGM or PPM"
    if data[4:8] == b"ftyp":
        kinds = [BRANDS.get(data[start : start + 4]) for start in (8, *range(16, 48, 4))]
        specific = [kind for kind in kinds if kind]
        return "AVIF" if "AVIF" in specific else next(iter(specific), None)
    return "DICOM" if data[DICOM_OFFSET : DICOM_OFFSET + 4] == b"DICM" else None
