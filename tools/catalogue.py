"""Writes the catalogues again: a place for each text that is new, without those that are gone.

``python tools/catalogue.py`` keeps every translation and prints how many are missing; with ``--missing`` also
which ones. ``--add FILE`` takes translations from a file with lines of JSON, ``["English", "中文"]``.
"""

from __future__ import annotations

import ast
import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment
from jinja2.ext import extract_from_ast

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from migrator.explain.table import entries as explained  # noqa: E402
from migrator.language import entries  # noqa: E402
from migrator.matchers.packs import load  # noqa: E402
from migrator.names.tree import called_name  # noqa: E402

# The catalogue of all texts, and that of the table of errors, which only explain reads.
CATALOGUE, OF_ERRORS = ROOT / "reports" / "zh.po", ROOT / "api_db" / "errors" / "zh.po"
_HEAD = """\
# What npumigrate says, in Chinese. python tools/catalogue.py writes a place for each new text.
msgid ""
msgstr "Language: zh_CN\\nContent-Type: text/plain; charset=UTF-8\\n"
"""
_ERRORS = "api_db/errors/"  # how their places begin
# What says texts in code, and which of its arguments they are: ``_``, errors of ``MessageError``, notes.
_MARKS = {
    "_": (0,),
    "N_": (0,),
    "ngettext": (0, 1),
    **dict.fromkeys(("ManifestError", "MessageError", "MpiLineError", "RankTableError"), (0,)),
    "UnknownVersion": (0,),
    **dict.fromkeys(("CannotWrite", "ConfigError", "NoFolderError", "NotObtainedError"), (0,)),
    **dict.fromkeys(("ResultExists", "SourceError", "Unreadable"), (0,)),
    "stop": (0,),
    **dict.fromkeys(("PlaceError", "note", "remark"), (0, 1)),
}
# What typer and argparse say themselves of a wrong command line: both ask gettext for it, see cli/start.py.
_OF_LIBRARIES = (
    "Missing command.",
    "unrecognized arguments: %s",
    "expected one argument",
    "expected at least one argument",
    "invalid choice: %(value)r (choose from %(choices)s)",
    "argument %(argument_name)s: %(message)s",
    "ignored explicit argument %r",
)
# Where an answer is from, as the tables of api_db say.
_SOURCES = (
    *("torch wheels", "torch_npu wheels", "torch_npu sources", "torch_npu documents", "package index"),
    *("torch_npu operator lists", "documents (published list)", "(published list)"),
)
# What is between the parts of a list: Chinese has signs of its own for it.
_SIGNS = (
    ", ",
    "; ",
    "{said}.",
    "{message}: {advice}",
    "{message}. {advice}",
    "{title}:",
    "{summary}. {severity}, {fix}{versions}.",
)
# Fields of a rule that people read.
_OF_RULES = ("summary", "message", "advice", "why")
# Of the tables of api_db, the columns that people read.
_OF_TABLES = {
    "env_vars.csv": ("advice",),
    "library_defaults.csv": ("advice",),
    "program_options.csv": ("advice",),
    "limits.csv": ("meaning",),
    "operators.csv": ("operator", "equivalents", "differs", "limits"),
    "by_hand/npu_names.csv": ("advice",),
    "npu_variables.csv": ("meaning", "note"),
}
# Of the files of reports/, the keys whose values people read; None for all.
_OF_REPORTS: dict[str, tuple[str, ...] | None] = {
    "page/texts.yaml": None,
    "api_words.json": None,
    "columns.yaml": ("name",),
    "compare.yaml": ("name", "why", "advice"),
    "consistency.yaml": ("message", "advice"),
    "distributed/texts.yaml": ("message", "advice"),
    "doctor.yaml": ("what", "do"),
    "doctor_variables.yaml": ("what",),
    "insight.yaml": None,
    "launcher/k8s.yaml": ("about",),
    "profile.yaml": ("what", "do", "gpu", "parts"),
    "rules.yaml": ("head", "fixes", "words", "groups"),
    "waiting.yaml": ("name", "advice"),
}


def texts() -> dict[str, str]:
    """Every text that people read, with the first place where it stands."""
    found: dict[str, str] = {}
    parts = (_of_code(), _of_rules(), _of_reports(), _of_tables(), _of_help(), _of_errors())
    for text, place in chain.from_iterable(parts):
        if re.search(r"[^\W\d_]", re.sub(r"\{[^{}]*\}", "", text)) or text in _SIGNS:
            found.setdefault(text, place)
    return found


