"""Answers about the record: pages of inspections, pictures, masks and overlays."""

import json
from functools import partial
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from api.errors import RequestError
from api.http.mask_encoding import check_has_classes
from api.record.filters import Filters
from api.record.inspection import Row
from api.record.schemas import Draw, InspectionRecord, PictureFacts, RecordNames, RecordPage, Refusal, Review
from api.record.search import known_names, list_inspections
from api.record.tables import inspections, tags
from segdec.images import MAX_PIXEL_LIMIT, decode_image, encode_png
from segdec.imaging.overlay import draw_overlay
from segdec.mask_decoding import unpack_mask
from segdec.runtime.identifiers import NOT_INSPECTED
from segdec.schemas import Answer, MaskAnswer


def list_page(connection: Connection, filters: Filters, before: int | None, limit: int) -> RecordPage:
    """Returns a page of inspections, the newest first. Arguments as for `list_inspections`."""
    rows = list_inspections(connection, filters, before, limit + 1)
    records = [make_record(row) for row in rows[:limit]]
    return RecordPage(records=records, next_before=records[-1].record_id if len(rows) > limit else None)


def list_names(connection: Connection, station: str = "") -> RecordNames:
    """Returns the names in the record, of the stations those that contain a text."""
    table = inspections.c
    return RecordNames(
        stations=list(known_names(connection, table.station, text=station)),
        labels=list(known_names(connection, table.label)),
        reviewers=list(known_names(connection, table.reviewer)),
        metadata=list(known_names(connection, tags.c.key)),
    )


def make_record(row: Row) -> InspectionRecord:
    """Returns the answer about one inspection, a row of `queries.with_pictures`."""
    return InspectionRecord(
        **{
            name: row[name] for name in ("inspected_at", "station", "part_id", "client", "engine", "revision")
        },
        record_id=row["id"],
        metadata=json.loads(row["details"]),
        picture=PictureFacts(
            sha256=bytes(row["picture"]).hex(),
            bytes=row["picture_bytes"],
            format=row["picture_format"],
            state=row["picture_state"],
            deleted_at=row["picture_deleted_at"],
            deleted_by=row["picture_deleted_by"],
        ),
        distances=None if row["distances"] is None else json.loads(row["distances"]),
        unlike_training=row["unlike"] is not None,
        has_heat_map=row["has_heat_map"],
        review=_review(row),
        **_outcome(row),
    )


def _outcome(row: Row) -> dict[str, Answer | Refusal | Draw | None]:
    if row["label"] == NOT_INSPECTED:
        return {"answer": None, "refusal": Refusal.model_validate_json(row["answer"]), "draw": None}
    draw = Draw(
        drawn=row["draw"] < row["draw_probability"],
        reason=row["draw_reason"],
        probability=row["draw_probability"],
    )
    answer = Answer.model_validate({**json.loads(row["answer"]), "mask": None})
    return {"answer": answer, "refusal": None, "draw": draw}


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


MaskValues = Literal["defect", "class"]
"""Values of a mask's pixels: 255 = defect, or the index of each pixel's class."""


def encode_mask(
    row: Row, which: Literal["predicted", "reviewed"], values: MaskValues | Literal["any"]
) -> tuple[bytes, MaskValues]:
    """Returns the predicted mask or that of a reviewer, a grey PNG, and what its values are; `any`: classes
    if the mask has them.

    Raises:
        RequestError: 404 if there is no corrected mask, 400 if the mask has no classes.
    """
    stored = row["mask"] if which == "predicted" else row["reviewed_mask"]
    if stored is None:
        raise RequestError(404, "no_corrected_mask", f"Record {row['id']} has no corrected mask.")
    mask = MaskAnswer.model_validate_json(stored)
    if values == "class":
        check_has_classes("values=class", mask)
    if values == "defect" or mask.labels is None:
        return encode_png(_defects(mask)), "defect"
    return encode_png(unpack_mask(mask)), "class"


def _defects(mask: MaskAnswer) -> NDArray[np.uint8]:
    return np.where(unpack_mask(mask) > 0, np.uint8(255), np.uint8(0))


def encode_picture(picture: bytes, white_level: int | None) -> bytes:
    """Returns a photograph as the network saw it (upright, 8 bits), a PNG.

    Raises:
        ImageError: If the file cannot be decoded.
    """
    return encode_png(_decode(picture, white_level))


def draw_record(row: Row, picture: bytes, white_level: int | None, side: int | None = None) -> bytes:
    """Returns the photograph with its mask as an overlay, at most `side` px long or high, a PNG."""
    mask = _defects(MaskAnswer.model_validate_json(row["mask"]))
    drawn = draw_overlay(_decode(picture, white_level), mask)
    longest = max(drawn.shape[:2])
    if side is not None and longest > side:
        height, width = (max(1, round(length * side / longest)) for length in drawn.shape[:2])
        drawn = cv2.resize(drawn, (width, height), interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)
    return encode_png(drawn)


def _decode(picture: bytes, white_level: int | None) -> NDArray[np.uint8]:
    """Decodes without today's pixel limit: the photograph was accepted under an earlier one."""
    decode = partial(decode_image, picture, "the picture of the record", max_pixels=MAX_PIXEL_LIMIT)
    return decode(white_level=white_level, accept_webp=True).pixels


def record_not_found(record_id: int) -> RequestError:
    """Returns the error for an inspection that does not exist."""
    return RequestError(404, "record_not_found", f"There is no record {record_id}. Check the number.")
