"""Shows the settings, and changes those that can be changed while the service runs."""

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter
from pydantic import Field, FiniteFloat
from starlette.requests import Request

from api.errors import document_problems
from api.http.callers import caller_of
from api.http.json_body import json_body
from api.http.roles import require_role
from api.http.sent_model import SentModel
from api.record.current_settings import CHANGEABLE_SETTINGS, CurrentSettings, dump_setting
from api.record.record_params import CurrentSettingsDep
from api.record.schemas import SettingList, SettingView

router = APIRouter(prefix="/v1/settings", tags=["settings"])

ADDRESS_SETTINGS = ("outbox_webhook", "outbox_mqtt", "opcua_endpoint")
"""Addresses, which may contain a password: only their host is shown."""
SHOWN_SETTINGS = (
    "public_url",
    *ADDRESS_SETTINGS,
    "outbox_jsonl",
    "outbox_hours",
    "record",
    "unlike_training",
    "engine",
    "max_pixels",
    "max_body_bytes",
    "rate_limit",
    "require_signature",
)
"""Settings of the start that help to understand the service; none of them is secret."""
BODY_PROBLEMS = (400, 404, 408, 413, 415, 422, 503, 504)


class NewValue(SentModel):
    """The new value of a setting."""

    value: FiniteFloat | int | str | None = Field(
        description="null: without limit, where the setting allows it"
    )


@router.get("", responses=document_problems(503), dependencies=require_role("operator"))
async def list_settings(settings: CurrentSettingsDep) -> SettingList:
    """All settings that can be changed, and the most important others."""
    await settings.refresh()
    return _describe(settings)


@router.put("/{name}", responses=document_problems(*BODY_PROBLEMS), dependencies=require_role("engineer"))
async def change_setting(
    sent: Annotated[NewValue, json_body(NewValue)], name: str, request: Request, settings: CurrentSettingsDep
) -> SettingList:
    """Changes a setting for all replicas."""
    await settings.change(name, sent.value, caller_of(request))
    return _describe(settings)


@router.delete("/{name}", responses=document_problems(404, 503), dependencies=require_role("engineer"))
async def reset_setting(name: str, request: Request, settings: CurrentSettingsDep) -> SettingList:
    """Returns to the value with which the service was started."""
    await settings.reset(name, caller_of(request))
    return _describe(settings)


def _describe(settings: CurrentSettings) -> SettingList:
    views = []
    for name in CHANGEABLE_SETTINGS:
        change = settings.changes.get(name)
        views.append(
            SettingView(
                name=name,
                value=dump_setting(name, getattr(settings.current, name)),
                started=dump_setting(name, getattr(settings.started, name)),
                is_changeable=True,
                changed_by=None if change is None else change.who,
                changed_at=None if change is None else change.at,
            )
        )
    for name in SHOWN_SETTINGS:
        value = dump_setting(name, getattr(settings.started, name))
        if name in ADDRESS_SETTINGS and value is not None:
            value = _without_secrets(str(value))
        views.append(SettingView(name=name, value=value, started=value, is_changeable=False))
    return SettingList(settings=views)


def _without_secrets(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
