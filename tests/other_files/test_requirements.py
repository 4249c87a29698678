"""What is read of requirements, in files of their own, in lists of settings and in commands."""

from __future__ import annotations

import pytest

from migrator.core.rules import rules_for
from migrator.core.settings import Settings
from migrator.other_files.index import TextIndex, read
from migrator.other_files.requirements import requirements_of
from migrator.project.project import Project
from tests.checking import migrate_text

FILE = """\
# what is installed
torch>=1.7  # for now
Torch_Vision[a] ==0.16.0+cu118 ; python_version < "3.10"
--extra-index-url https://download.pytorch.org/whl/cu118
-e git+https://github.com/NVIDIA/apex@master#egg=apex
git+https://github.com/openai/CLIP.git
flash-attn == 2.5 \\
    --hash=sha256:abc
torch @ https://download.pytorch.org/whl/torch-2.0.0-cp39.whl
this is prose
-r base.txt
numpy"""


def listed(index: TextIndex) -> list[tuple[str, str, str]]:
    return [(item.name, item.specifier, index.text_of(item.span)) for item in requirements_of(index)]


def test_a_file_of_pip() -> None:
    index = read("requirements.txt", "requirements", FILE)
    items = list(requirements_of(index))
    assert [(item.name, item.specifier) for item in items] == [
        ("torch", ">=1.7"),
        ("torch-vision", "==0.16.0+cu118"),
        ("apex", ""),
        ("clip", ""),
        ("flash-attn", "== 2.5"),
        ("torch", ""),
        ("numpy", ""),
    ]
    assert [index.text_of(item.specifier_span) for item in items] == [item.specifier for item in items]
    assert [item.name for item in items if item.address] == ["apex", "clip", "torch"]
    assert [item.name for item in items if item.locked] == ["flash-attn"]
    assert items[1].marker == 'python_version < "3.10"'
    assert items[0].line is not None
    assert index.text_of(items[0].line) == "torch>=1.7  # for now\n"
    options = {item.name: item.value for item in index.content.settings}
    assert options["--extra-index-url"] == "https://download.pytorch.org/whl/cu118"
    assert [index.text_of(span) for span in index.content.comments] == ["# what is installed", "# for now"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('pip install "torch>=2" tqdm -r more.txt', [("torch", ">=2", '"torch>=2"'), ("tqdm", "", "tqdm")]),
        ("python -m pip install -U torch==2.1.0 -f x", [("torch", "==2.1.0", "torch==2.1.0")]),
        ("conda install -y -c pytorch pytorch=1.12", [("pytorch", "=1.12", "pytorch=1.12")]),
        ("pip3 install --no-deps ./torch $TORCH", []),
        ("echo pip; uninstall torch", []),
        ("pip uninstall torch", []),
    ],
)
def test_commands(line: str, found: list[tuple[str, str, str]]) -> None:
    assert listed(read("a.sh", "shell", line + "\n")) == found


DOCKERFILE = """\
ARG CUDA=12.1.0
FROM nvidia/cuda:${CUDA}-devel AS base
ENV NVIDIA_VISIBLE_DEVICES=all \\
    CUDA_HOME="/usr/local/cuda"
ENV NCCL_DEBUG INFO
RUN apt-get update && \\
    # torch
    pip install torch==2.1.0 "torchvision>=0.16"
RUN <<EOF
export CUDA_VISIBLE_DEVICES=0
EOF
CMD ["python", "train.py", "--device", "cuda"]
"""


