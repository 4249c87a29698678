"""``npumigrate db``: adding releases to the API tables, comparing versions, checking the tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Optional

import typer

from migrator.cli.ending import PROBLEMS, print_json, say, stop, stopping_at, wrapped
from migrator.cli.next_commands import say_next, shell_word
from migrator.cli.options import described
from migrator.command_options import Several
from migrator.language import N_, _, ngettext

if TYPE_CHECKING:
    from migrator.api_support.releases.wheels import Wheel

_ABOUT = {
    "name": "NPU equivalents of CUDA names",
    "own": "torch_npu's own APIs",
    "kernel": "Operators with an NPU kernel",
    "document": "Documents",
    "torch": "Names of torch",
}

# From one release of torch to the next some hundred names come and go.
_MOST = 60

db = typer.Typer(
    help="The tables that say which API works where: add a release, compare versions, check.",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


@db.command()
@described("db build")
def build(wheel: Several = None, version: Several = None, out: Optional[Path] = None) -> None:
    """Add releases of torch_npu, torch and torchvision to the tables, from their wheels.

    A wheel is read as an archive: nothing in it is run or unpacked. The kernels, own APIs
    and names of a torch_npu, and the names and parameters of a torch or torchvision, take
    the place of those of another release for the same torch version.

    Exit status: 0 done; 2 nothing was done: one line says why.
    """
    if not wheel and not version:
        stop("give --wheel FILE or --version RELEASE")
    import tempfile

    from migrator.api_support import tables
    from migrator.api_support.releases.add import add
    from migrator.api_support.releases.fetch import fetch
    from migrator.api_support.releases.wheels import read_wheel

    try:
        start = out if out and (out / "versions.csv").is_file() else tables.in_force()
        if out and start != out and out.exists() and any(out.iterdir()):
            stop("--out: {out} holds other files than tables", out=out)
        with tempfile.TemporaryDirectory(prefix="npumigrate-") as folder:
            wheels = [read_wheel(Path(path)) for path in wheel or ()]
            for number, release in enumerate(version or ()):
                say(_("fetching torch_npu {release}", release=release))
                place = Path(folder) / str(number)
                place.mkdir()
                wheels.append(read_wheel(fetch(release, place)))
                wheels += _torch_of(wheels[-1].torch_version, place / "torch")
        target = out or tables.writable()
        changed = add(wheels, start, target)
    except (ValueError, FileNotFoundError) as error:  # WheelError is a ValueError
        stop(str(error))
    except OSError as error:
        stop(f"{error.filename or _('the tables')}: {error.strerror}")
    for read in wheels:
        about = _("{len} names", len=sum(map(len, read.modules.values())))
        if read.operators:
            aten, custom = map(len, read.operators)
            about += _(", {aten} kernels, {custom} operators of its own", aten=aten, custom=custom)
        if read.public:
            said = N_("{facts} names, for torch {torch_version}")
            about = _(said, facts=len(read.public.facts), torch_version=read.torch_version)
        typer.echo(f"{read.package} {read.release}: {about}")
    names = ", ".join(path.relative_to(target).as_posix() for path in changed)
    done = N_("changed in {target}: {names}") if changed else N_("{target} already holds all of that")
    typer.echo(_(done, target=target, names=names))
    if out:
        typer.echo(_("to use these tables, set {variable}={out}", variable=tables.VARIABLE, out=out))
    say_next("npumigrate db verify" + (f" {shell_word(str(out))}" if out else ""))


def _torch_of(version: str, place: Path) -> list[Wheel]:
    """torch's own wheel for a torch_npu that was fetched, where there is a small one."""
    from migrator.api_support.releases.archive import WheelError
    from migrator.api_support.releases.fetch import fetch
    from migrator.api_support.releases.wheels import read_wheel

    say(_("fetching torch {version}, for its names", version=version))
    place.mkdir()
    try:
        return [read_wheel(fetch(version, place, "torch"))]
    except WheelError as error:
        say(_("{error}; give torch's wheel with --wheel", error=error))
        return []


