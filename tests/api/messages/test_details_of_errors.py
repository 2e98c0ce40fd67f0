"""Details of errors whose code does not say everything, in German."""

import re
from collections.abc import Callable
from functools import partial

import pytest

from api.data_sets.names import add_clear_classes, extend_classes
from api.errors import RequestError
from api.labelling.clicks import Click, check_clicks
from api.messages.answers import translate_error
from api.messages.language import find_language
from api.record.current_settings import parse_setting

RIGHT = Click(9, 0, True)


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
    ],
)
def test_details_are_in_german(fail: Callable[[], object]):
    with pytest.raises(RequestError) as raised:
        fail()
    error = raised.value
    german = translate_error(str(error), error.code, error.values, find_language("de"))
    assert not re.search(r"\b(The|Expected|expected|is|has|Unknown)\b", german), german
