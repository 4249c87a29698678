"""``report.xlsx``: the tables as sheets of one workbook. Every cell is text or a number, never a formula."""

from __future__ import annotations

import re
from pathlib import Path

from migrator.files.errors import SourceError, cannot_write
from migrator.language import _
from migrator.report.rows import load_tables
from migrator.report.views.run import Run

_NUMBERS = ("line", "end_line")
_LONGEST = 32_000  # characters of a cell: 32,767 are the most
_WIDEST = 60
# What XML 1.0 has no place for.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def write_workbook(run: Run, file: Path) -> None:
    """Write the tables that have rows. Raises SourceError without openpyxl, CannotWrite."""
    try:
        import openpyxl
        from openpyxl.cell import WriteOnlyCell
        from openpyxl.styles import Alignment, Font
    except ImportError:
        raise SourceError(_("xlsx needs openpyxl: pip install 'npumigrate[xlsx]'")) from None
    import pandas

    book = openpyxl.Workbook(write_only=True)
    wrapped, bold = Alignment(wrap_text=True, vertical="top"), Font(bold=True)
    tables = {name: rows for name, rows in run.tables.items() if len(rows)}
    for name, rows in (tables or {"change_list.csv": pandas.DataFrame(columns=["file"])}).items():
        sheet = book.create_sheet(name.removesuffix(".csv")[:31])
        sheet.freeze_panes = "A2"
        headings = [column.name for column in load_tables()[name].columns][: len(rows.columns)]
        for place, (heading, values) in enumerate(zip(headings, rows.columns), 1):
            width = max([len(heading), *rows[values].astype(str).str.len().head(200)]) + 2
            sheet.column_dimensions[openpyxl.utils.get_column_letter(place)].width = min(width, _WIDEST)
        cells = [WriteOnlyCell(sheet, _(heading)) for heading in headings]
        for cell in cells:
            cell.font = bold
        sheet.append(cells)
        for row in rows.itertuples(index=False):
            cells = []
            for column, value in zip(rows.columns, row):
                cell = WriteOnlyCell(sheet)
                if column in _NUMBERS and str(value).isdigit():
                    cell.value = int(value)
                else:
                    cell.value = _CONTROLS.sub("\ufffd", str(value))[:_LONGEST]
                    cell.data_type = "s"  # what begins with = is no formula
                    cell.quotePrefix = True
                cell.alignment = wrapped
                cells.append(cell)
            sheet.append(cells)
        sheet.auto_filter.ref = f"A1:{openpyxl.utils.get_column_letter(len(headings))}{len(rows) + 1}"
    try:
        book.save(file)
    except OSError as error:
        raise cannot_write(error, file) from error
