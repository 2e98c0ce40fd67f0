"""Settings of models and their engine."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, PositiveInt

from api.setting_group import ENV_PREFIX, SettingGroup
from segdec.engines import ENGINES
from segdec.errors import ConfigError
from segdec.runtime.threads import MAX_THREADS


def _known_engine(name: str) -> str:
    if name not in ENGINES:
        raise ValueError(f"unknown; expected one of: {', '.join(ENGINES)}")
    return name


class ModelSettings(SettingGroup):
    """Settings of models."""

    model: Path | None = None
    """folder of one exported model"""
    models: Path | None = None
    """folder of several models: NAME/VERSION/ (or NAME/ as fit writes it), NAME/aliases.json has aliases"""
    allow_no_model: bool = False
    """start although the folder of --models has no model yet, to train the first one"""
    default_model: str | None = None
    """name of the model that /v1/predict uses; not needed if there is only one"""
    require_signature: Path | None = None
    """PEM file of trusted public keys, read again at each reload; a model that none of them signed is not
    served"""
    engine: Annotated[str, AfterValidator(_known_engine)] | None = Field(
        None,
        description=f"engine of the models, {', '.join(ENGINES)}; default: the preferred one of those that "
        "the model was exported for and that are installed",
    )
    threads: Annotated[int, Field(gt=0, le=MAX_THREADS)] | None = None
    """threads of the engine; default: one for each core of the process"""
    batch_pixels: PositiveInt | None = None
    """most pixels in a batch, also of tiles; default: 524,288 on a CPU (131,072 with OpenVINO), where more
    are not faster, and 16,777,216 on a GPU"""

    def check(self) -> None:
        super().check()
        if self.model is None and self.models is None:
            raise ConfigError(
                "No model given. Pass --model FOLDER, an exported model, or --models FOLDER, several of "
                f"them, or set {ENV_PREFIX}MODEL or {ENV_PREFIX}MODELS."
            )
        if self.model is not None and self.models is not None:
            raise ConfigError(
                f"Both --model {self.model} and --models {self.models} are given (a flag, or a variable "
                f"{ENV_PREFIX}…). Expected one of them."
            )
        if self.allow_no_model and self.models is None:
            raise ConfigError("--allow-no-model needs --models FOLDER, where the first model will be put.")
