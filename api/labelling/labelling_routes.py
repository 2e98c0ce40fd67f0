"""Regions of photographs from clicks, for the page Label. Served if the service records."""

import base64
from time import perf_counter
from typing import Annotated

import cv2
from fastapi import APIRouter
from pydantic import Field

from api.data_sets.data_set_params import BODY_PROBLEMS, DataSetId, DataSetsDep, PhotographId
from api.data_sets.photographs import find_photograph
from api.data_sets.received_photographs import use_pixels
from api.errors import RequestError, document_problems
from api.http.components import component
from api.http.json_body import json_body
from api.http.request_params import DeadlineDep
from api.http.roles import require_role
from api.http.sent_model import SentModel
from api.inference.memory_budget import MemoryBudget
from api.labelling.clicks import MAX_CLICKS, Click
from api.labelling.open_photographs import OpenPhotographs, Segmenter
from api.labelling.schemas import ClickedRegion
from api.labelling.segmenter import Mask
from segdec.images import MAX_PIXEL_LIMIT, encode_png

router = APIRouter(
    prefix="/v1/data-sets/{data_set_id}/photographs/{photograph_id}",
    tags=["data sets"],
    dependencies=require_role("reviewer"),
)
Coordinate = Annotated[int, Field(ge=0, lt=MAX_PIXEL_LIMIT, strict=True)]


class SentClick(SentModel):
    """A click on a pixel of the upright photograph."""

    x: Coordinate = Field(description="px from the left")
    y: Coordinate = Field(description="px from the top")
    is_defect: bool = Field(description="whether the pixel is part of the defect")


class SentClicks(SentModel):
    """All clicks on a defect."""

    clicks: list[SentClick] = Field(min_length=1, max_length=MAX_CLICKS, description="in their order")


@router.post("/segment", responses={**BODY_PROBLEMS, **document_problems(422)})
async def segment(
    sent: Annotated[SentClicks, json_body(SentClicks)],
    memory: Annotated[MemoryBudget, component(MemoryBudget)],
    open_photographs: Annotated[OpenPhotographs, component(OpenPhotographs)],
    data_sets: DataSetsDep,
    data_set_id: DataSetId,
    photograph_id: PhotographId,
    deadline: DeadlineDep,
) -> ClickedRegion:
    """The region that clicks on and beside a defect describe; nothing is stored."""
    row = await data_sets.read(find_photograph, data_set_id, photograph_id)
    sha256 = bytes(row["sha256"])

    async def prepare() -> Segmenter:
        data = await data_sets.read_file(sha256)
        return await data_sets.decode(lambda: use_pixels(data, memory, open_photographs.make_segmenter))

    segmenter = await open_photographs.find(sha256, prepare)
    clicks = [Click(click.x, click.y, click.is_defect) for click in sent.clicks]
    while await data_sets.decode(lambda: segmenter.take_step(clicks)):  # others get their turn in between
        if perf_counter() > deadline:
            detail = "The deadline passed before the region was found. Send the clicks again: it continues."
            raise RequestError(504, "deadline_passed", detail)
    return await data_sets.decode(lambda: _answer(segmenter.segment(clicks)))


def _answer(mask: Mask) -> ClickedRegion:
    left, top, width, height = cv2.boundingRect(mask)
    if not width:
        return ClickedRegion(left=0, top=0, png=None)
    png = encode_png(mask[top : top + height, left : left + width])
    return ClickedRegion(left=left, top=top, png=base64.b64encode(png).decode())
