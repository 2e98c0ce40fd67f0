"""Reads encoded photographs from request bodies.

The content of a file decides its type; file names and declared types are ignored.
"""

import asyncio
import dataclasses
from contextlib import aclosing
from dataclasses import dataclass

from pydantic import Field, ValidationError
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from api.errors import RequestError, bad_parameter, describe_json_errors
from api.http.json_files import decode_base64
from api.http.open_uploads import OpenUpload
from api.http.request_body import FORM_TYPE, is_json, is_raw, media_type, parse_json, read_body, read_chunks
from api.http.request_params import MAX_METADATA, PartFields, parse_part_fields
from api.http.sent_model import SentModel
from api.inspecting.encoded_photograph import EncodedPhotograph

FORM_FIELD = "file"
IMAGE_TYPES = ("image/png", "image/jpeg", "image/bmp", "image/tiff")
"""Documented types. The content decides, so any other image/* is read too."""
MAX_NAME = 256
"""Maximum length of a photograph's name in JSON."""
MAX_QUOTED = 40
"""Characters of a text that an error message quotes."""
VALUES_PER_IMAGE = MAX_NAME + 16
"""Maximum of JSON values per photograph, each comma in its name included."""
EXAMPLES = (
    "Send the image as the body, with its type (curl --data-binary @part.png -H 'Content-Type: image/png'), "
    f"as multipart/form-data in the field '{FORM_FIELD}' (curl -F {FORM_FIELD}=@part.png), "
    'or as JSON {"image": {"b64": "…"}}.'
)


@dataclass(frozen=True)
class Upload(EncodedPhotograph):
    """An encoded photograph, and the part that the body names."""

    part: PartFields | None = None


async def read_upload(request: Request, limit: int, upload: OpenUpload, *, with_part: bool = False) -> Upload:
    """Reads an encoded photograph from a raw, multipart or JSON body of at most `limit` bytes.

    `upload` is its place among those that are being read. `with_part`: whether a form or JSON may also name
    the part.

    Raises:
        RequestError: 413 for a larger body, 503 if the memory is full, 415 for another type of body or a
            compressed one, 422 for an empty one, 400 for an invalid form, JSON or base64.
    """
    kind = media_type(request)
    if kind == FORM_TYPE:
        return (await read_form(request, limit, upload, max_files=1, with_part=with_part))[0]
    if is_json(kind):
        body = await read_body(request, limit, upload)
        return await asyncio.to_thread(_parse_json_inspection if with_part else _parse_json_image, body)
    if not is_raw(kind) or request.headers.get("content-length") == "0":
        raise _unsupported(request, EXAMPLES)
    return Upload(await read_body(request, limit, upload), "The file")


async def read_uploads(request: Request, limit: int, upload: OpenUpload, *, max_files: int) -> list[Upload]:
    """Reads up to `max_files` photographs from a multipart or JSON body; arguments and errors as
    `read_upload`.
    """
    kind = media_type(request)
    if kind == FORM_TYPE:
        return await read_form(request, limit, upload, max_files)
    if is_json(kind):
        body = await read_body(request, limit, upload)
        return await asyncio.to_thread(_parse_json_images, body, max_files)
    examples = f"Send them as multipart/form-data, each in a field '{FORM_FIELD}'."
    raise _unsupported(request, examples, "several images")


def _unsupported(request: Request, examples: str, expected: str = "an image") -> RequestError:
    if request.headers.get("content-length") == "0":
        detail = (
            f"The request body is empty (0 bytes); expected {expected}. Check the file name: curl sends "
            f"nothing if the file does not exist. {examples}"
        )
        return RequestError(422, "empty_image", detail)
    declared = request.headers.get("content-type", "")
    arrived = f"Content-Type '{declared}'" if declared else "No Content-Type"
    return RequestError(415, "unsupported_content_type", f"{arrived}; expected {expected}. {examples}")


# === Forms ===


class FormParser(MultiPartParser):
    """Reads a complete form and keeps its file in memory: a read-only container has no folder for temporary
    files, and the size of the body is limited.
    """

    spool_max_size = 0
    complete = False

    def on_headers_finished(self) -> None:
        """Reads the field `file` as a file also if it has no file name: some libraries send none."""
        part = self._current_part
        _, options = parse_options_header(part.content_disposition)
        named = options.get(b"name") == FORM_FIELD.encode()
        if part.content_disposition and named and b"filename" not in options:
            part.content_disposition += b'; filename=""'
        super().on_headers_finished()

    def on_end(self) -> None:
        self.complete = True

    async def parse(self) -> FormData:
        """Raises a MultiPartException if the form is invalid or incomplete."""
        form = await super().parse()
        if not self.complete:
            for file in self._files_to_close_on_error:
                file.close()
            raise MultiPartException("The form ends before its closing boundary.")
        return form


