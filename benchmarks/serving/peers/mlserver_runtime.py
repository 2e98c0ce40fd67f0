"""The stub on MLServer; a photograph comes as base64 in an Open Inference request."""

import base64
import json

from mlserver import MLModel
from mlserver.codecs import StringCodec
from mlserver.types import InferenceRequest, InferenceResponse

from benchmarks.serving.peers.work import inspect


class Inspection(MLModel):
    """The whole inspection in `predict`, as MLServer's own runtimes do it."""

    async def load(self) -> bool:
        """Does nothing: there is nothing to load."""
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Answers the photographs of one request, or of several that the server put together."""
        answers = inspect([base64.b64decode(encoded) for encoded in payload.inputs[0].data])
        output = StringCodec.encode_output("answers", [json.dumps(answer) for answer in answers])
        return InferenceResponse(model_name=self.name, outputs=[output])
