"""Marks of tests that `make test` leaves to `make test-all`, or that need a program."""

import shutil
from functools import partial

import pytest

from examples.headless_browser import PROGRAMS

slow_case = partial(pytest.param, marks=pytest.mark.slow)
"""A case of `pytest.mark.parametrize` that repeats, at length, what another case shows."""

needs_chromium = pytest.mark.skipif(not any(map(shutil.which, PROGRAMS)), reason="Chromium is not installed.")
