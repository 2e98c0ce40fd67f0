"""The data sets of a service: photographs with labels that are sent to it."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from segdec.annotation_content import AnnotationContent
from segdec.client.calls import Call
from segdec.client.clients import Client
from segdec.client.replies import response_reader

Reply = TypeVar("Reply", bound=BaseModel)

PATH = "/v1/data-sets"
MAX_DIGESTS = 1000
"""Digests in a request."""


class DataSetAnswer(BaseModel):
    """A data set: its id, name, and classes of defects, the first of which has the mask value 1."""

    id: int
    name: str
    classes: list[str]


class StoredPhotograph(BaseModel):
    """A photograph of a data set; `annotation_id` is None if nobody has labelled it."""

    id: int
    name: str
    label: str | None
    annotation_id: int | None


class KnownPhotograph(StoredPhotograph):
    """A photograph that the data set has, named by the SHA-256 of its file in hex."""

    sha256: str
    is_removed: bool
    split: str | None


class _DataSets(BaseModel):
    data_sets: list[DataSetAnswer]


class _Added(BaseModel):
    photograph: StoredPhotograph


class _Missing(BaseModel):
    present: list[KnownPhotograph]


class DataSetClient:
    """One data set of a service. Threads may share it.

    All methods raise `ServiceError` if the service rejects the request or does not answer.

    Args:
        client: The client of the service, with the key of an engineer.
        data_set: The data set.
    """

    def __init__(self, client: Client, data_set: DataSetAnswer) -> None:
        self._client, self.id, self.classes = client, data_set.id, list(data_set.classes)

    @classmethod
    def open(cls, client: Client, name: str) -> "DataSetClient":
        """Finds the data set `name`, or creates it."""
        found = client.send(Call("GET", PATH, response_reader(_DataSets))).data_sets
        same = [data_set for data_set in found if data_set.name == name.strip()]
        if same:
            return cls(client, same[0])
        body = {"name": name, "classes": []}
        return cls(client, client.send(_json_call("POST", PATH, DataSetAnswer, body)))

    def add_classes(self, names: Sequence[str]) -> None:
        """Adds classes at the end of its list."""
        changed = _json_call("PATCH", f"{PATH}/{self.id}", DataSetAnswer, {"add_classes": list(names)})
        self.classes = self._client.send(changed).classes

    def known_photographs(self, digests: Sequence[str]) -> dict[str, KnownPhotograph]:
        """Returns those of the named photographs that the data set has, by the SHA-256 of the file in hex."""
        known: dict[str, KnownPhotograph] = {}
        for start in range(0, len(digests), MAX_DIGESTS):
            body = {"sha256": list(digests[start : start + MAX_DIGESTS])}
            answer = self._client.send(_json_call("POST", f"{PATH}/{self.id}/missing", _Missing, body))
            known |= {photograph.sha256: photograph for photograph in answer.present}
        return known

    def add_photograph(self, data: bytes, *, name: str, part: str, split: str = "") -> StoredPhotograph:
        """Sends a photograph; one that is there already stays as it is, except that it gets
        `split` if it has none. An empty `split` means none.
        """
        call = Call(
            "POST",
            f"{PATH}/{self.id}/photographs",
            response_reader(_Added),
            {"name": name, "part": part} | ({"split": split} if split else {}),
            {"Content-Type": "image/*"},
            content=data,
        )
        return self._client.send(call).photograph

    def annotate(
        self, photograph: StoredPhotograph, content: AnnotationContent, mask: bytes | None
    ) -> StoredPhotograph:
        """Annotates a photograph; the mask is a grey PNG of class values."""
        body = {
            **content.model_dump(),
            "mask": None if mask is None else b64encode(mask).decode(),
            "source": "imported",
            "based_on": photograph.annotation_id,
        }
        path = f"{PATH}/{self.id}/photographs/{photograph.id}/annotation"
        return self._client.send(_json_call("PUT", path, StoredPhotograph, body))


def _json_call(method: str, path: str, kind: type[Reply], body: Mapping[str, Any]) -> Call[Reply]:
    headers = {"Content-Type": "application/json"}
    return Call(method, path, response_reader(kind), headers=headers, content=json.dumps(body).encode())
