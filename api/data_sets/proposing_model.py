"""The model that proposes labels: a served one, or one that is loaded for the proposals only."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from api.errors import RequestError
from api.models.registry import ModelRegistry, ServedModel
from segdec.schemas import ModelIdentity

FindModel = Callable[[], ServedModel]
"""Returns the model for the next photograph; raises a RequestError, 409, if it is not served any more."""


class ProposingModel(Protocol):
    """A model that proposes labels."""

    @property
    def identity(self) -> ModelIdentity: ...

    def opened(self, folder: Path) -> AbstractAsyncContextManager[FindModel]:
        """Loads the model until the end of the block; it may write files to `folder`.

        Raises:
            SegdecError: If it cannot be used.
        """


class ServedProposer:
    """A served version of a model: requests and proposals share it."""

    def __init__(self, models: ModelRegistry, identity: ModelIdentity) -> None:
        self._models, self.identity = models, identity

    @asynccontextmanager
    async def opened(self, folder: Path) -> AsyncIterator[FindModel]:  # noqa: ARG002
        """Loads nothing."""
        yield self._find

    def _find(self) -> ServedModel:
        name, version = self.identity.name, self.identity.version
        model = self._models.versions(name).get(version)
        if model is None or model.identity != self.identity:
            detail = f"The model {name} {version} is not served any more. Start it again."
            raise RequestError(409, "model_replaced", detail)
        return model
