"""Chromium without a window, for screenshots, benchmarks and tests of the pages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from segdec.errors import ConfigError

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser")
"""The first one that is installed is used: the headless shell takes half the time of the whole browser."""
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking")


def find_chromium() -> str:
    """Returns the path of the browser.

    Raises:
        ConfigError: If none is installed.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        raise ConfigError("Chromium is not installed. Install Debian's package chromium-headless-shell.")
    return program


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """Runs the browser while the block runs.

    Raises:
        ConfigError: If none is installed.
    """
    program = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield browser
        browser.close()