async def read_form(
    request: Request, limit: int, upload: OpenUpload, max_files: int, *, with_part: bool = False
) -> list[Upload]:
    """Reads the files of a form. If `with_part` is true, the other fields describe the part.

    Raises:
        RequestError: As `read_upload`.
    """
    count = "one file (/v1/predict/batch takes several)" if max_files == 1 else f"1 to {max_files} files"
    expected = f"Expected {count}. {EXAMPLES}"
    facts = tuple(PartFields.model_fields if with_part else ())
    async with aclosing(read_chunks(request, limit, upload)) as chunks:
        try:
            headers = _without_charset(request.headers)
            parser = FormParser(headers, chunks, max_files=max_files, max_fields=max(len(facts), 1))
            form = await parser.parse()
        except MultiPartException as error:
            raise RequestError(400, "bad_form", f"{error.message} {expected}") from error
    try:
        fields = {name: text for name, text in form.items() if name in facts and isinstance(text, str)}
        part = parse_part_fields(fields) if fields else None
        uploads = [
            await _read_file(file, part) for file in form.getlist(FORM_FIELD) if isinstance(file, UploadFile)
        ]
        if uploads and len(uploads) + len(fields) == len(form.multi_items()):
            return uploads
        names = ", ".join(f"'{name}'" for name, _ in form.multi_items()) or "no fields"
        detail = f"The form has {names}; expected '{FORM_FIELD}' and no other field"
        detail += f" except {', '.join(facts)}. " if facts else ". "
        raise RequestError(400, "missing_file", detail + expected)
    finally:
        await form.close()


async def _read_file(file: UploadFile, part: PartFields | None) -> Upload:
    """Reads the file of a form; raises a RequestError, 400, for a text without a file name."""
    data = await file.read()
    start = data[:MAX_QUOTED].decode("latin-1")
    if data and not file.filename and start.isascii() and start.isprintable():
        detail = f"The form's field '{FORM_FIELD}' has the text {start!r}; expected a file. {EXAMPLES}"
        raise RequestError(400, "missing_file", detail)
    return Upload(data, file.filename or FORM_FIELD, part)


def _without_charset(headers: Headers) -> Headers:
    """Returns the type of a form with its boundary only.

    Names in forms are UTF-8. With some other charsets the text cannot be repeated in an answer, or decoding
    fails.
    """
    kind, options = parse_options_header(headers["Content-Type"])
    if b"boundary" in options:
        boundary = options[b"boundary"].replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        kind += b'; boundary="' + boundary + b'"'
    return Headers(raw=[(b"content-type", kind)])


# === JSON ===


class EncodedImage(SentModel):
    """A photograph inside JSON."""

    b64: str = Field(
        description="the image file in base64, or a data URI", json_schema_extra={"contentEncoding": "base64"}
    )
    name: str = Field("The image", max_length=MAX_NAME, description="its name in error messages")

    def to_upload(self) -> Upload:
        """Decodes the file; raises a RequestError, 400, if it is not base64."""
        return Upload(decode_base64(self.b64, self.name), self.name)


class JsonImage(SentModel):
    """Body for one photograph."""

    image: EncodedImage


class JsonInspection(JsonImage, PartFields):
    """Body for one photograph that is recorded, with its part."""


class JsonImages(SentModel):
    """Body for several photographs."""

    images: list[EncodedImage] = Field(min_length=1)


def _parse_json_image(body: bytes) -> Upload:
    return parse_json(body, JsonImage, VALUES_PER_IMAGE, _bad_json).image.to_upload()


def _parse_json_inspection(body: bytes) -> Upload:
    parsed = parse_json(body, JsonInspection, VALUES_PER_IMAGE + MAX_METADATA, _bad_inspection)
    return dataclasses.replace(parsed.image.to_upload(), part=parsed)


def _parse_json_images(body: bytes, max_images: int) -> list[Upload]:
    images = parse_json(body, JsonImages, max_images * VALUES_PER_IMAGE, _bad_images).images
    if len(images) > max_images:
        raise RequestError(
            400, "too_many_images", f"{len(images)} images; expected at most {max_images} in a request."
        )
    return [image.to_upload() for image in images]


def _bad_json(error: ValidationError, example: str = '{"image": {"b64": "…"}}') -> RequestError:
    problems = describe_json_errors(error)
    return RequestError(400, "bad_json", f"{problems}. Expected JSON such as {example}.")


def _bad_images(error: ValidationError) -> RequestError:
    return _bad_json(error, '{"images": [{"b64": "…"}]}')


def _bad_inspection(error: ValidationError) -> RequestError:
    wrong = {str(detail["loc"][0]) for detail in error.errors() if detail["loc"]}
    if wrong and wrong <= PartFields.model_fields.keys():
        return bad_parameter(error.errors(), "body")
    return _bad_json(error)
