"""What typer and argparse say of a wrong command line, in our words and the language of the run."""

from __future__ import annotations

import gettext
import re
from typing import Any

from migrator.language import N_, _, did_you_mean


def ask_catalogue() -> None:
    """Let the libraries that are loaded from now on find their words in our catalogue."""
    gettext.gettext = lambda message: _(message)
    gettext.ngettext = lambda msgid1, msgid2, n: _(msgid1 if n == 1 else msgid2)


def usage_error(error: Any) -> str:
    """What is wrong with a command line that typer refuses."""
    name, words = type(error).__name__, " ".join(error.format_message().split())
    if name == "NoSuchOption":
        meant = did_you_mean(error.option_name, error.possibilities or ())
        return _("no such option: {option}", option=error.option_name) + meant
    if name == "BadOptionUsage":
        said = N_("{option} needs a value") if "requires" in words else N_("{option} takes no value")
        return _(said, option=error.option_name)
    if name == "MissingParameter":
        return _("missing: {what}", what=error.param.metavar or "/".join(error.param.opts))
    if found := re.search(r"No such command '(.*?)'", words):
        known = getattr(error.ctx.command, "commands", ())
        return _("no such command: {what}", what=found[1]) + did_you_mean(found[1], known)
    if found := re.search(r"unexpected extra argument\S* \((.*)\)", words):
        return _("more than it takes: {what}", what=found[1])
    return words
