"""What people read: every text has its translation, with the glossary's words; programs get English."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import yaml

from migrator import language
from migrator.cli.main import COMMANDS
from migrator.cli.start import split_language
from migrator.command_options import every_option
from migrator.wrapping import columns, wrap

ROOT = Path(__file__).parents[1]
# What stands in no message, and what is said instead (docs/glossary.md).
AVOIDED = {
    r"(?<!network )\bcards?\b(?! of this machine| are )": "NPU",
    r"\b(?:has|have) not\b(?! \w+ed\b)": "… is not supported on NPUs",
    r"\bNPU forms?\b|\bcounterparts?\b": "equivalent",
    r"\bfused forms?\b": "fused alternative",
    r"\b(?:a|no) texts?\b(?! cursor)": "string",
    r"\bleft as (?:it was|they were|it is)\b": "left unchanged",
    r"\bwrong use\b": "usage error",
    r"\bis no (?:folder|file|number|string)\b": "is not a …",
    r"\b(?:is|are) told\b|\bis said\b|what becomes of|\bof ours\b": "the subject first, a noun",
    r"\bmends?\b": "fix",
    r"\black(?:s|ing)?\b": "is missing",
    r"\bhardly\b|every some|\bfor ever\b|in silence|without a word": "rarely, every N, silently",
    r"\bno Python (?!files)": "is not a …",
    r"(?<!in[ -])\bplaces?\b(?! of)": "location, line",
    r"\bin vain\b|\bnot suffice\b|\bnot to be [a-z]+ed\b": "without success, too little, failed",
}


# What stands in no page, either.
AVOIDED_IN_PAGES = re.compile(
    r"\b(?:(?:is|are) told|is said|of ours|what becomes of|hardly|lack(?:s|ing)?|mends?|every some)\b"
)


def test_pages_have_the_words_of_the_glossary() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    left_out = ("CHANGELOG.md", "rules.md", "glossary.md")
    wrong = []
    for page in (each for each in pages if each.name not in left_out):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.S)
        wrong += [f"{page.name}: {word}" for word in AVOIDED_IN_PAGES.findall(text)]
    assert wrong == []


def _tool():
    spec = importlib.util.spec_from_file_location("catalogue", ROOT / "tools" / "catalogue.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.texts = cache(module.texts)  # three tests ask for them
    return module


@pytest.fixture(scope="module")
def tool():
    return _tool()


def test_every_text_is_translated(tool) -> None:
    said = tool.translated()
    missing = [f"{place}: {text}" for text, place in tool.texts().items() if not said.get(text)]
    todo = "write their Chinese into reports/zh.po, after python tools/catalogue.py has made places for them"
    assert not missing, f"{len(missing)} texts have no translation: {todo}\n" + "\n".join(missing)


def test_no_translation_is_stale(tool) -> None:
    stale = sorted(set(tool.translated()) - set(tool.texts()))
    assert not stale, "these texts are no more: python tools/catalogue.py takes them out\n" + "\n".join(stale)


def test_chinese_and_latin_letters_have_a_blank_between_them(tool) -> None:
    touching = re.compile(r"[\u4e00-\u9fff][A-Za-z0-9`]|[A-Za-z0-9`][\u4e00-\u9fff]")
    assert [said for said in tool.translated().values() if touching.search(said)] == []
    for page in [ROOT / "README.zh.md", *(ROOT / "docs").rglob("*.zh.md")]:
        text = page.read_text(encoding="utf-8")
        text = re.sub(r"`([^`\n]*)`", lambda code: code[0] if code[1].isascii() else "", text)
        assert touching.findall(text) == [], page.name


def test_translations_have_the_fields_of_their_texts(tool) -> None:
    def fields(text: str) -> list[str]:
        return sorted(re.findall(r"\{[^{}]*\}", text))

    odd = [text for text, said in tool.translated().items() if fields(text) != fields(said)]
    assert odd == []


def test_messages_have_the_words_of_the_glossary(tool) -> None:
    found = [
        f"{place}: {text}\n    say: {instead}"
        for text, place in tool.texts().items()
        for pattern, instead in AVOIDED.items()
        if re.search(pattern, re.sub(r"\{[^{}]*\}", "{}", text))
    ]
    assert not found, "\n".join(found)


def test_texts_of_findings_are_short() -> None:
    """Summaries and messages are read in lists: they have at most 25 words."""
    rules = [rule for pack in PACKS for rule in yaml.safe_load(pack.read_text(encoding="utf-8"))]
    said = [
        (rule["code"], text)
        for rule in rules
        for each in (rule, *rule.get("cases", ()))
        for text in (each.get("summary"), each.get("message"))
        if text
    ]
    assert len(said) > 500
    assert [(code, text) for code, text in said if len(text.split()) > 25] == []


def test_an_error_speaks_the_language_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "_catalogue", {"no {thing} here": "这里没有 {thing}"})
    assert str(language.MessageError("no {thing} here", thing="{x}")) == "这里没有 {x}"
    assert str(language.MessageError("as it is: {x}")) == "as it is: {x}"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "en_US.UTF-8", "NPUMIGRATE_LANG": "zh"}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
    ],
)
def test_the_first_variable_that_says_something_decides(monkeypatch, environment, expected) -> None:
    for name in ("NPUMIGRATE_LANG", "LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert language.language() == expected


def test_what_follows_belongs_to_another_program() -> None:
    assert split_language(["--lang", "zh", "lint", "."]) == (["lint", "."], "zh")
    assert split_language(["lint", "--lang=en", "."]) == (["lint", "."], "en")
    assert split_language(["verify", "out", "--", "train.py", "--lang", "de"])[1] is None
    assert split_language(["emulate", "python", "train.py", "--lang", "de"])[1] is None
    assert split_language(["lint", "--lang"]) == (["lint"], "")


def _run(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return _python("-m", "migrator", *arguments, folder=folder, **environment)


def _python(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    # What this process speaks, an earlier test may have chosen.
    without = {name: value for name, value in os.environ.items() if name != language.VARIABLE}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**without, "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8", **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=900,
    )


@pytest.fixture
def program(tmp_path) -> Path:
    (tmp_path / "train.py").write_text("import torch\n\nx = torch.zeros(2).cuda()\n")
    return tmp_path


def test_lint_in_chinese_and_json_for_programs(program) -> None:
    chinese = _run("lint", "--lang", "zh", "--no-cache", "train.py", folder=program)
    assert "请用 .npu() 替换 .cuda()" in chinese.stdout
    assert "发现 2 个问题" in chinese.stdout
    machine = _run("lint", "--no-cache", "--output-format", "json", folder=program, NPUMIGRATE_LANG="zh")
    assert "use .npu() instead of .cuda()" in [item["message"] for item in json.loads(machine.stdout)]


def test_advice_on_all_gpus_of_a_service_is_in_chinese(tmp_path) -> None:
    asked = "devices: [{driver: nvidia, count: all, capabilities: [gpu]}]"
    compose = f"services:\n  a:\n    image: x\n    deploy: {{resources: {{reservations: {{{asked}}}}}}}\n"
    (tmp_path / "compose.yaml").write_text(compose)
    found = _run("lint", "--lang", "zh", "--hw", "A2", "--no-cache", ".", folder=tmp_path).stdout
    assert "/dev/davinci0" in found
    assert "All GPUs" not in found


def test_what_is_changed_is_the_same_in_each_language(tmp_path) -> None:
    text = "import torch\n\n\ndef save(model, path):\n    torch.save(model, path)\n"
    text += "\n\ndef load(path):\n    model = torch.load(path, 'cpu')\n    return model\n"
    (tmp_path / "train.py").write_text(text)
    command = (".", "-v", "2.6", "--diff")
    english, chinese = (_run("--lang", each, *command, folder=tmp_path).stdout for each in ("en", "zh"))
    assert "weights_only=False" in english
    assert chinese == english


PACKS = sorted({*(ROOT / "rules").glob("*.yaml"), *(ROOT / "rules" / "opt_in").glob("*.yaml")})


@pytest.mark.parametrize(
    "packs", [PACKS[::8], pytest.param(PACKS, marks=pytest.mark.thorough)], ids=["some", "all"]
)
def test_the_examples_of_rules_hold_in_chinese(packs: list[Path], tmp_path: Path) -> None:
    program = "import sys; from migrator.cli.main import run\n"
    program += "print([pack for pack in sys.argv[1:] if run(['rule', '--check', pack]) != 0])"
    checked = _python("-c", program, *map(str, packs), folder=tmp_path, NPUMIGRATE_LANG="zh")
    assert checked.stdout.splitlines()[-1:] == ["[]"], checked.stdout + checked.stderr


def test_what_rules_advise_for_single_names_is_translated(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n\nmodel = torch.compile(torch.nn.Linear(1, 1))\n")
    (tmp_path / "requirements.txt").write_text("torch\ngpustat\n")
    said = _run("lint", "--no-cache", "-v", "1.11", ".", folder=tmp_path, NPUMIGRATE_LANG="zh").stdout
    assert "模型保持不变：eager 模式的计算结果相同" in said
    assert "gpustat 通过 NVML 查询" in said


def test_cached_findings_keep_their_language(program) -> None:
    first = _run("lint", "--lang", "zh", "train.py", folder=program).stdout
    assert "use .npu() instead of .cuda()" in _run("lint", "train.py", folder=program).stdout
    assert _run("lint", "--lang", "zh", "train.py", folder=program).stdout == first


def test_a_report_in_chinese(program) -> None:
    result = _run("--lang", "zh", "-i", ".", "-o", "out", "-v", "2.6", "--format", "html,md", folder=program)
    assert result.returncode == 0, result.stderr
    reports = next((program / "out").glob("*/migration_report"))
    page = (reports / "index.html").read_text(encoding="utf-8")
    assert '<html lang="zh-CN">' in page
    assert "迁移报告" in page
    assert "按规则统计的修改" in (reports / "report.md").read_text(encoding="utf-8")
    head, *rows = (reports / "change_list.csv").read_text(encoding="utf-8-sig").splitlines()
    assert head.startswith("File,Start Line")
    assert any("请用 .npu() 替换 .cuda()" in row for row in rows)


MORE = """\
import os
import apex
import torch
import torch.distributed as dist

