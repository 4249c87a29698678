"""``npumigrate rule``: what a rule is about."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from migrator.cli.ending import PROBLEMS, stop
from migrator.cli.next_commands import say_next, shell_word
from migrator.cli.options import Given
from migrator.cli.progress import ProgressBar
from migrator.language import N_, _, english_for_programs

if TYPE_CHECKING:
    from migrator.matchers.packs import Rule


def rule(given: Given) -> None:
    """Explain rules: reason, before and after, versions, references. Or test a rule pack.

    Exit status: 0 done; 1 an example of the pack fails; 2 usage error: no such rule, or an invalid
    pack.
    """
    from migrator.matchers.packs import load_all
    from migrator.report.rule_text import as_json, as_markdown, tables_as_markdown

    everything, packs, output_format = given.everything, tuple(given.packs or ()), given.output_format
    if given.check is not None:
        if given.codes or everything:
            stop("--check tests a whole pack: do not name rules with it")
        _check(given.check, packs)
        return
    if bool(given.codes) == everything:
        stop("no rule given: name one or more, such as NPU101, or use --all")
    if output_format == "json":
        english_for_programs()
    known = load_all(packs)
    chosen = known if everything else [_find(code, known) for code in given.codes or ()]
    if output_format == "json":
        typer.echo(as_json(chosen), nl=False)
        return
    tables = [tables_as_markdown(chosen, "#{anchor}")] if everything else []
    text = "\n".join([*tables, *(as_markdown(one, 3 if everything else 1) for one in chosen)])
    if output_format == "text" and sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text))
    else:
        typer.echo(text, nl=False)
    if not everything:
        say_next(f"npumigrate lint --select {','.join(one.code for one in chosen)}")


def _check(pack: Path, others: tuple[str, ...]) -> None:
    """Run the examples of a pack, and print what is expected and what came of those that fail."""
    from migrator.core.examples import failure
    from migrator.data_folders import data_folder
    from migrator.matchers.packs import load

    is_read = data_folder("rules").resolve() in pack.resolve().parents or str(pack) in others
    packs = others if is_read else (*others, str(pack))
    failed = []
    rules = load(pack, checked=True)
    examples = [(rule, number) for rule in rules for number in range(len(rule.examples))]
    with ProgressBar(shown=True) as bar:
        for done, (rule, number) in enumerate(examples, 1):
            wrong = failure(rule, number, packs)
            if wrong is not None:
                failed.append((rule, number, wrong))
            bar(_("testing examples"), done, len(examples))
    for rule, number, wrong in failed:
        typer.echo(
            _("{origin}: example {number} of {code}", origin=rule.origin, number=number, code=rule.code)
        )
        for heading, text in (("expected", wrong.expected), ("came", wrong.came)):
            typer.echo(f"  {heading}:\n" + textwrap.indent(text.rstrip("\n"), "    "))
    typer.echo(_("examples: {examples}, failed: {failed}", examples=len(examples), failed=len(failed)))
    if failed:
        raise typer.Exit(PROBLEMS)
    say_next(f"npumigrate lint --rules {shell_word(str(pack))}")


def _find(code: str, known: list[Rule]) -> Rule:
    found = [one for one in known if code.upper() == one.code or code == one.name]
    if not found:
        from difflib import get_close_matches

        names = [name for one in known for name in (one.code, one.name)]
        near = [one.code for one in known if one.code.startswith(code.upper())][:3]
        near = near or get_close_matches(code.upper(), names, n=3) or get_close_matches(code, names, n=3)
        hint = N_("; did you mean {near}?") if near else N_("; npumigrate rule --all lists them")
        stop("unknown rule {wanted!r}{hint}", wanted=code, hint=_(hint, near=", ".join(near)))
    return found[0]
