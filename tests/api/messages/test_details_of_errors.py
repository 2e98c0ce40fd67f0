"""Details of errors whose code does not say everything, in German."""

import re
from collections.abc import Callable
from functools import partial

import pytest
from pydantic import BaseModel, Field, ValidationError

from api.data_sets.names import add_clear_classes, extend_classes
from api.errors import RequestError, bad_parameter
from api.http.request_params import parse_part_fields
from api.labelling.clicks import Click, check_clicks
from api.messages.answers import translate_error
from api.messages.language import find_language
from api.record.current_settings import parse_setting

RIGHT = Click(9, 0, True)


class TrialQuery(BaseModel):
    name: str = Field("a", min_length=1, max_length=128)
    limit: int = Field(1, ge=1, le=500)


def parse_query(**values: object) -> None:
    try:
        TrialQuery.model_validate(values)
    except ValidationError as error:
        raise bad_parameter(error.errors(), "query") from error


@pytest.mark.parametrize(
    "fail",
    [
        partial(extend_classes, (), ["good"]),
        partial(add_clear_classes, (), ["no scratch"]),
        partial(extend_classes, (), ["a" * 999]),
        partial(extend_classes, ("a",), ["a"]),
        partial(extend_classes, (), [f"a{number}" for number in range(999)]),
        partial(check_clicks, [RIGHT] * 9999, 9, 9),
        partial(check_clicks, [RIGHT], 9, 9),
        partial(parse_setting, "record_good_days", "x"),
        partial(parse_setting, "record_zone", "x"),
        partial(parse_setting, "record_shifts", "x"),
        partial(parse_setting, "record_good_days", 0),
        partial(parse_part_fields, {"station": "a" * 999}),
        partial(parse_part_fields, {"part_id": "a\n"}),
        partial(parse_query, name="a" * 999),
        partial(parse_query, name=""),
        partial(parse_query, limit=0),
        partial(parse_query, limit=501),
        partial(parse_query, limit="x"),
    ],
)
def test_details_are_in_german(fail: Callable[[], object]):
    with pytest.raises(RequestError) as raised:
        fail()
    error = raised.value
    german = translate_error(str(error), error.code, error.values, find_language("de"))
    assert not re.search(r"\b(The|Expected|expected|is|has|should|query|form|Unknown)\b", german), german
