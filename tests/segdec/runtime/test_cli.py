import argparse
import os
import sys

import numpy as np
import pytest
from PIL import Image

from segdec.errors import ConfigError, ImageError, MissingExtraError
from segdec.images import decode_image, encode_png
from segdec.runtime.cli import (
    clean_exit,
    hide_stderr,
    import_tensorflow,
    parse_pixel_limit,
    raise_pixel_limit,
)


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [(ConfigError("no such key"), 2, "error: no such key\n"), (KeyboardInterrupt(), 130, "interrupted\n")],
)
def test_user_errors_become_a_message_and_an_exit_code(
    error: BaseException, code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught, clean_exit():
        raise error
    assert caught.value.code == code
    assert capsys.readouterr().err == text


@pytest.mark.parametrize(
    ("source", "command"),
    [
        ({"extra": "batch"}, "pip install 'segdec[batch]', in a checkout pip install -e '.[batch]'\n"),
        ({"group": "serve"}, "in the checkout and with pip 25.1 or newer: pip install -e . --group serve\n"),
    ],
)
def test_missing_package_names_its_extra_or_group(
    source: dict[str, str], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught, clean_exit(**source):
        import no_such_package  # noqa: F401
    assert caught.value.code == 2
    assert "'no_such_package' is not installed" in (printed := capsys.readouterr().err)
    assert printed.endswith(command)


def test_a_missing_module_of_the_product_is_a_bug() -> None:
    with pytest.raises(ModuleNotFoundError) as caught, clean_exit(group="train"):
        raise ModuleNotFoundError("No module named 'segdec.gone'", name="segdec.gone")
    assert not isinstance(caught.value, MissingExtraError)


def test_hidden_lines_are_shown_when_it_fails(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ImportError), hide_stderr():
        os.write(2, b"the reason\n")
        raise ImportError
    assert capfd.readouterr().err == "the reason\n"


def test_missing_tensorflow_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(MissingExtraError, match=r"'\.\[tensorflow\]'"):
        import_tensorflow()


def test_raised_pixel_limit_of_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode_png(np.zeros((40, 56), np.uint8))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(ImageError, match=r"PIL\.Image\.MAX_IMAGE_PIXELS"):
        decode_image(data, "part")
    raise_pixel_limit(2240)
    assert decode_image(data, "part").pixels.shape == (40, 56, 1)
    raise_pixel_limit(5)
    assert Image.MAX_IMAGE_PIXELS == 2240
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    raise_pixel_limit(5)
    assert Image.MAX_IMAGE_PIXELS is None


def test_limit_on_pixels_as_a_flag() -> None:
    assert parse_pixel_limit("1") == 1
    assert parse_pixel_limit("1073741824") == 2**30
    for text in ("0", "-1", "1e6", "", "1073741825", "9" * 5000, "1_0", "٣", f"{1:012}9999999999"):
        with pytest.raises(argparse.ArgumentTypeError, match="Expected a number from 1 to 1073741824"):
            parse_pixel_limit(text)
