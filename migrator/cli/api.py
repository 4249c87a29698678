"""``npumigrate api``: what is known of a name."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.cli.ending import DONE, WRONG_USE, print_json, say
from migrator.cli.own_parser import Parser
from migrator.command_options import options_of
from migrator.language import _, english_for_programs

_NOTHING_KNOWN = 1
ABOUT = """Show how a torch API, a torch.cuda name or an environment variable works on NPUs.

Short names work (nn.Linear, F.relu, Tensor.mode); * and ? are wildcards.
torch_npu's own APIs, operators (aten::add) and environment variables are
known, too.

Exit status: 0 found; 1 not found; 2 usage error.
"""


def parser() -> Parser:
    """What reads the arguments of ``npumigrate api``."""
    return Parser("api", ABOUT, options_of("api"))


def api(arguments: Sequence[str]) -> int:
    """Run ``npumigrate api`` with its arguments and give its exit code; without any it shows its help."""
    if not arguments:
        parser().print_help()
        return WRONG_USE
    given = parser().parse_args(list(arguments))
    from dataclasses import asdict

    from migrator.api_support import answer
    from migrator.api_support.versions import newest, resolve
    from migrator.cli.next_commands import say_next

    chosen = newest() if given.version is None else resolve(given.version)
    at = None if given.version is None else chosen
    if given.json:
        english_for_programs()
    pattern = any(sign in given.name for sign in "*?[")
    names = answer.matching(given.name) if pattern else [given.name]
    answers = [found for found in map(answer.look_up, names) if found]
    nearest = [] if answers or pattern else answer.nearest(given.name)
    if given.json:
        found = [asdict(each) for each in answers]
        for record, each in zip(found, answers):
            if at:
                here = answer.at_version(each, at)
                record["at"] = {**here, "own": here["own"] and asdict(here["own"])}
        torch = at.text if at else None
        print_json({"schema": 1, "asked": given.name, "torch": torch, "answers": found, "nearest": nearest})
    elif not answers:
        hint = _("; did you mean {nearest}?", nearest=_(" or ").join(nearest[:3])) if nearest else ""
        say(_("{name} is unknown{hint}", name=given.name, hint=hint))
        say_next(*(f"npumigrate api {name}" for name in nearest[:1]))
    else:
        from migrator.report import api_text, colors

        lines = api_text.table(answers, at) if pattern else api_text.page(answers[0], at)
        text = "\n".join(lines)
        print(text if colors.wanted() else colors.plain(text), flush=True)
        say_next(f"npumigrate api {answers[0].name}" if pattern else "npumigrate lint")
    return DONE if answers else _NOTHING_KNOWN
