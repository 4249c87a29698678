"""``npumigrate api``: what is known of a name."""

from __future__ import annotations

import os
from typing import Any, Optional

import typer

from migrator.cli.ending import say, stop

_NOTHING_KNOWN = 1


def api(
    name: str = typer.Argument(..., metavar="NAME", help="torch.cuda.Event, Tensor.mode, 'torch.fft.*', …"),
    version: Optional[str] = typer.Option(
        None, "--version", "-v", metavar="VERSION", help="Only at this torch version: 2.6, 1.11.0, …"
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON, for other programs."),
) -> None:
    """Show what an NPU makes of a torch API, a torch.cuda name, or a variable.

    Names may lack their beginning (nn.Linear, F.relu, Tensor.mode); with * or ? they stand
    for all that fit. torch_npu's own APIs, operators (aten::add) and environment variables
    are known, too.

    Exit status: 0 something is known; 1 nothing is; 2 wrong use.
    """
    from migrator.api_support import answer
    from migrator.api_support.versions import UnknownVersion, newest, resolve

    try:
        chosen = newest() if version is None else resolve(version)
    except (UnknownVersion, FileNotFoundError) as error:
        stop(str(error))
    at = None if version is None else chosen
    pattern = any(sign in name for sign in "*?[")
    names = answer.matching(name) if pattern else [name]
    answers = [found for found in map(answer.look_up, names) if found]
    nearest = [] if answers or pattern else answer.nearest(name)
    if as_json:
        _print_json(name, answers, nearest, at)
    elif not answers:
        hint = f"; is it {' or '.join(nearest[:3])}?" if nearest else ""
        say(f"nothing is known of {name}{hint}")
    else:
        from migrator.cli import api_text

        lines = api_text.table(answers, at) if pattern else api_text.page(answers[0], at)
        typer.echo("\n".join(lines), color=False if os.environ.get("NO_COLOR") else None)
    if not answers:
        raise typer.Exit(_NOTHING_KNOWN)


def _print_json(asked: str, answers: list[Any], nearest: list[str], at: Any) -> None:
    import json
    from dataclasses import asdict

    from migrator.api_support.answer import at_version

    found = []
    for answer in answers:
        record = asdict(answer)
        if at is not None:
            record["at"] = asdict(at_version(answer, at))
        found.append(record)
    content = {"asked": asked, "torch": at.text if at else None, "answers": found, "nearest": nearest}
    typer.echo(json.dumps(content, indent=2))
