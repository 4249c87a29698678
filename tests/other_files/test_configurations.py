"""What is read of configurations: the same settings from YAML, JSON, TOML and INI, with their places."""

from __future__ import annotations

from typing import Optional

import pytest

from migrator.core.check import check
from migrator.core.rules import rules_for
from migrator.core.settings import Settings
from migrator.files.document import document, encoded
from migrator.other_files.index import NotParsedError, Setting, TextIndex, read
from migrator.project.project import Project

YAML = """\
# Größe
train: &base
  device: &d cuda:0  # the first
  "backend": 'nccl'
other: {device: *d, <<: *base, devices: [cuda, "cuda:1"]}
text: |
  # no comment
  device: cuda
tagged: !!str cuda
---
? [a, b]
: device
"""
JSON = """\
{
  // DeepSpeed takes no such line
  "train": {"device": "cuda:0", "n": -1.5e3, "s": "a\\u0042"},
  "devices": ["cuda", true,],  /* é */
}
"""
TOML = """\
device = "cuda"  # é
[train."a.b"]
lr.value = 1.5
devices = ["cuda:0",  # one
  'cuda:1']
[[run]]
inline = { device = "cuda", n = 3 }
text = \"\"\"
device = "no"
\"\"\"
[[run]]
device = "cuda"
"""
INI = """\
[train]
; comment
device = cuda
name: 'x'
lines =
    a
    b
flag
"""

Row = tuple[str, Optional[str], Optional[str]]


def rows(index: TextIndex, kind: str = "key") -> list[Row]:
    settings = [item for item in index.content.settings if item.kind == kind and item.value is not None]
    return [(item.name, item.value, _written(index, item)) for item in settings]


def _written(index: TextIndex, setting: Setting) -> str | None:
    return index.text_of(setting.value_span) if setting.value_span else None


def test_yaml() -> None:
    index = read("a.yaml", "yaml", YAML)
    assert rows(index) == [
        ("train.device", "cuda:0", "cuda:0"),
        ("train.backend", "nccl", "nccl"),
        ("other.devices.0", "cuda", "cuda"),
        ("other.devices.1", "cuda:1", "cuda:1"),
        ("text", "# no comment\ndevice: cuda\n", None),
        ("tagged", "cuda", "cuda"),
    ]
    assert [index.text_of(span) for span in index.content.comments] == ["# Größe", "# the first"]


def test_json_with_comments() -> None:
    index = read("a.json", "json", JSON)
    assert rows(index) == [
        ("train.device", "cuda:0", "cuda:0"),
        ("train.n", "-1.5e3", "-1.5e3"),
        ("train.s", "aB", None),
        ("devices.0", "cuda", "cuda"),
        ("devices.1", "true", "true"),
    ]
    assert len(index.content.comments) == 2


def test_toml() -> None:
    index = read("a.toml", "toml", TOML)
    assert rows(index) == [
        ("device", "cuda", "cuda"),
        ("train.a.b.lr.value", "1.5", "1.5"),
        ("train.a.b.devices.0", "cuda:0", "cuda:0"),
        ("train.a.b.devices.1", "cuda:1", "cuda:1"),
        ("run.0.inline.device", "cuda", "cuda"),
        ("run.0.inline.n", "3", "3"),
        ("run.0.text", 'device = "no"\n', 'device = "no"\n'),
        ("run.1.device", "cuda", "cuda"),
    ]


def test_ini() -> None:
    index = read("a.ini", "ini", INI)
    assert rows(index) == [
        ("train.device", "cuda", "cuda"),
        ("train.name", "x", "x"),
        ("train.lines", "a\n    b", "a\n    b"),
        ("train.lines.0", "a", "a"),
        ("train.lines.1", "b", "b"),
    ]
    assert [index.text_of(span) for span in index.content.comments] == ["; comment"]


