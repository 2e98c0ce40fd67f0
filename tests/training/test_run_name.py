"""Names of runs made from names of folders."""

import os
import re
import unicodedata

import pytest

from segdec.errors import ConfigError
from training.run_name import PATTERN, check_run_name, make_run_name


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("parts", "parts"),
        ("Gehäuse außen", "Gehäuse_außen"),
        (unicodedata.normalize("NFD", "Gehäuse"), "Gehäuse"),
        ("Bilder (Kopie) #2", "Bilder_Kopie_2"),
        ("划痕", "划痕"),
        ("2026-11-25 v1.2", "2026-11-25_v1.2"),
        (".hidden", "hidden"),
        ("-rf", "rf"),
        ("Prüfung & Test…", "Prüfung_Test"),
        ("!!!", "run"),
        ("", "run"),
        ("..", "run"),
        ("a\nb", "a_b"),
        (os.fsdecode(b"b\xe4d"), "b_d"),
        ("划" * 80, "划" * 50),  # three bytes each
        ("NUL", "run_NUL"),
        ("con.photos", "run_con_photos"),
        ("parts.json", "run_parts_json"),
    ],
)
def test_names_of_folders(folder, name):
    assert make_run_name(folder) == name
    assert re.fullmatch(PATTERN, name)
    assert make_run_name(name) == name


@pytest.mark.parametrize(
    "name", ["my run", "../x", "a/b", "", "-x", "a\n", "x" * 151, "NUL", "com1.a", "aliases.json", "a."]
)
def test_given_names_are_checked(name):
    with pytest.raises(ConfigError, match=r"cannot name a run\. Expected .*, for example '\w"):
        check_run_name(name)
