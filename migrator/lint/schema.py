"""The JSON schema of the configuration, for editors: ``python -m migrator.lint.schema`` writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from migrator.lint.options import KEYS, Key

SCHEMA = Path(__file__).parents[2] / "docs" / "npumigrate.schema.json"

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
        "properties": {name: _property(key) for name, key in KEYS.items()},
        "additionalProperties": False,
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _property(key: Key) -> dict[str, Any]:
    if key.kind == "switch":
        shape: dict[str, Any] = {"type": "boolean"}
    elif key.kind in ("text", "path"):
        shape = {"type": "string"}
    elif key.kind == "choice":
        shape = {"enum": list(key.choices)}
    elif key.kind == "codes":
        shape = _CODES
    elif key.kind == "ignores":
        shape = {"type": "object", "additionalProperties": _CODES}
    elif key.kind == "overrides":
        inner = {name: _property(other) for name, other in KEYS.items() if other.override}
        item = {
            "type": "object",
            "properties": {"paths": {**_TEXTS, "minItems": 1}, **inner},
            "required": ["paths"],
            "additionalProperties": False,
        }
        shape = {"type": "array", "items": item}
    else:
        shape = _TEXTS
    return {"description": key.help, **shape}


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
