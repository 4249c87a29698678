"""Which rules may match in a text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from migrator.core.rules import MODES, TRANSFER, Rules, _frameworks_of, rules_for
from migrator.core.settings import Settings
from migrator.matchers.packs import Rule, load
from migrator.names.written_names import read_names
from migrator.project.offers import CUDA_DEFAULT, DEVICE_KEY, LIBRARY, Offer, Offers
from migrator.project.operators import Catalog, Module, Operator
from migrator.project.project import Project
from tests.checking import every_rule, load_pack
from tests.matchers.migrating import engine


def test_from_which_words_rules_start() -> None:
    rules = engine("2.6")
    assert rules.asks_for("cuda")
    assert not rules.asks_for("zebra")


def test_the_rules_of_a_file_are_those_of_the_framework_that_it_shows() -> None:
    text = 'import mindspore as ms\nms.set_context(device_target="GPU")\nmodel.cuda()\n'
    rules, _ = engine("2.6").starting(text, Project())
    assert rules
    assert {rule.framework for rule in rules} == {("mindspore",)}


def test_what_is_known_of_the_chosen_rules() -> None:
    rules = Rules(Settings(version="2.6", select=("NPU101", "NPU401", "NPU450")), load_pack)
    assert rules.version.text == "2.6.0"
    assert rules.enabled == {"NPU101", "NPU401", "NPU450"}
    assert not rules.opt_in
    assert len(rules.every) > 200
    assert list(rules.order) == list(rules.every)
    assert list(rules.order.values()) == list(range(len(rules.every)))
    assert [rule.code for rule in rules.of_other_files("pip install torch", Project())] == ["NPU450"]
    found, words = rules.starting("import torch\ntorch.cuda.synchronize()\n", Project())
    assert [rule.code for rule in found] == ["NPU101"]
    assert words == {"cuda"}
    assert rules.is_relevant("torch.cuda.synchronize()")
    assert not rules.is_relevant("numpy.ones(2)")


def test_a_rule_that_is_asked_for_is_said_to_be_so() -> None:
    chosen = next(rule.code for rule in every_rule() if rule.opt_in)
    assert Rules(Settings(version="2.6", select=(chosen,)), load_pack).opt_in


@pytest.mark.parametrize("mode", ["transfer", "specify_device"])
def test_a_mode_starts_wherever_torch_is_named(mode: str) -> None:
    rules = Rules(Settings(version="2.6", **{mode: True}), load_pack)
    assert rules.is_relevant("import torch")
    assert not rules.is_relevant("import numpy")
    found, words = rules.starting("import torch\n", Project())
    assert [rule.code for rule in found][-1] in MODES
    assert "torch" in words
    assert bool(rules.of_other_files("pip install torch", Project())) == (mode != "transfer")


def _starting(text: str, project: Project | None = None, **settings: Any) -> tuple[list[str], frozenset[str]]:
    found, words = Rules(Settings(version="2.6", **settings), load_pack).starting(text, project or Project())
    return [rule.code for rule in found], words


def test_rule_packs_are_read_by_what_is_given_for_that() -> None:
    read: list[Path] = []

    def noting(path: Path) -> list[Rule]:
        read.append(path)
        return load(path)

    rules = rules_for(Settings(version="2.6", content="of this test"), noting)
    assert {path.stem for path in read} > {"1_device", "6_libraries"}
    assert rules_for(Settings(version="2.6", content="of this test"), noting) is rules


def test_the_vocabularies_have_what_the_project_adds() -> None:
    offers = Offers(frozenset({Offer(DEVICE_KEY, "gpu_place"), Offer(LIBRARY, "lightning")}))
    for vocabulary in engine("2.6").vocabularies(Project(offers=offers)):
        assert (vocabulary.keys, vocabulary.libraries) == ({"gpu_place"}, {"lightning"})
    for vocabulary in engine("2.6").vocabularies(Project()):
        assert (vocabulary.keys, vocabulary.libraries) == (set(), set())


@pytest.mark.parametrize(("frameworks", "codes"), [(("torch",), ["NPU450"]), (("mindspore",), [])])
def test_the_rules_of_other_files_are_those_of_the_frameworks_of_the_project(
    frameworks: tuple[str, ...], codes: list[str]
) -> None:
    rules = Rules(Settings(version="2.6", select=("NPU450", "NPU413")), load_pack)
    project = Project(frameworks=dict.fromkeys(frameworks, 1))
    assert [rule.code for rule in rules.of_other_files("pip install torch", project)] == codes


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        # the member of another library is none of torch's, though its words are there
        ("import torch\ntorch.load(file)\n", ["NPU171"]),
        ("import json\njson.load(file)\n", []),
        # rules may ask for a word of the file, or that it has none
        ("parser.add_argument('--local_rank')\n", ["NPU210"]),
        ("local_rank = arguments.local_rank\n", []),
        ("parser.add_argument('--local_rank', default=os.environ['LOCAL_RANK'])\n", []),
        # rules about all of torch start only where there is something to say
        ("import torch\nvalues = x.mode()\n", ["NPU501"]),
        ("import torch\nimport torch._six\n", ["NPU530"]),
        ("import torch\ntorch.ones(2)\n", []),
    ],
)
def test_which_rules_start(text: str, codes: list[str]) -> None:
    assert _starting(text, select=("NPU171", "NPU210", "NPU501", "NPU530"))[0] == codes


def test_the_words_of_torchs_names_are_those_of_which_something_is_said() -> None:
    assert _starting("import torch\nx.mode()\n", select=("NPU501",))[1] == {"mode"}
    assert _starting("import torch\ntorch._six\n", select=("NPU530",))[1] == {"_six"}
    half = "import torch\ntorch.sum(x, dtype=torch.bfloat16)\n"
    assert "sum" not in _starting(half, select=("NPU541",))[1]
    assert "sum" in _starting(half, select=("NPU541",), hardware="A2")[1]


def test_rules_start_from_what_only_the_project_knows() -> None:
    module = Module("fused", {"leaky": Operator("bound", "leaky", "fused.cpp", 1)})
    operators = Project(operators=Catalog(modules={"fused": module}))
    keys = Project(offers=Offers(frozenset({Offer(DEVICE_KEY, "gpu_place")})))
    libraries = Project(packages=frozenset({"timm"}))
    rules = Rules(Settings(version="2.6", select=("NPU144", "NPU172", "NPU634", "NPU638")), load_pack)
    for text, project, code in (
        ("fused.leaky(x)\n", operators, "NPU634"),
        ("x = Tensor(2)\n", Project(offers=Offers(frozenset({Offer(CUDA_DEFAULT)}))), "NPU144"),
        ("cuda = settings.gpu_place[5:]\n", keys, "NPU172"),
    ):
        found, words = rules.starting(text, project)
        assert [rule.code for rule in found] == [code]
        assert ("leaky" in words) == (project is operators)
        assert rules.starting(text, Project()) == ([], frozenset())
    text = "import timm\ntimm.create_loader(x)\n"
    assert [rule.code for rule in rules.starting(text, Project())[0]] == ["NPU638"]
    assert rules.starting(text, libraries)[0] == []


@pytest.mark.parametrize(
    ("text", "codes", "starts"),
    [
        ("torch.npu.foo", ["NPU101"], False),
        ("torch.cuda.foo", ["NPU101"], True),
        ("nccl torch.cuda", ["NPU201"], True),
        # inside a full name only what the rule is about counts, and alone each word
        ("torch.zebra.load()", ["NPU171"], False),
        ("torch.load()", ["NPU171"], True),
        ("torch.load.more()", ["NPU171"], True),
        ("load()", ["NPU171"], True),
        # elsewhere a word within a name, too
        ("torch.acme.nccl", ["NPU201"], True),
        # a rule that has nothing to do with what fixes write, or with all of torch, hides none behind it
        ("torch.device", ["NPU172"], False),
        ("torch.mode", ["NPU501"], False),
        ("torch._six", ["NPU530"], False),
        ("torch.cuda.foo", ["NPU172", "NPU501", "NPU101"], True),
        ("pip install torch", ["NPU450"], True),
        ("pip install", ["NPU450"], False),
        # what is found by another part of npumigrate has no words
        ("torch", ["NPU902"], False),
    ],
)
def test_whether_rules_start_from_what_fixes_write(text: str, codes: list[str], starts: bool) -> None:
    rules = engine("2.6")
    assert rules.start_in(text, [rules.every[code] for code in codes]) is starts


def test_rules_about_all_of_torch_do_not_ask_for_its_name() -> None:
    rules = Rules(Settings(version="2.6", select=("NPU501", "NPU530")), load_pack)
    assert not rules.asks_for("torch")


MINDSPORE = "import mindspore\ncontext = {'gpu_place': 'cuda'}\n"


@pytest.mark.parametrize(
    ("text", "keys", "expected"),
    [
        (MINDSPORE, {"gpu_place"}, {"torch"}),
        (MINDSPORE, {"other"}, {"mindspore"}),
        (MINDSPORE, set(), {"mindspore"}),
        ("import mindspore, torch\n", set(), {"mindspore", "torch"}),
        ("import torch\n", set(), {"torch"}),
        ("import torch\nx = {'gpu_place': 'cuda'}\n", {"gpu_place"}, {"torch"}),
        ("x = {'gpu_place': 'cuda'}\n", {"gpu_place"}, {"jax"}),
        ("print('torch')\n", set(), {"jax"}),
    ],
)
def test_the_frameworks_of_a_file_of_another_ones_project(
    text: str, keys: set[str], expected: set[str]
) -> None:
    project = Project(frameworks={"jax": 3}, offers=Offers(frozenset(Offer(DEVICE_KEY, key) for key in keys)))
    assert _frameworks_of(text, read_names(text).words, project) == expected
    ours = Project(frameworks={"jax": 3, "torch": 1}, offers=project.offers)
    shown = expected if "mindspore" in text else {"torch"}
    assert _frameworks_of(text, read_names(text).words, ours) == shown


def test_the_rule_of_a_mode_starts_nowhere_else_when_it_is_not_selected() -> None:
    rules = Rules(Settings(version="2.6", select=("NPU101",), transfer=True), load_pack)
    assert not rules.start_in("import torch", [rules.every[TRANSFER]])