def _of_code() -> Iterator[tuple[str, str]]:
    for file in sorted((ROOT / "migrator").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            given = node.args if isinstance(node, ast.Call) else []
            for argument in (
                given[place] for place in _MARKS.get(called_name(node), ()) if place < len(given)
            ):
                if isinstance(argument, ast.Constant):
                    yield str(argument.value), file.relative_to(ROOT).as_posix()


def _of_rules() -> Iterator[tuple[str, str]]:
    for file in sorted((ROOT / "rules").rglob("*.yaml")):
        for rule in _yaml(file):
            for key in _OF_RULES:
                for each in (rule, *rule.get("cases", ())):
                    if each.get(key):
                        yield " ".join(each[key].split()), rule["code"]
    for file in sorted((ROOT / "rules").rglob("*.yaml")):
        for loaded in load(file) if file.parent.name != "runtime" else ():
            yield from ((text, loaded.code) for text in _said(loaded.options) if " " in text)


def _said(options: Any) -> Iterator[str]:
    """The texts in options that people read, as their dataclasses declare it."""
    if isinstance(options, Mapping):
        for each in options.values():
            yield from _said(each)
    for field in fields(options) if is_dataclass(options) else ():
        value = getattr(options, field.name)
        if not field.metadata.get("said"):
            yield from _said(value)
        else:
            yield from [value] if isinstance(value, str) else value.values()


def _of_reports() -> Iterator[tuple[str, str]]:
    for name in ("compare.html.j2", "fleet.html.j2"):
        page = (ROOT / "reports" / "page" / name).read_text(encoding="utf-8")
        for _line, _function, said in extract_from_ast(Environment().parse(page), ["_"]):
            text = said if isinstance(said, str) else (said or ("",))[0]  # a tuple: more arguments
            yield text or "", f"reports/page/{name}"
    for name, keys in _OF_REPORTS.items():
        for text in _leaves(_yaml(ROOT / "reports" / name), keys):
            yield text, f"reports/{name}"


def _leaves(value: Any, keys: tuple[str, ...] | None) -> Iterator[str]:
    """The texts below a value of YAML, or those below some keys in it."""
    if isinstance(value, str):
        if keys is None and any(letter.isalpha() for letter in value):
            yield value.strip()
    elif isinstance(value, Mapping):
        for key, each in value.items():
            if key != "source":
                yield from _leaves(each, None if keys and key in keys else keys)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each, keys)


def _of_tables() -> Iterator[tuple[str, str]]:
    for name, columns in _OF_TABLES.items():
        with (ROOT / "api_db" / name).open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                for column in columns:
                    if row[column]:
                        yield row[column], f"api_db/{name}"


def _of_errors() -> Iterator[tuple[str, str]]:
    for entry in explained():
        for text in (entry.name, entry.cause, *entry.do, *entry.collect):
            yield text, f"{_ERRORS}{entry.code}"


def _of_help() -> Iterator[tuple[str, str]]:
    """The help of all commands, which is put into the language of the run where it is shown."""
    from typer.main import get_command

    from migrator.cli import api, lint, main
    from migrator.cli.help import paragraphs
    from migrator.command_options import every_option

    yield from ((text, "migrator/cli/main.py") for text in _OF_LIBRARIES)
    yield from ((text, "migrator/report/api_text.py") for text in _SOURCES)

    own = [name for name in main.COMMANDS if name not in main.OWN_PARSER]
    abouts = {name: _abouts(get_command(main.parser(name))) for name in own}
    abouts |= {"lint": [lint.ABOUT], "api": [api.ABOUT], "--help": [main.ABOUT, *main.OWN_PARSER.values()]}
    for name, about in abouts.items():
        for text in chain.from_iterable(map(paragraphs, about)):
            yield text, f"help of {name}"
    for option in every_option():
        for text in filter(None, (option.group, option.help)):
            yield text, f"help of {option.commands[0]}"


def _abouts(command: Any) -> list[str]:
    """What a command of typer's, and each below it, says of itself."""
    below = getattr(command, "commands", {}).values()
    return [command.help or "", *chain.from_iterable(map(_abouts, below))]


def _yaml(file: Path) -> Any:
    return yaml.load(file.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def translated() -> dict[str, str]:
    """The translations that there are, in all catalogues."""
    files = [file.read_text(encoding="utf-8") for file in (CATALOGUE, OF_ERRORS) if file.exists()]
    return {text: said for file in files for text, said in entries(file).items()}


def written(found: Mapping[str, str], said: Mapping[str, str]) -> str:
    """The catalogue with these texts and these translations."""
    parts = [_HEAD]
    for text, place in found.items():
        pair = (json.dumps(each, ensure_ascii=False) for each in (text, said.get(text, "")))
        parts.append(f"#: {place}\nmsgid {next(pair)}\nmsgstr {next(pair)}\n")
    return "\n".join(parts)


def _main(arguments: Iterable[str]) -> None:
    found, said = texts(), translated()
    if "--add" in (arguments := list(arguments)):
        for line in Path(arguments[arguments.index("--add") + 1]).read_text(encoding="utf-8").splitlines():
            text, chinese = json.loads(line)
            said[text] = chinese
    for file in (CATALOGUE, OF_ERRORS):
        here = {
            text: place for text, place in found.items() if place.startswith(_ERRORS) == (file == OF_ERRORS)
        }
        file.write_text(written(here, said), encoding="utf-8")
    missing = [text for text in found if not said.get(text)]
    if "--missing" in arguments:
        for text in missing:
            print(f"{found[text]}: {text}")
    print(f"{len(found)} texts, {len(missing)} without a translation")


if __name__ == "__main__":
    _main(sys.argv[1:])
