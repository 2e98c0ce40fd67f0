"""A client of a service that keeps a record; it has the key of an engineer."""

import hashlib
from pathlib import Path
from typing import Any

import httpx

from api.app import create_app
from api.settings import Settings
from tests.api.conftest import ServiceClient, StubPredictor

KEY = "of-an-engineer"


def write_keys(folder: Path) -> Path:
    """Writes the file with the key of the engineer `ada`; returns its path."""
    keys = folder / "admin.keys"
    keys.write_text(f"ada:{hashlib.sha256(KEY.encode()).hexdigest()}")
    return keys


class EngineerClient(ServiceClient):
    """Starts a service with a record in `folder`, as `ServiceClient`, and sends requests with the key."""

    def __init__(self, folder: Path, predictor: StubPredictor | None = None, **settings: Any) -> None:
        folder.mkdir(exist_ok=True)
        keys = write_keys(folder)
        fixed = {"model": "unused", "record": "required", "record_folder": folder, "admin_keys": keys}
        super().__init__(
            create_app(Settings.model_validate({**fixed, **settings}), predictor or StubPredictor())
        )

    def request(self, method: str, url: str, headers: Any = None, **words: Any) -> httpx.Response:
        return super().request(method, url, headers={"X-API-Key": KEY, **(headers or {})}, **words)

    def put(self, url: str, **words: Any) -> httpx.Response:
        return self.request("PUT", url, **words)

    def patch(self, url: str, **words: Any) -> httpx.Response:
        return self.request("PATCH", url, **words)

    def delete(self, url: str, **words: Any) -> httpx.Response:
        return self.request("DELETE", url, **words)
