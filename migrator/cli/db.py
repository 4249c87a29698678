"""``npumigrate db``: what the API tables have of torch versions and releases."""

from __future__ import annotations

import os

import typer

from migrator.cli.ending import PROBLEMS, print_json, say, wrapped
from migrator.cli.next_commands import say_next
from migrator.cli.options import Given, described
from migrator.language import N_, _

_ABOUT = {
    "name": N_("NPU equivalents of CUDA names"),
    "own": N_("torch_npu's own APIs"),
    "kernel": N_("Operators with an NPU kernel"),
    "document": N_("Documents"),
    "torch": N_("Names of torch"),
}

# From one release of torch to the next some hundred names come and go.
_MOST = 60

db = typer.Typer(
    help="Query the API support tables: compare versions, list releases.",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


@db.command()
@described("db diff")
def diff(given: Given) -> None:
    """Show the differences between two torch versions: names, kernels, documents.

    A change marked with ? compares different editions of the documents: the text may have changed, not
    the support.
    """
    from dataclasses import asdict

    from migrator.api_support.difference import between, caveats, pair

    first, second = pair((given.older, given.newer))
    changes = between(first, second)
    notes = caveats(first, second)
    if given.as_json:
        content = {
            "schema": 1,
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
            counts = _("{gained} new, {lost} removed, {here} changed", gained=gained, lost=lost, here=changed)
        else:
            counts = _("no change")
        lines += ["", typer.style(_("{message}: {advice}", message=_(heading), advice=counts), bold=True)]
        for change in here[:_MOST] if about == "torch" else here:
            sign, color = ("+", "green") if not change.before else ("-", "red")
            if change.before and change.after:
                sign, color = "~", "yellow"
            words = " → ".join(filter(None, (change.before, change.after)))
            shown = "" if about in ("own", "kernel", "torch") else f"  {words}"
            shown += "" if change.certain else "  ?"
            lines.append(typer.style(f"  {sign} {change.name}", fg=color) + shown)
        if about == "torch" and len(here) > _MOST:
            lines.append(_("  … and {here} more (--json lists all)", here=len(here) - _MOST))
    typer.echo("\n".join(lines), color=False if os.environ.get("NO_COLOR") else None)
    say_next(f"npumigrate lint -v {second.text}")


@db.command()
@described("db releases")
def releases(given: Given) -> None:
    """Show which releases fit together: torch_npu, torch, Python, torchvision, torchaudio, CANN, apex.

    Unknown values are -. Exit status: 0 done; 1 no torch_npu is known for that torch; 2 usage error.
    """
    from dataclasses import asdict

    from migrator.api_support.companions import of_torch, release_sets

    found = of_torch(given.version) if given.version else release_sets()
    if not found:
        said = N_("no release of torch_npu is known for torch {version} (npumigrate db releases shows all)")
        say(_(said, version=given.version))
        raise typer.Exit(PROBLEMS)
    if given.as_json:
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
