"""The header If-Match: the ETags of the revisions that a client has seen (RFC 9110, 13.1.1)."""

import re
from typing import Annotated

from fastapi import Depends, Header
from starlette.requests import Request

from api.errors import RequestError

# Weak ETags are accepted: proxies make those of compressed answers weak.
TAG = r'(?:W/)?"([\x21\x23-\x7e\x80-\xff]*)"'
LIST = re.compile(rf"{TAG}(?:[ \t]*,[ \t]*{TAG})*")
MAX_SHOWN = 80
"""Characters of an invalid header that an error repeats."""


async def read_if_match(
    request: Request,
    if_match: Annotated[  # noqa: ARG001  # describes the header, which may be sent several times
        str | None, Header(description='the last known ETag: "REVISION"; or several, or *')
    ] = None,
) -> frozenset[str] | None:
    """Returns the ETags, without quotes; None for `*`, any.

    Raises:
        RequestError: 428 without the header, 400 if it is invalid.
    """
    sent = request.headers.getlist("if-match")
    if not sent:
        raise RequestError(
            428,
            "precondition_required",
            'If-Match is missing. Expected the ETag of the record that was reviewed, for example "0".',
        )
    tags = ", ".join(sent).strip()
    if tags == "*":
        return None
    if LIST.fullmatch(tags) is None:
        detail = f'If-Match is {tags[:MAX_SHOWN]!r}. Expected an ETag such as "0".'
        raise RequestError(400, "bad_parameter", detail)
    return frozenset(re.findall(TAG, tags))


SeenRevisions = Annotated[frozenset[str] | None, Depends(read_if_match)]
