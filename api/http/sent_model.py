"""What clients send as JSON."""

from pydantic import BaseModel, ConfigDict


class SentModel(BaseModel):
    """Base of JSON bodies and their parts; members that it does not have are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True)
