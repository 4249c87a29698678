"""Nothing that a migration writes is absent from the torch that it is for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrator.api_support.torch_names import of_version
from migrator.api_support.versions import in_range, known
from migrator.core.examples import migrated
from migrator.data_folders import data_folder
from migrator.matchers.packs import Rule
from tests.checking import every_rule

EXAMPLES = [
    pytest.param(rule, example, id=f"{rule.code}-{number}")
    for rule in every_rule()
    for number, example in enumerate(rule.examples)
    if "after" in example and "file" not in example
]
TEMPLATES = sorted(path for path in data_folder("reports").rglob("*.py"))


def used(text: str) -> set[tuple[str, str]]:
    """The qualified names of torch in a program, each alone and with each keyword of its calls."""
    tree = ast.parse(text)
    bound: dict[str, str] = {}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
                found.add((alias.name, ""))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                found.add((f"{node.module}.{alias.name}", ""))
    for node in ast.walk(tree):
        name = qualified(node, bound)
        found.add((name, ""))
        if isinstance(node, ast.Call):
            name = qualified(node.func, bound)
            found.update((name, word.arg) for word in node.keywords if word.arg)
    return {(name, word) for name, word in found if name.startswith(("torch.", "torchvision."))}


def qualified(node: ast.AST, bound: dict[str, str]) -> str:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in bound:
        return ""
    return ".".join([bound[node.id], *reversed(parts)])


def lacking(uses: set[tuple[str, str]], version: str) -> Iterator[str]:
    names = of_version(version)
    for name, word in sorted(uses):
        if names.absent(name):
            yield f"torch {version}: {name} is {names.absence(name)}"
        elif word and word in names.lacking(name):
            yield f"torch {version}: {name} has no {word}"


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_what_a_rule_writes_is_in_the_torch_that_it_is_for(rule: Rule, example: dict[str, str]) -> None:
    wrong = []
    for version in known():
        if not in_range(rule.versions, version.tuple):
            continue
        # What the table says is cheap to ask; what the migration writes at that version decides.
        if list(lacking(used(example["after"]) - used(example["before"]), version.text)):
            result = migrated(example["before"], version.text, rule.opt_in)
            if result.text is not None:
                wrong += lacking(used(result.text) - used(example["before"]), version.text)
    assert wrong == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_what_a_template_writes_is_in_every_torch_that_gets_it(template: Path) -> None:
    text = template.read_text(encoding="utf-8")
    versions = [version.text for version in known() if in_range(gets(template), version.tuple)]
    assert [line for version in versions for line in lacking(used(text), version)] == []


def gets(template: Path) -> str:
    """The versions whose results have a template in them; empty for all."""
    if template.parent.name == "ascend_function":
        (versions,) = {rule.versions for rule in every_rule() if rule.kind == "equivalent-function"}
        return versions
    return {"shared_device.py": ">=2.6", "ascend_amp.py": ">=2.1"}.get(template.name, "")


def test_what_is_absent_is_seen() -> None:
    text = "import torch\nfrom torch import load as read\nread('f', weights_only=True)\ntorch.compile(1)\n"
    assert list(lacking(used(text), "1.11.0")) == [
        "torch 1.11.0: torch.compile is first in torch 2.0",
        "torch 1.11.0: torch.load has no weights_only",
    ]
