"""What is built from the tables of a run: pages, the comment on a pull request, a workbook, a comparison.

All of them start from one ``Run`` (``run.py``); their words are in ``reports/page/texts.yaml``.
Nothing here is imported by a run that is not asked for such a report.
"""
