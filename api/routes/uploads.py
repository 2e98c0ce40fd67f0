"""Request bytes → encoded photographs. The content decides what they are; names and declared types do not."""

import asyncio
import base64
import dataclasses
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from api.errors import RequestError, bad_parameter, describe_json_errors
from api.inspection.admission import ByteReservation
from api.routes.request_params import MAX_METADATA, PartFacts, parse_part_facts
from api.settings import Settings
from segdec.config import InputConfig
from segdec.errors import ImageError
from segdec.images import CheckSize, Photograph, decode_image, encode_png

FORM_FIELD = "file"
FORM_TYPE = "multipart/form-data"
JSON_TYPE = "application/json"
RAW_TYPES = {"application/octet-stream"}
IMAGE_TYPES = ("image/png", "image/jpeg", "image/bmp", "image/tiff")
"""Types that photographs have. The content decides, so any other image/* is read too."""
MAX_LENGTH_DIGITS = 18
"""Digits of a Content-Length that are read; Python refuses to read thousands of them."""
MAX_NAME = 256
"""Longest name of a photograph in JSON."""
VALUES_PER_IMAGE = 16
"""More than the JSON of a photograph has, but for the commas in its name."""
COPIES = 2
JSON_COPIES = 4
MAX_COPIES = max(COPIES, JSON_COPIES)
"""How many times a body's size is taken while it is read, at most: in pieces and as a whole; in JSON as text
and decoded besides."""
EXAMPLES = (
    "Send the image as the body, with its type (curl --data-binary @part.png -H 'Content-Type: image/png'), "
    f"as multipart/form-data in the field '{FORM_FIELD}' (curl -F {FORM_FIELD}=@part.png), "
    'or as JSON {"image": {"b64": "…"}}.'
)


class FormParser(MultiPartParser):
    """Reads a form that must be whole; keeps its file in memory.

    The body is bounded, and a read-only container has no place to spool to.
    """

    spool_max_size = 0
    complete = False

    def on_end(self) -> None:
        """Notes the closing boundary."""
        self.complete = True

    async def parse(self) -> FormData:
        """Reads the form.

        Raises:
            MultiPartException: If it is broken or cut off.
        """
        form = await super().parse()
        if not self.complete:
            for file in self._files_to_close_on_error:
                file.close()
            raise MultiPartException("The form ends before its closing boundary.")
        return form


@dataclass(frozen=True)
class Upload:
    """An encoded photograph, what to call it in errors, and what its body says of the part that it shows."""

    data: bytes
    name: str
    part: PartFacts | None = None

    def decode(self, settings: Settings, config: InputConfig, check_size: CheckSize) -> Photograph:
        """Decodes to uint8 [H, W, C] as the model wants it; slow but for small ones.

        Args:
            settings: Limit the size.
            config: The model's input.
            check_size: Told height and width before any pixel is decoded; may raise.

        Raises:
            ImageError: If the content is no whole photograph that can be used.
        """
        try:
            return decode_image(
                self.data,
                self.name,
                max_pixels=settings.max_pixels,
                max_side=settings.max_side,
                white_level=config.white_level,
                accept_webp=settings.accept_webp,
                check_size=check_size,
            )
        except ImageError as error:
            if error.code != "too_many_pixels":
                raise
            flags = "The limits of a service are its settings --max-pixels and --max-side."
            raise ImageError(f"{error} {flags}", code=error.code) from error


def warm_decoder() -> None:
    """Decodes once, so that a missing library is told at the start and not by the first request.

    Raises:
        MissingExtraError: If the extra `images` is not installed.
    """
    decode_image(encode_png(np.zeros((8, 8), np.uint8)), "warm-up")


async def read_upload(
    request: Request, limit: int, reservation: ByteReservation, *, with_part: bool = False
) -> Upload:
    """Takes the encoded photograph out of a raw, multipart or JSON body of at most `limit` bytes.

    Args:
        request: Its body has not been read.
        limit: Most bytes of the body.
        reservation: Told the memory that it takes, before it arrives where its length is known.
        with_part: Whether a form or JSON may also say what part it shows.

    Raises:
        RequestError: 413 for a larger body, 503 if there is no memory for it, 415 for another kind of body,
            422 for an empty one of no known kind, 400 for a broken form, JSON or base64.
    """
    kind = _media_type(request)
    if kind == FORM_TYPE:
        return (await read_form(request, limit, reservation, FORM_FIELD, most=1, with_part=with_part))[0]
    if kind == JSON_TYPE:
        body = await read_body(request, limit, reservation)
        return await asyncio.to_thread(parse_json_inspection if with_part else parse_json_image, body)
    if kind in RAW_TYPES or kind.startswith("image/"):
        return Upload(await read_body(request, limit, reservation), "The request body")
    raise _unsupported(request, EXAMPLES)


