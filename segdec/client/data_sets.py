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
from segdec.data_set_schemas import DataSetSummary, KnownPhotograph, MissingPhotographs, PhotographSummary

Received = TypeVar("Received", bound=BaseModel)

PATH = "/v1/data-sets"
MAX_DIGESTS = 1000
"""Digests in a request."""


class _DataSets(BaseModel):
    data_sets: list[DataSetSummary]


class _Added(BaseModel):
    photograph: PhotographSummary


class DataSetClient:
    """One data set of a service. Threads may share it.

    All methods raise `ServiceError` if the service rejects the request or does not answer.

    Args:
        client: The client of the service, with the key of an engineer.
        data_set: The data set.
    """

    def __init__(self, client: Client, data_set: DataSetSummary) -> None:
        self._client, self.id, self.classes = client, data_set.id, list(data_set.classes)

    @classmethod
    def open(cls, client: Client, name: str) -> "DataSetClient":
        """Finds the data set `name`, or creates it."""
        data_sets = client.send(Call("GET", PATH, response_reader(_DataSets))).data_sets
        same = [data_set for data_set in data_sets if data_set.name == name.strip()]
        if same:
            return cls(client, same[0])
        body = {"name": name, "classes": []}
        return cls(client, client.send(_json_call("POST", PATH, DataSetSummary, body)))

    def add_classes(self, names: Sequence[str], *, unclear_are_defects: bool = False) -> None:
        """Adds classes at the end of its list, also names that may mean a good part if those are defects."""
        body = {"add_classes": list(names), "unclear_are_defects": unclear_are_defects}
        changed = _json_call("PATCH", f"{PATH}/{self.id}", DataSetSummary, body)
        self.classes = self._client.send(changed).classes

    def known_photographs(self, digests: Sequence[str]) -> dict[str, KnownPhotograph]:
        """Returns those of the named photographs that the data set has, by the SHA-256 of the file in hex."""
        known: dict[str, KnownPhotograph] = {}
        for start in range(0, len(digests), MAX_DIGESTS):
            body = {"sha256": list(digests[start : start + MAX_DIGESTS])}
            answer = self._client.send(
                _json_call("POST", f"{PATH}/{self.id}/missing", MissingPhotographs, body)
            )
            known |= {photograph.sha256: photograph for photograph in answer.present}
        return known

    def add_photograph(self, data: bytes, *, name: str, part: str, split: str = "") -> PhotographSummary:
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
        self, photograph: PhotographSummary, content: AnnotationContent, mask: bytes | None
    ) -> PhotographSummary:
        """Annotates a photograph; the mask is a grey PNG of class values."""
        body = {
            **content.model_dump(),
            "mask": None if mask is None else b64encode(mask).decode(),
            "source": "imported",
            "based_on": photograph.annotation_id,
        }
        path = f"{PATH}/{self.id}/photographs/{photograph.id}/annotation"
        return self._client.send(_json_call("PUT", path, PhotographSummary, body))


def _json_call(method: str, path: str, kind: type[Received], body: Mapping[str, Any]) -> Call[Received]:
    headers = {"Content-Type": "application/json"}
    return Call(method, path, response_reader(kind), headers=headers, content=json.dumps(body).encode())
