"""What can be said to ``npumigrate lint``, of the rows of ``reports/options.json``.

The command line's parser, the configuration files, ``--config KEY=VALUE``, the editors' settings,
the JSON schema and the table in docs/lint.md are made from this. What holds where nobody says anything
stands in ``Options`` for the keys of a configuration, and in ``CommandLine`` for the rest.
"""

from __future__ import annotations

from migrator.api_support.hardware import HARDWARE
from migrator.command_options import Option, options_of
from migrator.findings.finding import SEVERITIES
from migrator.report.formats import FORMATS

_CHOICES = {
    "hw": HARDWARE,
    "severity": SEVERITIES[::-1],
    "fail-on": SEVERITIES[::-1],
    "output-format": FORMATS,
}


def _completed(option: Option) -> Option:
    choices = tuple(_CHOICES.get(option.name, option.choices))
    listed = f"{choices[0]} (the default), {', '.join(choices[1:])}" if choices else ""
    return option._replace(choices=choices, help=option.help.replace("{choices}", listed))


OPTIONS = [_completed(option) for option in options_of("lint")]
KEYS = {option.name: option for option in OPTIONS if option.key}