async def read_uploads(request: Request, limit: int, reservation: ByteReservation, most: int) -> list[Upload]:
    """Takes up to `most` encoded photographs out of a multipart or JSON body of at most `limit` bytes.

    Raises:
        RequestError: As `read_upload`.
    """
    kind = _media_type(request)
    if kind == FORM_TYPE:
        return await read_form(request, limit, reservation, FORM_FIELD, most)
    if kind == JSON_TYPE:
        return await asyncio.to_thread(parse_json_images, await read_body(request, limit, reservation), most)
    raise _unsupported(request, f"Send them as multipart/form-data, each in a field '{FORM_FIELD}'.")


async def read_body(request: Request, limit: int, reservation: ByteReservation) -> bytes:
    """Reads the whole body.

    Raises:
        RequestError: 413 if it has more than `limit` bytes, 503 if `reservation` has no room for it.
    """
    size = _BodySize(request, limit, reservation)
    chunks = []
    async for chunk in request.stream():
        size.add(chunk)
        chunks.append(chunk)
    return b"".join(chunks)


async def _limited(request: Request, limit: int, reservation: ByteReservation) -> AsyncGenerator[bytes, None]:
    size = _BodySize(request, limit, reservation)
    async for chunk in request.stream():
        size.add(chunk)
        yield chunk


class _BodySize:
    """Bounds a body that arrives, and its memory: before it arrives where its length is known.

    Raises:
        RequestError: Here and in `add`: 413 if it is larger than `limit`, 503 without memory for it.
    """

    def __init__(self, request: Request, limit: int, reservation: ByteReservation) -> None:
        declared, kind = request.headers.get("content-length", ""), _media_type(request)
        if declared.isdecimal() and (len(declared) > MAX_LENGTH_DIGITS or int(declared) > limit):
            raise _too_large(declared[:MAX_LENGTH_DIGITS], limit)
        plain = kind in RAW_TYPES or kind == FORM_TYPE or kind.startswith("image/")
        self._limit, self._held = limit, reservation
        self._copies = COPIES if plain else JSON_COPIES
        self._expected = int(declared) if declared.isdecimal() else 0
        self._received = 0
        reservation.add(self._copies * self._expected)

    def add(self, chunk: bytes) -> None:
        self._received += len(chunk)
        if self._received > self._limit:
            raise _too_large(f"more than {self._limit}", self._limit)
        if self._received > self._expected:
            self._held.add(self._copies * (self._received - self._expected))
            self._expected = self._received


def _too_large(size: str, limit: int) -> RequestError:
    return RequestError(
        413, "body_too_large", f"The body has {size} bytes; expected at most {limit}. Send a smaller file."
    )


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _unsupported(request: Request, help_text: str) -> RequestError:
    if request.headers.get("content-length") == "0":
        return RequestError(
            422,
            "empty_image",
            "The request body is empty (0 bytes); expected an image. Check the name of the file: curl sends "
            f"nothing for one that is not there. {help_text}",
        )
    declared = request.headers.get("content-type", "")
    arrived = f"Content-Type '{declared}'" if declared else "No Content-Type"
    return RequestError(415, "unsupported_content_type", f"{arrived}; expected an image. {help_text}")


# === Forms ===


async def read_form(
    request: Request,
    limit: int,
    reservation: ByteReservation,
    field: str,
    most: int,
    *,
    with_part: bool = False,
) -> list[Upload]:
    """Reads the files, at most `most`, in the fields `field` of a form.

    With `with_part`, its other fields say what part they show.

    Raises:
        RequestError: 413 for a larger body, 503 without memory for it, 400 if the form is broken or holds
            something else.
    """
    expected = f"Expected {'one file' if most == 1 else f'1 to {most} files'}. {EXAMPLES}"
    async with aclosing(_limited(request, limit, reservation)) as chunks:
        try:
            headers = _without_charset(request.headers)
            fields = len(PartFacts.model_fields) if with_part else 1
            form = await FormParser(headers, chunks, max_files=most, max_fields=fields).parse()
        except MultiPartException as error:
            raise RequestError(400, "bad_form", f"{error.message} {expected}") from error
    try:
        facts = frozenset(PartFacts.model_fields if with_part else ())
        told = {name: text for name, text in form.items() if name in facts and isinstance(text, str)}
        part = parse_part_facts(told) if told else None
        files = form.getlist(field)
        uploads = [
            Upload(await file.read(), file.filename or field, part)
            for file in files
            if isinstance(file, UploadFile)
        ]
        if uploads and len(uploads) + len(told) == len(form.multi_items()):
            return uploads
        names = ", ".join(f"'{name}'" for name, _ in form.multi_items()) or "no fields"
        raise RequestError(400, "missing_file", f"The form holds {names}; expected '{field}'. {expected}")
    finally:
        await form.close()


