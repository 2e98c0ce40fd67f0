"""Texts, dates and numbers in a language, for reports and estimates.

Dates, numbers and plural rules are those of the Unicode CLDR, which Babel has.
"""

import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from zoneinfo import ZoneInfo

from babel import Locale
from babel.dates import format_date, format_time, get_timezone_gmt
from babel.numbers import format_decimal

from api.messages.catalogues import DEFAULT, Catalogue, read_catalogues
from segdec.errors import ConfigError


@dataclass(frozen=True, eq=False)
class Language:
    """A language with its conventions."""

    code: str
    catalogue: Catalogue
    locale: Locale

    def translate(self, text: str, **values: object) -> str:
        """Returns an English text in this language; `{name}` is replaced by a value."""
        translated = self.catalogue.texts.get(text, text)
        assert isinstance(translated, str)
        return translated.format(**values)

    def translate_count(self, count: int, one: str, other: str, **values: object) -> str:
        """Returns one of two English texts about a count in this language; `{count}` is replaced by it."""
        forms = self.catalogue.texts.get(other, {"one": one, "other": other})
        assert not isinstance(forms, str)
        form = forms.get(self.locale.plural_form(count), forms["other"])
        return form.format(**{"count": self.count(count), **values})

    def time(self, moment: datetime, zone: ZoneInfo) -> str:
        """Returns a time in a zone, to the minute, with its `repeated_offset`."""
        local = moment.astimezone(zone)
        time = f"{self.date(local)} {format_time(local, 'short', zone, self.locale)}"
        return f"{time} {self.repeated_offset(local)}".rstrip()

    def repeated_offset(self, local: datetime) -> str:
        """Returns the offset of a time that occurs twice, as clocks go back, such as GMT+02:00; else ""."""
        if local.replace(fold=0).utcoffset() == local.replace(fold=1).utcoffset():
            return ""
        return get_timezone_gmt(local, "long", self.locale)

    @property
    def excel_time(self) -> str:
        """The format of a time for Excel, to the second."""
        pattern = self.locale.date_formats["medium"].pattern
        return re.sub("y+", "yyyy", f"{pattern} HH:mm:ss").lower().replace("'", '"')

    def date(self, day: date) -> str:
        """Returns a date."""
        return format_date(day, "medium", self.locale)

    def count(self, number: int) -> str:
        """Returns a number with a separator of thousands."""
        return format_decimal(number, locale=self.locale)

    def decimals(self, number: float, places: int) -> str:
        """Returns a number with a fixed number of decimals."""
        return format_decimal(number, f"0.{'0' * places}", self.locale)

    def probability(self, value: float) -> str:
        """Returns a probability with up to six significant digits."""
        return format_decimal(Decimal(f"{value:.6g}"), "0.############", self.locale)

    def number(self, value: float) -> str:
        """Returns a number with all its decimals."""
        return format_decimal(value, locale=self.locale, decimal_quantization=False)

    def percent(self, share: float) -> str:
        """Returns a share in percent."""
        return f"{self.decimals(100 * share, 2 if share < 0.1 else 1)} %"


ENGLISH = Language(DEFAULT, read_catalogues()[DEFAULT], Locale("en", "GB"))
"""British English has 24 hours and days before months, as the pages do."""


@cache
def find_language(code: str) -> Language:
    """Returns a language by its code.

    Raises:
        ConfigError: If there is no such language.
    """
    known = read_catalogues()
    if code not in known:
        raise ConfigError(f"The language is {code}. Expected one of: {', '.join(known)}.")
    return ENGLISH if code == DEFAULT else Language(code, known[code], Locale.parse(code))