def default(device="cuda"):
    return torch.ones(2, device=device).double()

def backend_name():
    return "nccl"

os.environ["CUDA_VISIBLE_DEVICES"] = "0"
print(torch.cuda._sleep(5), torch.det(default()), torch.linalg.inv(default()))
try:
    import flash_attn
except ImportError:
    flash_attn = None
if torch.version.cuda:
    print(torch.cuda.memory_summary())
"""
COMPARING = """\
import sys
from pathlib import Path
from migrator.report.views.run import read_run
from migrator.report.views.said_again import said_again
english, chinese = (read_run(Path(each)) for each in sys.argv[1:])
again = english.said_again()
for column in ("message", "advice"):
    for before, found, wanted in zip(*(run.places[column] for run in (english, again, chinese))):
        print(found == wanted, before, found, wanted, sep="\\t")
long = "left unchanged; " * 5000
print(again.marks() == english.marks() and said_again(long) == long)
"""


def test_a_chinese_report_of_an_english_run(tmp_path) -> None:
    """Its texts are those of a Chinese run, and rows keep their marks; what is too long for a text stays."""
    shutil.copytree(ROOT / "samples" / "resnet50_imagenet", tmp_path / "project")
    (tmp_path / "project" / "more.py").write_text(MORE)
    for name in ("en", "zh"):
        done = _run("migrate", "project", "-o", name, "-v", "2.6", folder=tmp_path, NPUMIGRATE_LANG=name)
        assert done.returncode == 0, done.stderr
    results = ("en/project_msft", "zh/project_msft")
    compared = _python("-c", COMPARING, *results, folder=tmp_path, NPUMIGRATE_LANG="zh")
    *rows, marks = compared.stdout.splitlines()
    wrong = [row for row in rows if not row.startswith("True")]
    assert (len(rows) > 60, wrong, marks) == (True, [], "True"), compared.stderr
    report = _run("report", "en/project_msft", folder=tmp_path, NPUMIGRATE_LANG="zh")
    page = tmp_path / report.stdout.splitlines()[0]
    assert "请用 .npu() 替换 .cuda()" in page.read_text(encoding="utf-8")


def test_help_and_errors_in_chinese(program) -> None:
    answer = _run("migrate", "--help", folder=program, LANG="zh_CN.UTF-8")
    assert "用法：npumigrate migrate" in answer.stdout
    assert "将项目迁移到昇腾 NPU" in answer.stdout
    assert max(map(columns, answer.stdout.splitlines())) <= 80
    assert "没有选项：--foo" in _run("--lang", "zh", "migrate", "--foo", folder=program).stderr
    wrong = _run("--lang", "fr", "lint", folder=program)
    assert (wrong.returncode, wrong.stderr) == (2, "npumigrate: --lang fr: choose from en, zh\n")


WRONG = (
    "migrate --nope",
    "lint --nope",
    "-i",
    "lint --config",
    "migrate --mode=magic",
    "lint --color=magic",
    "lint --severity=magic",
    "-i p -o q --hw=magic",
    "-i p -o q -j many",
    "lint -j many",
    "emulate --devices 99 -- x",
    "verify x --shrink=magic",
    "compare a",
    "mcp a b",
    "launch magic",
    "magic",
    "completion magic",
    "-v 2.6",
    "fleet a -o b --do=magic",
    "rule magic",
)
EACH = """
import contextlib, io, json, sys
from migrator.cli import start
for line in sys.argv[1:]:
    sys.argv = ["npumigrate", "--lang", "zh", *line.split()]
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        code = start.run()
    print(json.dumps([line, code, errors.getvalue()]))