def _without_charset(headers: Headers) -> Headers:
    """Keeps of a form's type the boundary only.

    Names in forms are UTF-8. Of the other codecs that a charset could name, some make text that
    no answer can repeat, and some fail.
    """
    kind, options = parse_options_header(headers["Content-Type"])
    if b"boundary" in options:
        boundary = options[b"boundary"].replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        kind += b'; boundary="' + boundary + b'"'
    return Headers(raw=[(b"content-type", kind)])


# === JSON ===


class EncodedImage(BaseModel):
    """A photograph inside JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    b64: str = Field(description="the image file in base64", json_schema_extra={"contentEncoding": "base64"})
    name: str = Field("The image", max_length=MAX_NAME, description="what errors call it")

    def upload(self) -> Upload:
        """Decodes the file.

        Raises:
            RequestError: 400 if it is no base64.
        """
        try:
            return Upload(base64.b64decode(self.b64, validate=True), self.name)
        except ValueError as error:  # also for text that is not ASCII
            raise RequestError(
                400,
                "bad_base64",
                f"{self.name} is no base64 ({error}). Encode the image file, without line breaks.",
            ) from error


class JsonImage(BaseModel):
    """Body for one photograph."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    image: EncodedImage


class JsonInspection(JsonImage, PartFacts):
    """Body for one photograph that is recorded, and what part it shows."""


class JsonImages(BaseModel):
    """Body for several photographs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    images: list[EncodedImage] = Field(min_length=1)


Body = TypeVar("Body", bound=BaseModel)


def parse_json_image(body: bytes) -> Upload:
    """Reads the photograph in `{"image": {"b64": …}}`.

    Raises:
        RequestError: 400 if it is no such JSON or no base64.
    """
    return _parse(body, JsonImage, most=1).image.upload()


def parse_json_inspection(body: bytes) -> Upload:
    """Reads the photograph, and what part it shows, in `{"image": {"b64": …}, "part_id": …}`.

    Raises:
        RequestError: 400 if it is no such JSON or no base64.
    """
    parsed = _parse(body, JsonInspection, most=1, more=MAX_METADATA, refuse=_refuse_inspection)
    return dataclasses.replace(parsed.image.upload(), part=parsed)


def parse_json_images(body: bytes, most: int) -> list[Upload]:
    """Reads the photographs, at most `most`, in `{"images": [{"b64": …}, …]}`.

    Raises:
        RequestError: 400 if it is no such JSON or no base64.
    """
    images = _parse(body, JsonImages, most).images
    if len(images) > most:
        raise RequestError(
            400, "too_many_images", f"{len(images)} images; expected at most {most} in a request."
        )
    return [image.upload() for image in images]


def _refuse_json(error: ValidationError) -> RequestError:
    problems = describe_json_errors(error)
    return RequestError(400, "bad_json", f'{problems}. Expected JSON such as {{"image": {{"b64": "…"}}}}.')


def _refuse_inspection(error: ValidationError) -> RequestError:
    wrong = {str(detail["loc"][0]) for detail in error.errors() if detail["loc"]}
    if wrong and wrong <= PartFacts.model_fields.keys():
        return bad_parameter(error.errors(), "body")
    return _refuse_json(error)


def _parse(
    body: bytes,
    form: type[Body],
    most: int,
    more: int = 0,
    refuse: Callable[[ValidationError], RequestError] = _refuse_json,
) -> Body:
    # Every value but the first follows one of these, so this bounds the memory that parsing takes.
    values = sum(map(body.count, (b",", b"[", b"{")))
    if values > most * (MAX_NAME + VALUES_PER_IMAGE) + more:
        raise RequestError(
            400,
            "bad_json",
            f"The JSON holds about {values} values; expected at most {most} images, each "
            '{"b64": "…", "name": "…"}.',
        )
    try:
        return form.model_validate_json(body)
    except ValidationError as error:
        raise refuse(error) from error