MANIFEST = """\
env:
  A_B: x
containers:
- env:
  - {name: CUDA_VISIBLE_DEVICES, value: "0"}
  environment: [NCCL_DEBUG=INFO, NCCL_P2P_DISABLE]
  command: [python, train.py]
  args: ["--device", cuda]
- command: ["bash", "-c", "python t.py --device cuda"]
- command: >
    python t.py
    --backend nccl
- args: --device cuda:1 --other
- args: ["--device", "cuda:2"]
jobs:
- run: |
    # Größe
    export CUDA_HOME=/x
    python u.py --device "cuda" \\
      --n 1
"""


def test_variables_and_commands_in_a_manifest() -> None:
    index = read("a.yaml", "yaml", MANIFEST)
    assert rows(index, "variable") == [
        ("A_B", "x", "x"),
        ("CUDA_VISIBLE_DEVICES", "0", "0"),
        ("NCCL_DEBUG", "INFO", "INFO"),
        ("CUDA_HOME", "/x", "/x"),
    ]
    assert [item.name for item in index.content.settings if item.reads] == ["NCCL_P2P_DISABLE"]
    options = [row for row in rows(index, "option") if row[0] in ("--device", "--backend", "--n")]
    assert sorted(options) == [
        ("--backend", "nccl", "nccl"),
        ("--device", "cuda", "cuda"),
        ("--device", "cuda", "cuda"),
        ("--device", "cuda", "cuda"),
        ("--device", "cuda:1", "cuda:1"),
        ("--device", "cuda:2", "cuda:2"),
        ("--n", "1", "1"),
    ]
    commands = [[word.text for word in each.words] for each in index.content.commands]
    assert ["python", "train.py", "--device", "cuda"] in commands
    owners = [
        index.content.commands[item.command].words[1].text
        for item in index.content.settings
        if item.value == "cuda" and item.command is not None
    ]
    assert sorted(map(str, owners)) == ["t.py", "train.py", "u.py"]


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.yaml", "a: 1\n{{- if .Values.gpu }}\ndevice: cuda\n", 2),
        ("a.yaml", "{% if gpu %}\ndevice: cuda\n", 1),
        ("a.yaml", "[" * 5000, 1),
        ("a.json", '{"a": 1 "b": 2}', 1),
        ("a.json", '{"a": [1}', 1),
        ("a.json", "[" * 5000, 1),
        ("a.json", '{\n"device": {{ device }}}', 2),
        ("a.toml", "a = 1\nb = [\n", 0),
        ("a.toml", "a = 1\nb = {{ x }}\n", 2),
        ("a.ini", "[a]\n{% x %}\n", 2),
    ],
)
def test_what_is_a_template_is_left_and_named(name: str, text: str, line: int) -> None:
    with pytest.raises(NotParsedError) as error:
        read(name, name[2:], text)
    if line:
        assert abs(error.value.line - line) <= 1


def test_aliases_are_not_expanded() -> None:
    text = "a0: &a0 [x, x]\n" + "".join(
        f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 10)}]\n" for number in range(1, 40)
    )
    assert len(read("a.yaml", "yaml", text).content.settings) < 500


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_only_the_value_changes(encoding: str, newline: str) -> None:
    text = "# 设备\ntrain: &a\n  device: cuda:0   # 设备 cuda\n  name: 'cuda'\n".replace("\n", newline)
    item = document(text.encode(encoding), "a.yaml")
    result = check(item, rules_for(Settings("2.6")), Project())
    assert result.text is not None
    assert encoded(item, result.text) == text.replace("cuda:0", "npu:0").encode(encoding)


def test_a_script_in_a_config_map_is_shell() -> None:
    text = "data:\n  run.sh: |\n    export CUDA_VISIBLE_DEVICES=0\n    python a.py --device cuda\n"
    index = read("a.yaml", "yaml", text)
    assert {item.name: item.value for item in index.content.settings if item.kind != "key"} == {
        "CUDA_VISIBLE_DEVICES": "0",
        "--device": "cuda",
    }


def test_fields_of_a_protobuf() -> None:
    text = 'a: "x" # b: "y"\ngroup [ { kind: KIND_GPU count: 2 } ]\n'
    index = read("config.pbtxt", "pbtxt", text)
    told = {setting.name: setting.value for setting in index.content.settings}
    assert told == {"a": "x", "kind": "KIND_GPU", "count": "2"}
