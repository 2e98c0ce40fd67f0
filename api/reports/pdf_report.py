"""A report as PDF, A4."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from fpdf import FPDF
from fpdf.enums import TableBordersLayout
from fpdf.fonts import FontFace

from api.reports.report_content import MAX_DEFECTS, ReportContent
from api.reports.report_text import (
    defect_rows,
    defect_titles,
    error_lines,
    model_rows,
    model_titles,
    rate_rows,
    rate_titles,
    shorten,
    summary_rows,
)

FONTS = Path(__file__).parents[1] / "fonts"
FONT = "DejaVu"
"""It has Latin, Greek, Cyrillic and other characters."""
TITLE_PT, HEADING_PT, TEXT_PT, SMALL_PT = 18, 12, 9, 8
LINE_MM = 5
CHARACTER_MM = 3.5
"""Width of the widest characters of a table."""
MAX_LINES = 40
"""In a cell."""


def write_pdf(content: ReportContent, made_at: datetime) -> bytes:
    """Returns the report as a PDF file."""
    document = _Document(content, made_at)
    document.add_font(FONT, "", FONTS / "DejaVuSans.ttf")
    document.add_font(FONT, "B", FONTS / "DejaVuSans-Bold.ttf")
    document.set_title(content.request.title)
    document.set_creation_date(made_at)
    document.add_page()
    _write(document, content)
    return bytes(document.output())


class _Document(FPDF):
    def __init__(self, content: ReportContent, made_at: datetime) -> None:
        super().__init__(format="A4")
        zone, language = content.request.zone, content.request.language
        time = language.time(made_at, zone)
        self._made = language.translate("Made on {time}, times in {zone}", time=time, zone=zone.key)
        self.set_auto_page_break(True, margin=18)

    def header(self) -> None:
        """Turns off the replacement of `{nb}` by the number of pages: a name may contain it."""
        self.alias_nb_pages("")

    def footer(self) -> None:
        """Writes page number and time."""
        self.alias_nb_pages()
        self.set_y(-14)
        self.set_font(FONT, size=SMALL_PT)
        self.cell(0, LINE_MM, self._made)
        self.cell(0, LINE_MM, f"{self.page_no()} / {{nb}}", align="R")


def _write(document: FPDF, content: ReportContent) -> None:
    translate = content.request.language.translate
    none = translate("None.")
    document.set_font(FONT, "B", TITLE_PT)
    document.multi_cell(0, 9, content.request.title, new_x="LMARGIN", new_y="NEXT")
    _table(document, [], summary_rows(content), (3, 7), none)
    _heading(document, translate("Errors, estimated from reviews"))
    for line in error_lines(content):
        document.multi_cell(0, LINE_MM, line, align="L", new_x="LMARGIN", new_y="NEXT")
    _heading(document, translate("Models"))
    _table(document, model_titles(content), model_rows(content), (2.6, 1.5, 1.8, 2.6, 2.4, 4.8), none)
    _heading(document, translate("Defect rate"))
    _table(document, rate_titles(content), rate_rows(content), (4, 2, 2, 2), none)
    is_full = len(content.defects) == MAX_DEFECTS
    newest = translate("Defects, the newest {count}", count=MAX_DEFECTS)
    _heading(document, newest if is_full else translate("Defects"))
    _table(document, defect_titles(content), defect_rows(content), (4, 3.4, 2.6, 2.6, 1.6, 3, 2.4), none)
    document.ln(12)
    document.cell(0, LINE_MM, f"{translate('Date, name, signature')}: {'_' * 46}")


def _heading(document: FPDF, text: str) -> None:
    document.ln(4)
    document.set_font(FONT, "B", HEADING_PT)
    document.cell(0, 8, text, new_x="LMARGIN", new_y="NEXT")
    document.set_font(FONT, size=TEXT_PT)


def _table(
    document: FPDF, titles: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[float], none: str
) -> None:
    """Writes a table, or the text `none` if there are no rows."""
    document.set_font(FONT, size=TEXT_PT)
    lines = list(rows)
    if not lines:
        document.cell(0, LINE_MM, none, new_x="LMARGIN", new_y="NEXT")
        return
    with document.table(
        col_widths=tuple(widths),
        line_height=LINE_MM,
        text_align="LEFT",
        borders_layout=TableBordersLayout.HORIZONTAL_LINES,
        headings_style=FontFace(emphasis="BOLD"),
        first_row_as_headings=bool(titles),
    ) as table:
        limits = [int(document.epw * width / sum(widths) / CHARACTER_MM) * MAX_LINES for width in widths]
        for line in [titles, *lines] if titles else lines:
            # A row must fit on a page.
            texts = zip(line, limits, strict=True)
            table.row([shorten(" ".join(text.splitlines()), limit) for text, limit in texts])
