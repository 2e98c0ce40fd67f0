"""What is answered of the record: pages of inspections, and pictures with their masks."""

import json

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from api.records import queries
from api.records.inspection import Row
from api.records.queries import Filters
from segdec.images import decode_image, encode_png
from segdec.mask_decoding import unpack_mask
from segdec.overlay import draw_overlay
from segdec.schemas import Answer, Draw, InspectionRecord, MaskAnswer, PictureFacts, RecordPage, Review


def list_page(connection: Connection, filters: Filters, before: int | None, most: int) -> RecordPage:
    """Returns a page of inspections, the newest first; arguments as for `queries.list_inspections`."""
    rows = queries.list_inspections(connection, filters, before, most + 1)
    records = [make_record(row) for row in rows[:most]]
    return RecordPage(records=records, next_before=records[-1].record_id if len(rows) > most else None)


def make_record(row: Row) -> InspectionRecord:
    """Makes the answer about one inspection.

    Args:
        row: Of `queries.with_pictures`.
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
    mended = row["reviewed_mask"]
    return Review(
        label=row["reviewed_label"],
        reviewer=row["reviewer"],
        reviewed_at=row["reviewed_at"],
        reason=row["review_reason"],
        mended_mask=None if mended is None else MaskAnswer.model_validate_json(mended),
    )


def predicted_mask(row: Row) -> NDArray[np.uint8]:
    """Returns the mask that was answered, uint8 [H, W], 255 = defect."""
    pixels = unpack_mask(MaskAnswer.model_validate_json(row["mask"]))
    return np.where(pixels > 0, np.uint8(255), np.uint8(0))


def draw_record(row: Row, picture: bytes) -> bytes:
    """Returns a PNG of the photograph with the mask on it."""
    photograph = decode_image(picture, "the picture of the record")
    return encode_png(draw_overlay(photograph.pixels, predicted_mask(row)))
