"""The server as an editor sees it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lsprotocol import types

from migrator.this_copy import install_command

if TYPE_CHECKING:
    from conftest import Editor

TRAIN = """\
import torch

x = torch.zeros(2).cuda()
torch.cuda.synchronize()
"""
VERSION = {"version": "2.6"}
KINDS = types.PositionEncodingKind


def codes(found: list[types.Diagnostic]) -> list[str]:
    return [str(item.code) for item in found]


def span(line: int, start: int, end: int) -> types.Range:
    return types.Range(types.Position(line, start), types.Position(line, end))


def lint(folder: Path, *arguments: str) -> str:
    """What ``npumigrate lint`` prints in a folder."""
    command = [sys.executable, "-m", "migrator", "lint", "-v", "2.6", "-n", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


# -- findings -------------------------------------------------------------------


def test_findings_are_those_of_lint(editor: Editor, tmp_path: Path) -> None:
    result = editor.start(VERSION)
    assert result.server_info
    assert result.server_info.name == "npumigrate"
    found = editor.open("train.py", TRAIN)
    (tmp_path / "train.py").write_text(TRAIN)
    expected = json.loads(lint(tmp_path, "--output-format", "json", "train.py"))
    assert [(item.code, item.range.start.line + 1, item.range.start.character + 1) for item in found] == [
        (item["code"], item["location"]["row"], item["location"]["column"]) for item in expected
    ]
    synchronize = found[-1]
    assert synchronize.range == span(3, 0, 22)
    assert synchronize.severity is types.DiagnosticSeverity.Information  # a safe fix corrects it
    assert synchronize.source == "npumigrate"
    assert editor.leave() == 0


def test_findings_follow_what_one_types(editor: Editor) -> None:
    assert codes(editor.open("train.py", "import torch\n")) == []
    found = editor.change("train.py", "torch.cuda.synchronize()\n", span(1, 0, 0))
    assert "NPU101" in codes(found)
    assert codes(editor.change("train.py", "npu", span(1, 6, 10))) == []
    assert "NPU111" in codes(editor.change("train.py", "x = torch.zeros(1).cuda()\n"))  # the whole text


def test_what_nobody_can_fix_is_as_grave_as_in_lint(editor: Editor) -> None:
    found = editor.open("train.py", "import torch\ntorch.cuda.temperature()\n")
    assert [item.severity for item in found] == [types.DiagnosticSeverity.Error]


def test_an_editor_that_asks_for_findings_gets_no_others(editor: Editor) -> None:
    editor.start(VERSION, pulls=True)
    editor.open_only("train.py", "from tools import Net\nnet = Net().cuda()\n")
    assert codes(editor.pull("train.py")) == ["NPU901", "NPU111"]
    assert codes(editor.pull("other.py")) == []  # was never opened
    before = editor.refreshed
    editor.open_only("tools.py", "class Net:\n    def cuda(self):\n        return 12\n")
    editor.pull("tools.py")
    editor.wait(lambda: editor.refreshed > before)  # its neighbours may have other findings now
    assert codes(editor.pull("train.py")) == ["NPU111"]  # it may be that of Net: nothing changes
    editor.type("train.py", "import torch\ntorch.cuda.synchronize()\n")
    assert codes(editor.pull("train.py")) == ["NPU901", "NPU101"]
    assert not editor.was_published("train.py")
    assert editor.leave() == 0


def test_only_the_last_of_many_keys_is_told(editor: Editor) -> None:
    editor.open("train.py", "import torch\n")
    line = "torch.cuda.synchronize()"
    for column, key in enumerate(line):
        editor.type("train.py", key, span(1, column, column))
    assert "NPU101" in codes(editor.found("train.py"))


def test_broken_syntax_keeps_the_findings_around(editor: Editor) -> None:
    editor.open("train.py", TRAIN)
    found = editor.change("train.py", "y = (\n", span(3, 0, 0))
    assert codes(found) == ["NPU901", "NPU111", "NPU101", "NPU999"]
    assert found[2].range == span(4, 0, 22)  # one line further down
    assert editor.actions("train.py", 4) == []
    found = editor.change("train.py", ")", span(3, 5, 5))
    assert codes(found) == ["NPU901", "NPU111", "NPU101"]
    assert editor.actions("train.py", 4)


def test_a_file_that_is_broken_from_the_start_has_one_finding(editor: Editor) -> None:
    assert codes(editor.open("train.py", "import torch\ntorch.cuda.(((\n)]\ndef\n")) == ["NPU999"]


@pytest.mark.parametrize(
    ("offered", "chosen", "two_signs", "one_sign"),
    [
        (None, KINDS.Utf16, 3, 1),
        ([KINDS.Utf16], KINDS.Utf16, 3, 1),
        ([KINDS.Utf8], KINDS.Utf8, 6, 2),
        ([KINDS.Utf32], KINDS.Utf32, 2, 1),
    ],
)
def test_columns_are_in_the_units_agreed_on(
    editor: Editor, offered: list[KINDS] | None, chosen: KINDS, two_signs: int, one_sign: int
) -> None:
    result = editor.start(VERSION, encodings=offered)
    assert result.capabilities.position_encoding == chosen
    found = editor.open("train.py", 'import torch\ns = "é😀"; torch.cuda.synchronize()\n')
    start = len('s = ""; ') + two_signs
    assert found[-1].range == span(1, start, start + 22)
    found = editor.change("train.py", "", span(1, 5, 5 + one_sign))  # the é goes
    assert found[-1].range.start.character == start - one_sign


def test_a_form_feed_ends_no_line(editor: Editor) -> None:
    text = "import torch\n\f\n# \x85 \u2028\ntorch.cuda.synchronize()\n"
    assert editor.open("train.py", text)[-1].range == span(3, 0, 22)
    found = editor.change("train.py", "x = 1\n", span(3, 0, 0))
    assert found[-1].range == span(4, 0, 22)


def test_closing_a_document_takes_its_findings_away(editor: Editor) -> None:
    assert editor.open("train.py", TRAIN)
    editor.close("train.py")
    editor.wait(lambda: editor.published("train.py") == [])


def test_a_document_without_a_file(editor: Editor) -> None:
    assert "NPU101" in codes(editor.open("untitled:Untitled-1", TRAIN))


def test_other_files_of_the_workspace_are_known(editor: Editor, tmp_path: Path) -> None:
    user = "from tools import Toolkit\nprint(Toolkit().cuda())\nx.cuda()\n"
    (tmp_path / "tools.py").write_text("class Toolkit:\n    def cuda(self):\n        return 12\n")
    (tmp_path / "user.py").write_text(user)
    alone = json.loads(lint(tmp_path, "--output-format", "json", "user.py"))
    together = json.loads(lint(tmp_path, "--output-format", "json", "."))
    assert [item["code"] for item in alone] != [item["code"] for item in together]
    editor.open("user.py", user)
    editor.wait(lambda: editor.published("user.py") == [item["code"] for item in together])
    editor.open("tools.py", "class Toolkit:\n    pass\n")  # as it will be saved
    editor.wait(lambda: editor.published("user.py") == [item["code"] for item in alone])
    editor.close("tools.py")  # and was not
    editor.wait(lambda: editor.published("user.py") == [item["code"] for item in together])
    (tmp_path / "tools.py").unlink()
    editor.file_changed("tools.py")
    editor.wait(lambda: editor.published("user.py") == [item["code"] for item in alone])


def test_folders_come_and_go(editor: Editor, tmp_path: Path) -> None:
    user = "from tools import Toolkit\nprint(Toolkit().cuda())\n"
    (tmp_path / "tools.py").write_text("class Toolkit:\n    def cuda(self):\n        return 12\n")
    editor.start(VERSION, folders=False)
    alone = codes(editor.open("user.py", user))
    editor.folders_changed([tmp_path], [])
    editor.wait(lambda: editor.published("user.py") != alone)
    editor.folders_changed([], [tmp_path])
    editor.wait(lambda: editor.published("user.py") == alone)


def test_left_out_files_have_no_findings(editor: Editor, tmp_path: Path) -> None:
    assert editor.open(".venv/lib/site-packages/torch/x.py", TRAIN) == []
    outside = (tmp_path.parent / "other" / "site-packages" / "x.py").as_uri()
    assert editor.open(outside, TRAIN) == []
    assert editor.open((tmp_path.parent / "other" / "x.py").as_uri(), TRAIN) != []


# -- actions ----------------------------------------------------------------------


def test_quick_fix(editor: Editor) -> None:
    text = 'import torch\n\ns = "😀"; torch.cuda.synchronize()\n'
    editor.open("train.py", text)
    fix, suppress, every = editor.actions("train.py", 2)
    assert fix.title == "NPU101: Replace `torch.cuda.synchronize` with `torch.npu.synchronize`"
    assert (fix.kind, fix.is_preferred) == ("quickfix", True)
    assert fix.diagnostics
    assert fix.diagnostics[0].code == "NPU101"
    assert editor.applied("train.py", fix) == (
        'import torch\nimport torch_npu\n\ns = "😀"; torch.npu.synchronize()\n'
    )
    assert suppress.title == "NPU101: Suppress on this line (noqa)"
    assert editor.applied("train.py", suppress) == text[:-1] + "  # noqa: NPU101\n"
    assert every.kind == "source.fixAll.npumigrate"


def test_a_suppressed_finding_goes(editor: Editor) -> None:
    editor.open("train.py", TRAIN)
    (suppress,) = [a for a in editor.actions("train.py", 3) if "Suppress" in a.title]
    assert "NPU101" not in codes(editor.change("train.py", editor.applied("train.py", suppress)))


def test_unsafe_fixes_are_marked(editor: Editor) -> None:
    editor.open("train.py", 'import torch\nGPU_TYPES = ["torch.cuda.FloatTensor"]\n')
    (unsafe,) = [
        action
        for action in editor.actions("train.py", 1, ["quickfix"])
        if action.edit and "Replace" in action.title
    ]
    assert unsafe.title.endswith(" (unsafe: review it)")
    assert unsafe.is_preferred is False
    assert "torch.npu.FloatTensor" in editor.applied("train.py", unsafe)
    assert editor.actions("train.py", 1, ["source.fixAll"]) == []


@pytest.mark.parametrize("resolve", [True, False])
def test_fixing_all_gives_what_lint_fix_gives(editor: Editor, tmp_path: Path, resolve: bool) -> None:
    text = TRAIN + 'y = "😀"; z = torch.device("cuda")\ntorch.cuda.empty_cache()  # noqa: NPU999\n'
    (tmp_path / "train.py").write_text(text)
    lint(tmp_path, "--fix", "train.py")
    fixed = (tmp_path / "train.py").read_text()
    assert fixed != text
    editor.start(VERSION, resolve=resolve)
    editor.open("train.py", text)
    (action,) = editor.actions("train.py", 0, only=["source.fixAll"])
    assert (action.edit is None) is resolve
    if resolve:
        action = editor.resolve(action)
    assert editor.applied("train.py", action) == fixed


def test_actions_are_given_by_kind(editor: Editor) -> None:
    editor.open("train.py", TRAIN)
    assert {action.kind for action in editor.actions("train.py", 3, ["quickfix"])} == {"quickfix"}
    assert {a.kind for a in editor.actions("train.py", 3, ["source"])} == {"source.fixAll.npumigrate"}
    assert editor.actions("train.py", 3, ["refactor"]) == []
    assert [a.kind for a in editor.actions("train.py", 1)] == ["source.fixAll.npumigrate"]


# -- hover ------------------------------------------------------------------------


def test_hover_tells_what_an_api_is_on_npus(editor: Editor) -> None:
    text = (
        "import torch as t\nfrom torch import nn\n"
        "import torch.nn.functional as F\ny = F.relu(x)\nevent = t.cuda.Event()\n"
        "m = torch.zeros(1)\nprint(nn.Linear(1, 2), len(m))\nimport os\nos.environ['NCCL_DEBUG'] = 'INFO'\n"
    )
    editor.open("train.py", text)
    assert editor.hover("train.py", 3, 7).startswith("**torch.nn.functional.relu  at torch 2.6.0")
    event = editor.hover("train.py", 4, 17)
    assert event.startswith("**torch.cuda.Event  at torch 2.6.0")
    assert "torch.npu.Event" in event
    assert "NPU101" in event  # and why there is a finding
    assert "\x1b" not in event
    assert editor.hover("train.py", 6, 11).startswith("**torch.nn.Linear")
    assert editor.hover("train.py", 6, 25) == ""
    assert "NCCL_DEBUG" in editor.hover("train.py", 8, 14)


def test_hover_on_tensor_methods_imports_and_broken_text(editor: Editor) -> None:
    editor.open("a.py", "import torch\nfrom torch.cuda import synchronize as s\ntorch.zeros(2).mode()\ns()\n")
    assert editor.hover("a.py", 2, 16).startswith("**torch.Tensor.mode")
    assert editor.hover("a.py", 1, 28).startswith("**torch.cuda.synchronize")
    assert editor.hover("a.py", 1, 38).startswith("**torch.cuda.synchronize")
    assert editor.hover("a.py", 3, 0).startswith("**torch.cuda.synchronize")
    assert editor.hover("a.py", 99, 5) == ""
    editor.open("b.py", "import torch\nx = (torch.cuda.Event\n")
    assert editor.hover("b.py", 1, 18).startswith("**torch.cuda.Event")


def test_hover_is_for_the_version_that_is_configured(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "npumigrate.toml").write_text('version = "2.1"\n')
    editor.start()
    editor.open("train.py", TRAIN)
    assert "at torch 2.1.0" in editor.hover("train.py", 3, 14)


# -- configuration ------------------------------------------------------------------


def test_configuration_files_are_read_again(editor: Editor, tmp_path: Path) -> None:
    editor.start(VERSION)
    editor.wait(lambda: editor.registered)
    assert editor.registered[0].method == "workspace/didChangeWatchedFiles"
    assert "NPU101" in codes(editor.open("train.py", TRAIN))
    (tmp_path / "npumigrate.toml").write_text('ignore = ["NPU101"]\n')
    editor.file_changed("npumigrate.toml")
    editor.wait(lambda: editor.published("train.py") == ["NPU901", "NPU111"])
    (tmp_path / "npumigrate.toml").write_text('select = ["NPU101"]\nignore = ["NPU9"]\n')
    assert codes(editor.change("train.py", "\n", span(1, 0, 0))) == ["NPU101"]  # without being told


def test_a_broken_configuration_is_told_once_and_the_findings_stay(editor: Editor, tmp_path: Path) -> None:
    found = codes(editor.open("train.py", TRAIN))
    (tmp_path / "npumigrate.toml").write_text("ignroe = []\n")
    for _ in range(2):
        editor.type("train.py", "\n", span(1, 0, 0))
        editor.hover("train.py", 0, 0)
    assert len(editor.said) == 1
    assert "unknown key 'ignroe'; did you mean 'ignore'?" in editor.said[0]
    assert editor.published("train.py") == found
    (tmp_path / "npumigrate.toml").unlink()
    assert codes(editor.change("train.py", "\n", span(1, 0, 0))) == found


def test_the_editors_settings(editor: Editor) -> None:
    editor.start({"settings": {"version": "2.6", "select": ["NPU101"]}})
    assert codes(editor.open("train.py", TRAIN)) == ["NPU101"]
    editor.settings_changed({"npumigrate": {"version": "2.6", "ignore": ["NPU1"]}})
    editor.wait(lambda: editor.published("train.py") != ["NPU101"])
    assert "NPU101" not in editor.published("train.py")
    editor.settings_changed({"npumigrate": {"version": "2.13", "hw": "950DT", "select": ["NPU501"]}})
    editor.type("train.py", "import torch\ntorch.nn.Linear(2, 2)\n")
    editor.wait(lambda: editor.published("train.py") == ["NPU501"])
    editor.settings_changed({"npumigrate": {"version": "2.6", "ignore": ["NPU1"]}})
    editor.type("train.py", TRAIN)
    editor.settings_changed({"python": {}})
    editor.settings_changed(None)
    assert "NPU101" not in codes(editor.found("train.py"))


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"vresion": "2.6"}, "the editor's settings for npumigrate: unknown key 'vresion'; did you mean"),
        ({"version": 2.6}, "version is 2.6 and must be a string in quotes"),
        ({"version": "9.9"}, "9.9"),
        ({"select": ["NPU10X"]}, "NPU10X"),
    ],
)
def test_wrong_settings_are_one_line(editor: Editor, options: dict[str, object], line: str) -> None:
    editor.start(options)
    editor.open_only("train.py", TRAIN)
    editor.wait(lambda: editor.said)
    editor.hover("train.py", 0, 0)
    (said,) = editor.said
    assert said.startswith("npumigrate: ")
    assert line in said
    assert "\n" not in said


def test_a_baseline_is_heeded(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    lint(tmp_path, "--write-baseline", "known.json", "train.py")
    (tmp_path / "npumigrate.toml").write_text('baseline = "known.json"\n')
    assert editor.open("train.py", TRAIN) == []
    assert codes(editor.change("train.py", "torch.cuda.empty_cache()\n", span(4, 0, 0))) == ["NPU101"]


def test_a_new_baseline_is_heeded(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    lint(tmp_path, "--write-baseline", "known.json", "train.py")
    (tmp_path / "npumigrate.toml").write_text('baseline = "known.json"\n')
    (tmp_path / "more.py").write_text(TRAIN + "torch.cuda.empty_cache()\n")
    found = editor.open("more.py", TRAIN + "torch.cuda.empty_cache()\n")
    assert len(found) == 4
    editor.wait(lambda: len(editor.registered) == 2)
    assert editor.registered[1].register_options == {"watchers": [{"globPattern": "**/known.json"}]}
    lint(tmp_path, "--write-baseline", "known.json", ".")
    editor.file_changed("known.json")
    editor.wait(lambda: editor.published("more.py") == [])
    (tmp_path / "known.json").write_text("{}")
    editor.type("more.py", "\n", span(1, 0, 0))  # seen without being told
    editor.wait(lambda: editor.said)
    assert "known.json: not a baseline" in editor.said[0]


# -- trouble -----------------------------------------------------------------------


def test_nonsense_does_not_end_it(editor: Editor) -> None:
    for text in ("\0", "\ud800", "(" * 5000, "x = " + "1+" * 20000 + "torch.cuda.x", "\r\r\n\n\f"):
        editor.open("odd.py", text)
    for body in (b"{", b"[]", b'{"jsonrpc": "2.0", "id": 7, "method": "no/such"}', b'"text"'):
        editor.send(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    editor.hover("not-open.py", 1, 1)
    editor.actions("not-open.py", 1)
    editor.close("not-open.py")
    assert "NPU101" in codes(editor.open("train.py", TRAIN))
    assert editor.leave() == 0


def test_the_exit_code_tells_whether_the_editor_said_goodbye(editor: Editor) -> None:
    editor.open("train.py", TRAIN)
    assert editor.vanish() == 1


def test_without_pygls_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "pygls").mkdir()
    (tmp_path / "pygls" / "__init__.py").write_text("raise ModuleNotFoundError(name='pygls')\n")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.argv[1:] = ['server']; " + (
        "from migrator.cli.start import run; sys.exit(run())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"npumigrate: the server needs pygls: {install_command('server')}\n"


def test_a_huge_document_keeps_nobody_waiting(editor: Editor) -> None:
    """To check it takes minutes, and the editor's patience ends sooner."""
    editor.open("train.py", TRAIN)
    editor.open_only("huge.py", "import torch\n" + "x = torch.zeros(2).cuda()\n" * 400_000)
    assert editor.hover("train.py", 3, 12).startswith("**torch.cuda.synchronize")
    assert editor.hover("huge.py", 1, 8) == ""
    assert [line for line in editor.said if "huge.py: too large to be checked while open" in line]


def test_a_configuration_that_is_broken_from_the_start_is_told_once(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "npumigrate.toml").write_text("ignroe = []\n")
    (tmp_path / "tools.py").write_text("import torch\n")
    editor.open_only("train.py", TRAIN)
    editor.wait(lambda: editor.said)
    editor.file_changed("tools.py")
    assert editor.hover("train.py", 3, 14) == ""
    assert len(editor.said) == 1
    assert "unknown key 'ignroe'" in editor.said[0]
    assert not editor.was_published("train.py")
    (tmp_path / "npumigrate.toml").unlink()
    editor.file_changed("npumigrate.toml")
    assert "NPU101" in codes(editor.found("train.py"))


def test_what_is_not_open_has_no_changes_and_no_actions(editor: Editor) -> None:
    editor.open("train.py", TRAIN)
    (every,) = editor.actions("train.py", 3, ["source"])
    editor.close("train.py")
    editor.type("train.py", "x = 1\n")  # a message that comes too late
    assert editor.resolve(every).edit is None
    assert "NPU101" in codes(editor.open("train.py", TRAIN))
