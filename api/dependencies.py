"""What the endpoints are given, read from the app's state."""

from concurrent.futures import Executor
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from api.errors import busy
from api.models import ServedModel
from api.settings import Settings


def get_settings(request: Request) -> Settings:
    """The settings that the app was created with."""
    settings: Settings = request.app.state.settings
    return settings


def get_model(request: Request) -> ServedModel:
    """The served model.

    Raises:
        RequestError: 503, while it is not loaded and warm.
    """
    model: ServedModel | None = request.app.state.model
    if model is None:
        retry_after_s = get_settings(request).retry_after_s
        raise busy("not_ready", "The model is not loaded yet, or the service is stopping.", retry_after_s)
    return model


def get_image_threads(request: Request) -> Executor:
    """The threads that decode photographs and encode masks."""
    threads: Executor = request.app.state.image_threads
    return threads


SettingsDep = Annotated[Settings, Depends(get_settings)]
ModelDep = Annotated[ServedModel, Depends(get_model)]
ImageThreadsDep = Annotated[Executor, Depends(get_image_threads)]
