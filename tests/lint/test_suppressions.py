"""Comments that suppress findings."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

from migrator.lint import suppressions

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("comment", "suppressed"),
    [
        ("# noqa", True),
        ("# NOQA : NPU101", True),
        ("#noqa:NPU101", True),
        ("# noqa: E501, NPU101", True),
        ("# noqa: E501 NPU101", True),
        ("# noqa: npu1", True),
        ("# type: ignore # noqa: NPU101", True),
        ("# npumigrate: ignore[NPU101]", True),
        ("# npumigrate: ignore[NPU111, NPU1]", True),
        ("# npumigrate: ignore", True),
        ("# noqa: E501", False),
        ("# noqa: because of this", False),
        ("# noqa-not", False),
        ("# npumigrate: ignore[]", False),
        ("# npumigrate: ignore[NPU111]", False),
        ("# npumigrate: ignored", False),
    ],
)
def test_comments(lint, tmp_path, comment: str, suppressed: bool) -> None:
    (tmp_path / "a.py").write_text(f"import torch\ntorch.cuda.init()  {comment}\n")
    answer = lint("--select=NPU101", "--output-format=json")
    assert (answer.places() == []) == suppressed
    assert lint("--select=NPU101", "--ignore-noqa").code == 1


def test_what_looks_like_a_comment_is_none(lint, tmp_path) -> None:
    (tmp_path / "a.py").write_text(
        "import torch\ntorch.cuda.init('# noqa')\nprint('''\n# npumigrate: skip-file\n''')\n"
    )
    assert lint("--select=NPU101", "--output-format=json").places() == [("NPU101", 2, 1)]


def test_skip_file(lint, tmp_path) -> None:
    (tmp_path / "a.py").write_text("import torch\ntorch.cuda.init()\n# npumigrate: skip-file\n")
    assert lint().out == "All checks passed!\n"


def test_statements_of_several_lines(lint, tmp_path) -> None:
    (tmp_path / "a.py").write_text(
        "import torch\n"
        "a = torch.cuda.init() + '''\n"
        "'''  # noqa: NPU101\n"
        "b = torch.cuda.init() + \\\n"
        "    1  # noqa: NPU101\n"
        "c = (\n"
        "    torch.cuda.init()\n"
        ")  # noqa: NPU101\n"
        "d = torch.device(\n"
        "    'cuda',\n"
        ")\n"
    )
    found = lint("--select=NPU101", "--output-format=json")
    assert found.places() == [("NPU101", 7, 5)]
    assert found.json()[0]["noqa_row"] == 7


def test_unused_ones_are_reported_and_removed(lint, tmp_path) -> None:
    file = tmp_path / "a.py"
    file.write_text(
        "import torch\n"
        "a = 1  # noqa: NPU101\n"
        "b = 1  # noqa: E501, NPU101, NPU111\n"
        "c = 1  # npumigrate: ignore[NPU101] # noqa: E501\n"
        "d = 1  # noqa\n"
        "e = 1  # noqa: NPU101 it was needed once\n"
    )
    answer = lint("--output-format=json")
    assert [(code, row) for code, row, _ in answer.places()] == [("NPU990", row) for row in (2, 3, 4, 6)]
    assert lint("--select=NPU101").code == 0
    assert lint("--ignore=NPU101", "--output-format=json").places() == [("NPU990", 3, 8)]
    assert lint("--fix").code == 0
    assert file.read_text() == (
        "import torch\n"
        "a = 1\n"
        "b = 1  # noqa: E501\n"
        "c = 1  # noqa: E501\n"
        "d = 1  # noqa\n"
        "e = 1  # it was needed once\n"
    )


@pytest.mark.parametrize(
    ("name", "text", "left"),
    [
        ("requirements.txt", "tqdm  # noqa: NPU453\n#  noqa: NPU450\nnumpy", "tqdm\n\nnumpy"),
        (
            "pyproject.toml",
            'x = 1 # noqa: NPU450\r\ny = ""  ## noqa: NPU450 why\r\n',
            'x = 1\r\ny = ""  # why\r\n',
        ),
        ("setup.cfg", "[a]\n; noqa: NPU450, E501\nb = c\n", "[a]\n# noqa: E501\nb = c\n"),
        ("run.sh", "echo a # noqa: NPU450\n", "echo a\n"),
    ],
)
def test_unused_ones_of_other_files_go_as_a_whole(lint, tmp_path, name: str, text: str, left: str) -> None:
    file = tmp_path / name
    file.write_bytes(text.encode())
    lint("--fix")
    assert file.read_bytes().decode() == left


def test_add_noqa(lint, tmp_path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(
        b"import torch\r\n"
        b"torch.cuda.init() ; torch.zeros(1).cuda()\r\n"
        b"torch.cuda.init()  # noqa: E501\r\n"
        b"a = torch.cuda.init() + '''\r\n'''\r\n"
    )
    answer = lint("--add-noqa")
    assert (answer.code, answer.out) == (0, "Added 4 noqa comments.\n")
    assert file.read_bytes() == (
        b"import torch  # noqa: NPU901\r\n"
        b"torch.cuda.init() ; torch.zeros(1).cuda()  # noqa: NPU101, NPU111\r\n"
        b"torch.cuda.init()  # noqa: E501, NPU101\r\n"
        b"a = torch.cuda.init() + '''\r\n'''  # noqa: NPU101\r\n"
    )
    assert lint().out == "All checks passed!\n"


def test_a_suppressed_finding_is_not_fixed(lint, tmp_path) -> None:
    file = tmp_path / "a.py"
    file.write_text("import torch\ntorch.cuda.init()  # noqa: NPU101\ntorch.cuda.init()\n")
    assert lint("--fix").code == 0
    assert file.read_text() == (
        "import torch\nimport torch_npu\ntorch.cuda.init()  # noqa: NPU101\ntorch.npu.init()\n"
    )


@pytest.mark.parametrize("file", sorted((ROOT / "migrator").rglob("*.py")), ids=lambda file: file.stem)
def test_comments_and_rows_are_those_of_the_tokenizer(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    found = [match.group() for match in re.finditer(suppressions._TOKEN, text)]
    assert [token for token in found if token.startswith("#")] == comments


def test_an_import_that_nobody_needs_is_not_asked_for(lint, tmp_path) -> None:
    file = tmp_path / "a.py"
    file.write_text("import torch\ntorch.cuda.init()  # noqa: NPU101\n")
    assert lint().code == 0
    assert lint("--ignore-noqa").code == 1
    file.write_text("import torch  # noqa: NPU901\ntorch.cuda.init()  # noqa: NPU101\n")
    assert lint().code == 0  # and the comment is not called unused


def test_an_import_is_as_safe_as_what_needs_it(lint, tmp_path) -> None:
    file = tmp_path / "a.py"
    text = 'import torch\nDEVICES = ["cuda"]\ntorch.cuda.init()'
    file.write_text(f"{text}  # noqa: NPU101\n")
    safety = {item["code"]: item["fix"]["applicability"] for item in lint("--output-format=json").json()}
    assert safety == {"NPU901": "unsafe", "NPU122": "unsafe"}
    file.write_text(text + "\n")
    assert lint("--output-format=json").json()[0]["fix"]["applicability"] == "safe"
