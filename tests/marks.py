"""Which cases of a test `make test` leaves to `make test-all`."""

from functools import partial

import pytest

slow_case = partial(pytest.param, marks=pytest.mark.slow)
"""A case of `pytest.mark.parametrize` that repeats, at length, what another case shows."""
