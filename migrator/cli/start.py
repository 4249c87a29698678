"""Where the process starts: two commands go their own, short way; everything else is typer's."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import NoReturn, Optional

from migrator.cli.ending import ended, escape_unprintable, fail
from migrator.language import LANGUAGES, _, choose


def main() -> NoReturn:
    """Run the command line of this process, and end it.

    What is to be done at the end of a process is done, but no object is taken apart, which would take a
    twentieth of a hook.
    """
    code = run()
    threads = sys.modules.get("threading")
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:
        sys.exit(code)  # Python says what cannot be written
    if threads and threads.active_count() > 1:
        sys.exit(code)  # Python waits for them
    os._exit(code)


def run() -> int:
    """Run the command line of this process and return its exit code."""
    # Little of what a run makes is garbage: to look through all that stays is a tenth of a migration's time,
    # and once more at the end a quarter of a hook's.
    gc.set_threshold(2_000_000)
    atexit.register(gc.freeze)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # the caller closed it, as cron jobs and ``>&-`` do
            stream = open(os.devnull, "r" if name == "stdin" else "w")  # noqa: SIM115 (it stays open)
            setattr(sys, name, stream)
    try:
        os.getcwd()
    except OSError as error:
        from migrator.files.errors import reason

        return fail(_("the current folder cannot be used: {error}", error=reason(error)))
    given, lang = split_language(sys.argv[1:])
    if lang is not None and lang not in LANGUAGES:
        return fail(_("--lang {lang}: choose from {known}", lang=lang, known=", ".join(LANGUAGES)))
    if lang:
        choose(lang)  # before anything else is loaded: it says what it says in this language
    sys.argv[1:] = given
    import gettext  # the libraries that are loaded from now on find their words in our catalogue

    gettext.gettext = lambda message: _(message)
    gettext.ngettext = lambda msgid1, msgid2, n: _(msgid1 if n == 1 else msgid2)
    name, *arguments = given or [""]
    if name not in ("lint", "check", "upgrade", "api"):
        from migrator.cli.main import run as run_command

        if name in ("server", "mcp"):  # its client ends it
            return run_command(sys.argv[1:])
        asked = _end_in_order()
        code = run_command(sys.argv[1:])
        return 128 + asked[0] if asked else code
    escape_unprintable()
    return ended(lambda: run_own(name, *arguments))


def run_own(name: str, *arguments: str) -> int:
    """Run a command that reads its options itself: ``lint``, by all its names, or ``api``."""
    if name == "api":
        from migrator.cli.api import api

        return api(arguments)
    from migrator.cli.lint import lint

    # The rules of an upgrade have unsafe fixes only: who asks for them knows.
    asked = ("--select", "NPU10,NPU53", "--unsafe-fixes") if name == "upgrade" else ()
    return lint((*asked, *arguments))


def split_language(arguments: list[str]) -> tuple[list[str], Optional[str]]:
    """The words of the command line without ``--lang``, and its value; None where it is not given.

    What stands behind ``--`` is another program's, and so is what stands behind the first words of emulate.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    if "emulate" in arguments[:3]:
        end = min(end, arguments.index("emulate") + 2)
    for place, word in enumerate(arguments[:end]):
        if word == "--lang":
            value = arguments[place + 1] if place + 1 < len(arguments) else ""
            return arguments[:place] + arguments[place + 2 :], value
        if word.startswith("--lang="):
            return arguments[:place] + arguments[place + 1 :], word[len("--lang=") :]
    return arguments, None


def _end_in_order() -> list[int]:
    """Let SIGTERM and SIGHUP end a run as Ctrl-C does, so that nothing half-written stays.

    Gives the list that will hold the signal's number.
    """
    import signal

    asked: list[int] = []

    def end(number: int, _: object) -> None:
        if not asked:  # a second one does not stop the first one's clearing up
            asked.append(number)
            raise KeyboardInterrupt

    for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP; nohup lets us ignore it
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, end)
    return asked
