"""How a command ends: its exit codes (docs/command.md), and its own lines on the standard error."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Callable, NoReturn, TextIO

from migrator.files.errors import reason
from migrator.language import UserError, _

DONE = 0
PROBLEMS = 1
WRONG_USE = 2
CANNOT_RUN = 126
NO_PROGRAM = 127
INTERRUPTED = 130


def say(line: str) -> None:
    """Print a line of npumigrate's own."""
    with suppress(OSError):  # nobody can read it, and the exit code says it too
        note(f"npumigrate: {line}")


def note(line: str) -> None:
    """Print a line for people beside the output: on the standard error."""
    print(wrapped(line, stream=sys.stderr), file=sys.stderr)


def wrapped(text: str, indent: str = "", stream: TextIO | None = None) -> str:
    """A line for people, on a terminal as many as its width asks for; names and paths stay whole.

    ``stream`` is where it is printed, the standard output without one. In a pipe or a file it stays whole.
    """
    if not (stream or sys.stdout).isatty():
        return indent + text
    import shutil

    from migrator.wrapping import wrap

    return "\n".join(wrap(text, shutil.get_terminal_size().columns, indent, indent or "  "))


def fail(line: str, code: int = WRONG_USE) -> int:
    """Say in one line what is wrong; gives the exit code for it."""
    say(line)
    return code


def stop(line: str, code: int = WRONG_USE, /, **values: object) -> NoReturn:
    """End the command with a line, its fields ``values`` (of an OSError the reason), and an exit code."""
    said = {name: reason(each) if isinstance(each, OSError) else each for name, each in values.items()}
    stopped = UserError(line, **said)
    stopped.code = code
    raise stopped


def check_folder(given: str | os.PathLike[str] | None, option: str = "") -> None:
    """Stop, with an option's name before the path, where a folder is given and cannot be read."""
    try:
        if given is not None:
            os.scandir(given).close()
    except OSError as error:
        stop("{option}{given}: {why}", option=option, given=given, why=error)


def ended(work: Callable[[], int]) -> int:
    """Do a command's work and give its exit code, whatever ends it early."""
    try:
        return work()
    except UserError as error:
        return fail(str(error), error.code)
    except SystemExit as error:  # argparse's, behind --help, and typer's, where nobody reads what it prints
        return error.code if isinstance(error.code, int) else DONE
    except KeyboardInterrupt:
        return fail(_("interrupted"), INTERRUPTED)
    except BrokenPipeError:
        forget_stdout()
        return DONE
    except Exception as error:
        if isinstance(error, OSError):
            with suppress(OSError):
                return lost_output(error)
        if isinstance(error, MemoryError):
            return fail(_("out of memory: use fewer processes (--jobs 1) or raise the limit"))
        from traceback import format_exception

        from migrator.report.log_file import keep_details

        trace = "".join(format_exception(type(error), error, error.__traceback__))
        what = " ".join(f"{type(error).__name__}: {error}".split())
        return fail(_("internal error: {what}; {trace}", what=what, trace=keep_details(trace)))


def print_json(content: object) -> None:
    """Print what other programs asked for."""
    import json

    print(json.dumps(content, indent=2), flush=True)


def forget_stdout() -> None:
    """The reader, such as head, has seen enough: what Python still flushes at exit must not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def lost_output(error: OSError, what: str = "the output") -> int:
    """Tell that what is printed cannot be written, as on a full disk; gives the exit code for that.

    Raises an error again that is about something else.
    """
    if error.filename is not None or error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
        raise error
    forget_stdout()
    return fail(_("cannot write {what}: {error}", what=what, error=reason(error)))


@contextmanager
def summary_printed() -> Iterator[None]:
    """Print what a run comes to; its result and its reports are there also where that cannot be written."""
    try:
        yield
    except (BrokenPipeError, SystemExit):  # rich turns the one into the other
        forget_stdout()
    except OSError as error:
        lost_output(error, _("the summary"))


def escape_unprintable() -> None:
    """A name or a sign that the terminal cannot show is no reason to stop."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
