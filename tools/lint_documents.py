"""What is written of ``npumigrate lint``'s options outside of the code: ``python tools/lint_documents.py``.

The JSON schema of the configuration, for editors, and the table of options in docs/lint.md.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from migrator.command_options import Option
from migrator.lint.options import KEYS, OPTIONS

_DOCS = Path(__file__).parents[1] / "docs"
SCHEMA = _DOCS / "npumigrate.schema.json"
PAGE = _DOCS / "lint.md"
_TABLE_HEAD = "| option | key | meaning |\n| --- | --- | --- |\n"

_TEXTS = {"type": "array", "items": {"type": "string"}}
_CODES = {
    "type": "array",
    "items": {"type": "string", "pattern": "^(ALL|[A-Z]{2,8}[0-9]{0,4})$"},
    "examples": [["NPU1", "NPU201"]],
}


def schema_text() -> str:
    """The schema as it is committed."""
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "npumigrate.toml, or [tool.npumigrate] in pyproject.toml",
        "type": "object",
        "properties": {name: _property(option) for name, option in KEYS.items()},
        "additionalProperties": False,
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _property(option: Option) -> dict[str, Any]:
    shapes: dict[str, dict[str, Any]] = {
        "switch": {"type": "boolean"},
        "text": {"type": "string"},
        "path": {"type": "string"},
        "choice": {"enum": list(option.choices)},
        "codes": _CODES,
        "ignores": {"type": "object", "additionalProperties": _CODES},
        "paths": _TEXTS,
        "patterns": _TEXTS,
    }
    shape = _overrides() if option.kind == "overrides" else shapes[option.kind]
    return {"description": option.key, **shape}


def _overrides() -> dict[str, Any]:
    inner = {name: _property(option) for name, option in KEYS.items() if "paths" in option.set_by}
    item = {
        "type": "object",
        "properties": {"paths": {**_TEXTS, "minItems": 1}, **inner},
        "required": ["paths"],
        "additionalProperties": False,
    }
    return {"type": "array", "items": item}


def page_text() -> str:
    """docs/lint.md with the table of options as the code has them."""
    before, head, rest = PAGE.read_text(encoding="utf-8").partition(_TABLE_HEAD)
    return before + head + _table() + rest[rest.index("\n\n") + 1 :]


def _table() -> str:
    return "".join(
        f"| {_spelled(option)} | {f'`{option.name}`' if option.key else ''} | {_meaning(option)} |\n"
        for option in OPTIONS
    )


def _spelled(option: Option) -> str:
    """``-v``, ``--version VERSION``; nothing where the command line has no such option."""
    spelled = option.spelled.split()
    if not spelled:
        return ""
    value = option.metavar or "|".join(option.choices)
    spelled[-1] += f" {value}" if value else ""
    return ", ".join(f"`{each}`" for each in spelled).replace("|", "\\|")


def _meaning(option: Option) -> str:
    text = option.key or option.help
    return text[0].upper() + text[1:]


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
    PAGE.write_text(page_text(), encoding="utf-8")