@db.command()
@described("db diff")
def diff(older: str, newer: str, as_json: bool = False) -> None:
    """Show what differs between two torch versions: names, kernels, the documents' word.

    A change in the documents is marked with ? where the two versions' documents are of
    different editions: then it may be the document that changed.
    """
    from dataclasses import asdict

    from migrator.api_support.difference import between, caveats, pair

    with stopping_at(ValueError, FileNotFoundError):
        first, second = pair((older, newer))
    changes = between(first, second)
    notes = caveats(first, second)
    if as_json:
        content = {
            "from": {"torch": first.text, "torch_npu": first.torch_npu},
            "to": {"torch": second.text, "torch_npu": second.torch_npu},
            "notes": notes,
            "changes": [asdict(change) for change in changes],
        }
        print_json(content)
        return
    versions = [
        _("torch {v} with torch_npu {torch_npu}", v=v, torch_npu=v.torch_npu) for v in (first, second)
    ]
    lines = [*map(wrapped, (" → ".join(versions), *notes))]
    for about, heading in _ABOUT.items():
        here = [change for change in changes if change.about == about]
        gained = sum(not change.before for change in here)
        lost = sum(not change.after for change in here)
        changed = len(here) - gained - lost
        if about == "document" and not (first.documents and second.documents):
            counts = _("not compared")
        elif here:
            counts = _("{gained} new, {lost} gone, {here} changed", gained=gained, lost=lost, here=changed)
        else:
            counts = _("no change")
        lines += ["", typer.style(f"{heading}: {counts}", bold=True)]
        for change in here[:_MOST] if about == "torch" else here:
            sign, color = ("+", "green") if not change.before else ("-", "red")
            if change.before and change.after:
                sign, color = "~", "yellow"
            words = " → ".join(filter(None, (change.before, change.after)))
            shown = "" if about in ("own", "kernel", "torch") else f"  {words}"
            shown += "" if change.certain else "  ?"
            lines.append(typer.style(f"  {sign} {change.name}", fg=color) + shown)
        if about == "torch" and len(here) > _MOST:
            lines.append(_("  … and {here} more: --json has all", here=len(here) - _MOST))
    typer.echo("\n".join(lines), color=False if os.environ.get("NO_COLOR") else None)
    say_next(f"npumigrate lint -v {second.text}")


@db.command()
@described("db releases")
def releases(version: Optional[str] = None, as_json: bool = False) -> None:
    """Show which releases belong together: torch_npu, torch, Python, torchvision, torchaudio, CANN, apex.

    What is not known is -. Exit status: 0 done; 1 no torch_npu is known for that torch; 2 usage error.
    """
    from dataclasses import asdict

    from migrator.api_support.companions import of_torch, release_sets

    with stopping_at(FileNotFoundError):
        found = of_torch(version) if version else release_sets()
    if not found:
        said = N_("no release of torch_npu is known for torch {version} (npumigrate db releases shows all)")
        say(_(said, version=version))
        raise typer.Exit(PROBLEMS)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    rows = [("torch_npu", "torch", "Python", "torchvision", "torchaudio", "CANN", "apex")]
    for one in found:
        python = f"{one.python[0]}-{one.python[-1]}" if one.python else ""
        rows.append((one.torch_npu, one.torch, python, one.torchvision, one.torchaudio, one.cann, one.apex))
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        typer.echo("  ".join((cell or "-").ljust(width) for cell, width in zip(row, widths)).rstrip())
    say_next(f"npumigrate lint -v {found[-1].torch}")


@db.command()
@described("db answers")
def answers(version: Several = None, unknown: bool = False, as_json: bool = False) -> None:
    """Show how many public names of torch, torchvision and torchaudio have an answer, and from what it
    is known.

    Exit status: 0 done; 2 usage error.
    """
    from migrator.api_support.coverage import coverage
    from migrator.api_support.versions import known, resolve

    with stopping_at(ValueError, FileNotFoundError):
        wanted = [resolve(text) for text in version] if version else list(known())
    found = {}
    for one in wanted:
        held = found[one.text] = coverage(one)
        if as_json:
            continue
        typer.echo(f"torch {one.text}: {held.answered:.1%} of {held.names:,} names have an answer")
        for words in (held.verdicts, held.evidence):
            counts = ", ".join(f"{word} {count:,}" for word, count in sorted(words.items()))
            typer.echo(wrapped(counts, "  "))
        for name, reason in held.unknown if unknown else ():
            typer.echo(f"  {name}: {reason}")
    if as_json:
        print_json({text: held._asdict() for text, held in found.items()})
    elif not unknown:
        say_next("npumigrate db answers --unknown" + "".join(f" -v {one.text}" for one in wanted if version))


@db.command()
@described("db verify")
def verify(folder: Optional[Path] = None, live: Optional[bool] = None) -> None:
    """Check that the tables are consistent, and that they say what the installed torch_npu does.

    The second needs the emulator (npumigrate emulate); torch runs in a process of its own.

    Exit status: 0 no problem; 1 problems, one a line; 2 usage error.
    """
    from migrator.api_support import check, tables

    with stopping_at(FileNotFoundError):
        place = folder or tables.in_force()
    if not place.is_dir():
        stop("{place} is not a folder", place=place)
    problems = check.problems(place)
    if not problems:
        typer.echo(_("{place}: the tables are consistent", place=place))
    if folder is None and live is not False and not problems:
        problems += _compared(wanted=bool(live))
    elif folder is not None and live:
        said = N_("--live checks the tables in use: set {variable}={folder} and leave out the folder")
        stop(said, variable=tables.VARIABLE, folder=folder)
    for problem in problems:
        typer.echo(problem)
    if problems:
        say(ngettext("{n} problem", "{n} problems", len(problems)))
        raise typer.Exit(PROBLEMS)
    say_next("npumigrate db answers")


def _compared(wanted: bool) -> list[str]:
    from migrator.api_support.live import CannotCompare, differences

    try:
        found = differences(say)
    except CannotCompare as error:
        if wanted:
            stop(str(error))
        typer.echo(_("not compared with a live torch_npu: {error}", error=error))
        return []
    if not found:
        typer.echo(_("the installed torch_npu has the names and kernels listed in the tables"))
    return found
