"""What typer and argparse say, in the language of the run: loaded only where it is not English."""

from __future__ import annotations

import gettext
from typing import Any

from migrator.language import _, language


def ask_catalogue() -> None:
    """Let the libraries that are loaded from now on find their words in our catalogue."""
    gettext.gettext = lambda message: _(message)
    gettext.ngettext = lambda msgid1, msgid2, n: _(msgid1 if n == 1 else msgid2)


def usage_error(error: Any) -> str:
    """What typer says of a wrong command line."""
    name, words = type(error).__name__, " ".join(error.format_message().split())
    if language() == "en":
        return words
    if name == "NoSuchOption":
        near = ", ".join(sorted(error.possibilities or ()))
        hint = _("; did you mean {near}?", near=near) if near else ""
        return _("no such option: {option}", option=error.option_name) + hint
    hint = error.param.get_error_hint() if getattr(error, "param", None) else ""
    if name == "MissingParameter":
        return _("missing: {what}", what=hint)
    if name == "BadParameter" and hint:
        return _("invalid value for {what}: {why}", what=hint, why=error.message)
    return words
