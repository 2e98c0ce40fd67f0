"""The stub on LitServe; a photograph comes as base64 in JSON, since a form's file cannot go to its worker."""

import base64
import sys
from typing import Any

import litserve

from benchmarks.serving.peers.work import inspect, max_batch


class Inspection(litserve.LitAPI):
    """The inspection in the worker's `predict`."""

    def setup(self, device: str) -> None:
        """Does nothing: there is nothing to load."""

    def decode_request(self, request: dict[str, str]) -> bytes:
        """Returns the encoded photograph."""
        return base64.b64decode(request["image"])

    def predict(self, photographs: Any) -> Any:
        """Answers one photograph, or several where it batches."""
        return inspect([photographs])[0] if isinstance(photographs, bytes) else inspect(photographs)

    def batch(self, inputs: list[bytes]) -> list[bytes]:
        """Returns them as they are: photographs need not be of one size."""
        return inputs

    def unbatch(self, output: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Returns them as they are."""
        return output

    def encode_response(self, output: dict[str, Any]) -> dict[str, Any]:
        """Returns it as it is."""
        return output


if __name__ == "__main__":
    api = Inspection(max_batch_size=max_batch(), batch_timeout=0.001 if max_batch() > 1 else 0.0)
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=1)
    server.run(host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", generate_client_file=False)
