"""Request bytes → `Photograph`. The content decides what it is; names and declared types do not."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

import numpy as np
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from api.errors import RequestError
from segdec.images import Photograph, decode_image, encode_png

FIELD = "file"
EXAMPLES = (
    "Send the image as the body, with its type (curl --data-binary @part.png -H 'Content-Type: image/png') "
    f"or as multipart/form-data in the field '{FIELD}' (curl -F {FIELD}=@part.png)."
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
    """An encoded photograph and what to call it in errors."""

    data: bytes
    name: str

    def decode(self, max_pixels: int) -> Photograph:
        """Decodes to uint8 [H, W, C]; slow, so not for the event loop.

        Raises:
            ImageError: If the content is no whole photograph that can be used.
        """
        return decode_image(self.data, self.name, max_pixels=max_pixels)


def warm_decoder() -> None:
    """Decodes once, so that a missing library is told at the start and not by the first request.

    Raises:
        MissingExtraError: If the extra `images` is not installed.
    """
    decode_image(encode_png(np.zeros((8, 8), np.uint8)), "warm-up")


async def read_upload(request: Request, limit: int) -> Upload:
    """Takes the encoded photograph out of a raw or multipart body of at most `limit` bytes.

    Raises:
        RequestError: 413 for a larger body, 415 for another kind of body, 400 for a broken form.
    """
    declared = request.headers.get("content-type", "")
    kind = declared.partition(";")[0].strip().lower()
    async with aclosing(_limited(request, limit)) as chunks:
        if kind == "multipart/form-data":
            return await _read_form(request, chunks)
        if kind.startswith("image/"):
            return Upload(b"".join([chunk async for chunk in chunks]), "The request body")
    arrived = f"Content-Type '{declared}'" if declared else "No Content-Type"
    raise RequestError(415, "unsupported_content_type", f"{arrived}; expected an image. {EXAMPLES}")


async def _limited(request: Request, limit: int) -> AsyncGenerator[bytes, None]:
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise _too_large(declared, limit)
    received = 0
    async for chunk in request.stream():
        received += len(chunk)
        if received > limit:
            raise _too_large(f"more than {limit}", limit)
        yield chunk


def _too_large(size: str, limit: int) -> RequestError:
    return RequestError(
        413, "body_too_large", f"The body has {size} bytes; expected at most {limit}. Send a smaller file."
    )


async def _read_form(request: Request, chunks: AsyncGenerator[bytes, None]) -> Upload:
    try:
        form = await FormParser(request.headers, chunks, max_files=1, max_fields=1).parse()
    except MultiPartException as error:
        raise RequestError(400, "bad_form", f"{error.message} Expected one file. {EXAMPLES}") from error
    try:
        file = form.get(FIELD)
        if isinstance(file, UploadFile) and len(form.multi_items()) == 1:
            return Upload(await file.read(), file.filename or FIELD)
        names = ", ".join(f"'{name}'" for name, _ in form.multi_items()) or "no fields"
        raise RequestError(400, "missing_file", f"The form holds {names}; expected one file. {EXAMPLES}")
    finally:
        await form.close()
