"""The model of a finished training job proposes labels without being served."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sqlalchemy import RowMapping

from api.data_sets.proposing_model import FindModel
from api.models.loader import ModelLoader
from api.training.result_model import write_model
from api.training.training_store import TrainingStore
from segdec.schemas import ModelIdentity


class TrainedProposer:
    """The model of a finished training job. It is loaded for the proposals only and never served."""

    def __init__(self, training: TrainingStore, row: RowMapping, loader: ModelLoader) -> None:
        self._training, self._row, self._loader = training, row, loader
        self.identity = ModelIdentity(name=row["model"], version=row["version"], sha256=None)

    @asynccontextmanager
    async def opened(self, folder: Path) -> AsyncIterator[FindModel]:
        """Writes the model to `folder` as `use` does, and loads it.

        Raises:
            RequestError: 404 if a file of the model is lost, 422 if the worker sent a damaged one.
            SegdecError: If it cannot be loaded, or the memory is too small.
            OSError: If the folder cannot be written.
        """
        target = folder / "model"
        await write_model(self._training, self._row, target)
        async with self._loader.loaded_unserved(target) as model:
            loaded = [model]
            del model
            try:
                yield lambda: loaded[0]
            finally:
                loaded.clear()  # the loader measures then what the process uses without it