"""


def test_no_library_says_in_english_what_is_wrong(program) -> None:
    answers = _python("-c", EACH, *WRONG, folder=program).stdout.splitlines()
    assert len(answers) == len(WRONG)
    values = {word for option in every_option() for word in option.choices}
    values |= {*COMMANDS, "npumigrate", "help", "bash", "zsh", "fish", "output", "input"}
    for line, code, errors in map(json.loads, answers):
        assert (code, errors.count("\n")) == (2, 1), line
        words = {word for word in re.findall(r"(?<![-\w.])[A-Za-z]{3,}", errors) if not word.isupper()}
        assert words - values <= set(re.split(r"[\s=]", line)), errors


MISSING = (
    "migrate nowhere -o out",
    "analyze nowhere -o out",
    "lint nowhere",
    "lint --config nowhere train.py",
    "lint --baseline nowhere train.py",
    "lint --rules nowhere train.py",
    "verify nowhere -- true",
    "profile nowhere",
    "report nowhere",
    "explain nowhere",
    "explain --run nowhere",
    "fleet nowhere -o out",
    "rule --check nowhere",
    "doctor --root nowhere",
    "launch k8s --from nowhere",
    "mcp nowhere",
)


def test_a_missing_path_has_one_wording(program) -> None:
    answers = list(map(json.loads, _python("-c", EACH, *MISSING, folder=program).stdout.splitlines()))
    assert [line for line, _, _ in answers] == list(MISSING)
    said = re.compile(r"npumigrate: (?:--\w+: )?(?:\S*/)?nowhere(?:: |：)没有该文件或文件夹\n")
    odd = [(line, code, errors) for line, code, errors in answers if code != 2 or not said.fullmatch(errors)]
    assert odd == []


def test_english_reads_no_catalogue(program) -> None:
    code = (
        "import sys, builtins; sys.argv = ['npumigrate', 'lint', '--no-cache', 'train.py']; found = []\n"
        "sys.addaudithook(lambda event, args: found.append(str(args[0])) if event == 'open' else None)\n"
        "from migrator.cli.start import run; run()\n"
        "assert not [name for name in found if name.endswith('zh.po')]\n"
        "assert 'migrator.wrapping' not in sys.modules\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=program,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr


def test_wide_characters_take_two_columns() -> None:
    lines = wrap("用 torch_npu.npu_fusion_attention 替换 {api}，并检查结果。", 24, "  ", "    ")
    assert lines == ["  用", "    torch_npu.npu_fusion_attention", "    替换 {api}，并检查结", "    果。"]
    assert wrap("one two three", 7) == ["one two", "three"]