def test_a_dockerfile() -> None:
    index = read("Dockerfile", "dockerfile", DOCKERFILE)
    assert [(item.kind, item.name, item.value) for item in index.content.settings] == [
        ("variable", "CUDA", "12.1.0"),
        ("key", "FROM", "nvidia/cuda:${CUDA}-devel"),
        ("variable", "NVIDIA_VISIBLE_DEVICES", "all"),
        ("variable", "CUDA_HOME", "/usr/local/cuda"),
        ("variable", "NCCL_DEBUG", "INFO"),
        ("variable", "CUDA_VISIBLE_DEVICES", "0"),
        ("option", "--device", "cuda"),
    ]
    spans = [(item.value, item.value_span) for item in index.content.settings]
    assert all(span and index.text_of(span) == value for value, span in spans)
    commands = [[word.text for word in command.words] for command in index.content.commands]
    assert commands == [
        ["apt-get", "update"],
        ["pip", "install", "torch==2.1.0", "torchvision>=0.16"],
        ["python", "train.py", "--device", "cuda"],
    ]
    assert listed(index) == [
        ("torch", "==2.1.0", "torch==2.1.0"),
        ("torchvision", ">=0.16", '"torchvision>=0.16"'),
    ]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_joined_line_has_its_places(newline: str) -> None:
    index = read("requirements.txt", "requirements", newline.join(["torch \\", "  ==2.1.0", "tqdm"]))
    items = list(requirements_of(index))
    assert [(item.name, index.text_of(item.specifier_span)) for item in items] == [
        ("torch", "==2.1.0"),
        ("tqdm", ""),
    ]


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        (
            "environment.yml",
            "dependencies:\n  - numpy\n  - pip:\n    - flash-attn\n    - xformers  # fast\nname: a\n",
            "dependencies:\n  - numpy\nname: a\n",
        ),
        (
            "environment.yml",
            "dependencies:\n  - pip:\n    - flash-attn\n    - numpy\n",
            "dependencies:\n  - pip:\n    - numpy\n",
        ),
        (
            "environment.yml",
            "dependencies:\n- pip:\n  - -f https://download.pytorch.org/whl/cu118\n  - flash-attn\n",
            "dependencies:\n- pip:\n  - -f https://download.pytorch.org/whl/cpu\n",
        ),
        (
            "Pipfile",
            '[packages]\ntorch = {version = "==2.1.0+cu118", index = "t"}\n'
            'xformers = "*"\nspconv-cu118 = "*"\n',
            '[packages]\ntorch = {version = "==2.6.0", index = "t"}\n'
            'torch-npu = "==2.6.0.post5"\nspconv-cu118 = "*"\n',
        ),
        (
            "pyproject.toml",
            "[project]\ndependencies = [\n  \"torch>=2.1; os_name != 'nt'\",\n"
            "  \"torch<2; os_name == 'nt'\",\n]\n",
            "[project]\ndependencies = [\n  \"torch>=2.1; os_name != 'nt'\",\n"
            "  \"torch_npu==2.6.0.* ; os_name != 'nt'\",\n  \"torch<2; os_name == 'nt'\",\n]\n",
        ),
        (
            "pyproject.toml",
            '[project]\ndependencies = [\n  "torch>=2.1"\n]\n',
            '[project]\ndependencies = [\n  "torch>=2.1",\n  "torch_npu==2.6.0.*"\n]\n',
        ),
        # torch_npu is not in torch's index.
        (
            "Dockerfile",
            "RUN pip3 install torch --index-url https://download.pytorch.org/whl/cu118\n",
            "RUN pip3 install torch==2.6.0 --index-url https://download.pytorch.org/whl/cpu"
            " && pip3 install torch_npu==2.6.0.post5\n",
        ),
        (
            "Dockerfile",
            'RUN ["pip", "install", "torch"]\n',
            'RUN ["pip", "install", "torch==2.6.0", "torch_npu==2.6.0.post5"]\n',
        ),
        (
            "a.sh",
            'pip install torch --index-url "https://download.pytorch.org/whl/cu$CU" | tee log\n',
            'pip install torch==2.6.0 --index-url "https://download.pytorch.org/whl/cu$CU"'
            " && pip install torch_npu==2.6.0.post5 | tee log\n",
        ),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies]\ntorch = "2.1.0"\n',
            '[tool.poetry.dependencies]\ntorch = "==2.6.0"\ntorch-npu = "==2.6.0.*"\n',
        ),
    ],
)
def test_what_becomes_of_lists_and_entries(name: str, before: str, after: str) -> None:
    from migrator.core.examples import migrated

    assert migrated(before, "2.6", False, name=name).text == after
    assert migrated(after, "2.6", False, name=name).text is None


def test_nothing_is_put_behind_a_quote_that_is_left_open() -> None:
    """It would be a part of the string: the next look would miss it again, and so on."""
    rules = rules_for(Settings(version="2.6"))
    command = 'RUN pip install torch --index-url "https://download.pytorch.org/whl/cu118'
    left = migrate_text(rules, "Dockerfile", f"{command}\n", Project())
    assert "torch_npu" not in (left.text or "")
    assert not left.skipped
    closed = migrate_text(rules, "Dockerfile", f'{command}"\n', Project())
    assert (closed.text or "").endswith('cpu" && pip install torch_npu==2.6.0.post5\n')


def test_a_requirement_of_several_lines_is_removed_whole() -> None:
    rules = rules_for(Settings(version="2.6"))
    marker = "    ; python_version < '3.12'\n"
    text = f"numpy\nnvidia-cublas-cu12==12.1 \\\n{marker}torch==2.1.0 \\\n{marker}tqdm\n"
    assert migrate_text(rules, "requirements.txt", text, Project()).text == (
        f"numpy\ntorch==2.6.0 \\\n{marker}torch_npu==2.6.0.post5 ; python_version < '3.12'\ntqdm\n"
    )


def test_two_requirements_that_a_backslash_joins_are_left() -> None:
    text = "numpy\nnvidia-cublas-cu12==12.1 \\\nflash-attn\n"
    assert listed(read("requirements.txt", "requirements", text)) == [("numpy", "", "numpy")]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("torch==2.1.0", "torch_npu 2.6.0.post5 is built for torch 2.6.0, not for ==2.1.0"),
        ("torch", "torch is not pinned; torch_npu 2.6.0.post5 is built for 2.6.0"),
        (
            "torch==2.6.0",
            "add torch_npu: requirements list torch but not torch_npu, which the migrated program imports",
        ),
    ],
)
def test_what_is_said_of_torch_is_what_is_wrong(written: str, said: str) -> None:
    rules = rules_for(Settings("2.6.0", select=("NPU450",)))
    result = migrate_text(rules, "requirements.txt", f"{written}\n", Project())
    assert [finding.message for finding in result.findings] == [said]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        # Another release of torch_npu for the same torch.
        ("requirements.txt", "torch==2.6.0\ntorch-npu==2.6.0.post3\n"),
        # A package that requires its own extras.
        (
            "pyproject.toml",
            '[project]\nname = "unsloth"\n[project.optional-dependencies]\nall = [\n  "unsloth[base]",\n]\n',
        ),
    ],
)
def test_requirements_that_can_stay(name: str, text: str) -> None:
    rules = rules_for(Settings("2.6.0"))
    assert migrate_text(rules, name, text, Project()).findings == ()


def test_a_file_named_after_npus_has_the_values_that_its_author_chose() -> None:
    rules = rules_for(Settings("2.6.0", select=("NPU454",)))
    severities = [
        migrate_text(rules, name, "bitsandbytes\n", Project()).findings[0].severity
        for name in ("requirements/bnb.txt", "requirements/npu.txt")
    ]
    assert severities == ["warning", "info"]
