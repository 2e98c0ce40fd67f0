"""Answers about the record: pages of inspections, pictures, masks and overlays."""

import json
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from api.errors import RequestError
from api.inspection.mask_encoding import check_has_classes
from api.records import queries
from api.records.inspection import Row
from api.records.queries import Filters
from api.records.schemas import Draw, InspectionRecord, PictureFacts, RecordPage, Review
from segdec.images import MAX_PIXEL_LIMIT, decode_image, encode_png
from segdec.imaging.overlay import draw_overlay
from segdec.mask_decoding import unpack_mask
from segdec.schemas import Answer, MaskAnswer


def list_page(connection: Connection, filters: Filters, before: int | None, limit: int) -> RecordPage:
    """Returns a page of inspections, the newest first. Arguments as for `queries.list_inspections`."""
    rows = queries.list_inspections(connection, filters, before, limit + 1)
    records = [make_record(row) for row in rows[:limit]]
    return RecordPage(records=records, next_before=records[-1].record_id if len(rows) > limit else None)


def make_record(row: Row) -> InspectionRecord:
    """Returns the answer about one inspection.

    Args:
        row: Row of `queries.with_pictures`.
    """
    return InspectionRecord(
        record_id=row["id"],
        inspected_at=row["inspected_at"],
        station=row["station"],
        part_id=row["part_id"],
        metadata=json.loads(row["details"]),
        client=row["client"],
        engine=row["engine"],
        picture=PictureFacts(
            sha256=bytes(row["picture"]).hex(),
            bytes=row["picture_bytes"],
            format=row["picture_format"],
            state=row["picture_state"],
        ),
        answer=Answer.model_validate({**json.loads(row["answer"]), "mask": None}),
        draw=Draw(
            drawn=row["draw"] < row["draw_probability"],
            reason=row["draw_reason"],
            probability=row["draw_probability"],
        ),
        review=_review(row),
        revision=row["revision"],
    )


def _review(row: Row) -> Review | None:
    if row["reviewed_label"] is None:
        return None
    corrected = row["reviewed_mask"]
    return Review(
        label=row["reviewed_label"],
        reviewer=row["reviewer"],
        reviewed_at=row["reviewed_at"],
        reason=row["review_reason"],
        corrected_mask=None if corrected is None else MaskAnswer.model_validate_json(corrected),
    )


def draw_mask(row: Row, which: Literal["predicted", "reviewed"], values: Literal["defect", "class"]) -> bytes:
    """Returns a mask as a grey PNG.

    Args:
        row: Row of `queries.find_inspection`.
        which: The predicted mask, or the one that a reviewer corrected.
        values: Pixel values: 255 = defect, or the index of the pixel's class.

    Raises:
        RequestError: 404 if there is no corrected mask, 400 if the mask has no classes.
    """
    stored = row["mask"] if which == "predicted" else row["reviewed_mask"]
    if stored is None:
        raise RequestError(404, "no_corrected_mask", f"Record {row['id']} has no corrected mask.")
    mask = MaskAnswer.model_validate_json(stored)
    if values == "class":
        check_has_classes("values=class", mask)
        return encode_png(unpack_mask(mask))
    return encode_png(_defects(mask))


def _defects(mask: MaskAnswer) -> NDArray[np.uint8]:
    """Returns 255 for defect pixels of any class."""
    return np.where(unpack_mask(mask) > 0, np.uint8(255), np.uint8(0))


def draw_picture(picture: bytes, white_level: int | None) -> bytes:
    """Returns a photograph as the network saw it (upright, 8 bits) as a PNG.

    Args:
        picture: The image file.
        white_level: White level of the model, for 16-bit images.

    Raises:
        ImageError: If the file cannot be decoded.
    """
    return encode_png(_decode(picture, white_level))


def draw_record(row: Row, picture: bytes, white_level: int | None, side: int | None = None) -> bytes:
    """Returns the photograph with its mask as an overlay, a PNG.

    Args:
        row: Row of `queries.with_pictures`.
        picture: The image file.
        white_level: White level of the model, for 16-bit images.
        side: Maximum length of the longest side, px; None = full size.
    """
    mask = _defects(MaskAnswer.model_validate_json(row["mask"]))
    drawn = draw_overlay(_decode(picture, white_level), mask)
    longest = max(drawn.shape[:2])
    if side is not None and longest > side:
        height, width = (max(1, round(length * side / longest)) for length in drawn.shape[:2])
        drawn = cv2.resize(drawn, (width, height), interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)
    return encode_png(drawn)


def _decode(picture: bytes, white_level: int | None) -> NDArray[np.uint8]:
    """Decodes without today's pixel limit: the photograph was accepted under an earlier one."""
    photograph = decode_image(
        picture,
        "the picture of the record",
        max_pixels=MAX_PIXEL_LIMIT,
        white_level=white_level,
        accept_webp=True,
    )
    return photograph.pixels
