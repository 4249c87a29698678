"""Names and parameters that the project's torch does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.api_support.npu_names import look_up
from migrator.api_support.torch_names import of_version
from migrator.api_support.versions import known as known_versions
from migrator.api_support.versions import newest as newest_version
from migrator.findings.finding import Finding
from migrator.project.project import Project
from tests.checking import every_rule, migrate_text
from tests.matchers.migrating import engine, migrate, migrated

OLD = "1.11"


def found(text: str, version: str = OLD) -> list[Finding]:
    return [item for item in migrate(text, version).findings if item.code.startswith("NPU53")]


def messages(text: str, version: str = OLD) -> list[str]:
    return [item.message for item in found(text, version)]


def test_a_message_says_which_release_has_it() -> None:
    (finding,) = found("import torch\nmodel = torch.compile(model)\n")
    assert finding.message == "torch.compile is absent in torch 1.11: first in torch 2.0"
    assert finding.api == "torch.compile"
    assert finding.severity == "blocker"
    assert "eager" in finding.advice
    assert found("import torch\nmodel = torch.compile(model)\n", "2.6") == []


def test_what_may_be_passed_over_is_a_warning() -> None:
    (finding,) = found("import torch\nif args.fast:\n    model = torch.compile(model)\n")
    assert finding.severity == "warning"


def test_what_went_is_said_to_have_been() -> None:
    (finding,) = found("from torch._six import string_classes\n", "2.6")
    assert finding.message == "torch._six.string_classes is absent in torch 2.6: last in torch 1.13"


@pytest.mark.parametrize(
    "text",
    [
        "import torch\ntorch.nothing_of_that_name(x)",
        "import torch\ntorch.ops.my.operator(x)",
        "import torch\ntorch.compile = lambda model: model\nmodel = torch.compile(model)",
        "try:\n    import torch.export\nexcept ImportError:\n    pass\nelse:\n    torch.export.export(f)",
        "import torch\ndef f(compile):\n    compile(torch)",
        "import torch\nnumbers.load(path, weights_only=True)",
        "import torch\n'torch.compile'",
        "import torch  # torch.compile",
    ],
)
def test_nothing_is_said(text: str) -> None:
    assert messages(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "import torch as t\nt.compile(model)",
        "from torch import compile",
        "from torch import compile as fast\nfast(model)",
        "import torch\nfast = torch.compile\nfast(model)",
        "import torch\ngetattr(torch, 'compile')(model)",
        "import torch\n@torch.compile\ndef f(x):\n    return x",
    ],
)
def test_each_way_of_writing_is_found_once(text: str) -> None:
    assert messages(text) == ["torch.compile is absent in torch 1.11: first in torch 2.0"]


def test_members_of_what_is_surely_a_tensor() -> None:
    assert messages("import torch\nx = torch.ones(2)\nprint(x.index(y))\n") == []  # lists have it as well
    tensor = "import torch\nx = torch.ones(2)\nprint(x.untyped_storage().data_ptr())\n"
    assert messages(tensor)[0].startswith("torch.Tensor.untyped_storage is absent in torch 1.11")
    assert migrated(tensor, OLD) == tensor
    assert messages("import torch\ndef f(x):\n    return x.untyped_storage()\n") == []


def test_members_of_what_may_be_a_module_and_nothing_else() -> None:
    text = "import torch\nmodel.load_state_dict(state, assign=True)\nmodel.register_state_dict_pre_hook(f)\n"
    argument, later = found(text)
    assert later.api == "torch.nn.Module.register_state_dict_pre_hook"
    assert argument.message.startswith("torch.nn.Module.load_state_dict does not accept assign in torch 1.11")
    mine = "import torch\nclass Mine:\n    def compile(self): pass\nMine().compile()\nmodel.compile()\n"
    assert found(mine) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "import torch.distributed as dist\ndist.all_gather_into_tensor(a, b)\n",
            "import torch.distributed as dist\ndist.distributed_c10d._all_gather_base(a, b)\n",
        ),
        (
            "from torch.distributed import all_gather_into_tensor, barrier\nall_gather_into_tensor(a, b)\n",
            "from torch.distributed import barrier\n"
            "from torch.distributed.distributed_c10d import _all_gather_base as all_gather_into_tensor\n"
            "all_gather_into_tensor(a, b)\n",
        ),
        ("import torch\nx = torch.amp.GradScaler\n", None),
        ('import torch\nx = torch.amp.GradScaler("cpu")\n', None),
        ('from torch.amp import GradScaler\nx = GradScaler("cuda")\ny = GradScaler(device="cpu")\n', None),
        (
            "import torch\nfor x in xs:\n    torch.set_float32_matmul_precision('high')\nprint()\n",
            "import torch\nfor x in xs:\n    pass\nprint()\n",
        ),
        ("import torch\nx = 1; torch.set_float32_matmul_precision('high')\n", "import torch\nx = 1; pass\n"),
        ("import torch\nwas = torch.set_float32_matmul_precision('high')\n", None),
        (
            "import torch\nok = not torch.backends.mps.is_available()\n",
            'import torch\nok = not (hasattr(torch.backends, "mps") and torch.backends.mps.is_available())\n',
        ),
    ],
)
def test_what_is_written_instead(before: str, after: str | None) -> None:
    assert found(before)
    result = migrated(before, OLD).replace('"npu"', '"cuda"').replace("import torch_npu\n", "")
    assert result == (before if after is None else after)


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        ("f, weights_only=False", "f"),
        ("weights_only=False, f=f", "f=f"),
        ("f, weights_only=False, map_location=m", "f, map_location=m"),
        ("f, mmap=True, weights_only=False", "f"),
        ("f, weights_only=(False), map_location=m", "f, map_location=m"),
        ("f,\n    weights_only=False,\n", "f,\n"),
        ("f,  # the file\n    weights_only=False", None),
        ("f, **{'weights_only': False}", None),
    ],
)
def test_arguments_are_left_out(call: str, instead: str | None) -> None:
    text = f"import torch\nmodel = torch.load({call})\n"
    assert migrated(text, OLD, select=("NPU53",)) == (
        text if instead is None else f"import torch\nmodel = torch.load({instead})\n"
    )


def test_an_argument_that_matters_is_left_out_unsafely() -> None:
    safe, unsafe = found(
        "import torch\ntorch.load(f, weights_only=False)\ntorch.load(f, weights_only=True)\n"
    )
    assert safe.fix
    assert unsafe.fix
    assert (safe.fix.safety, unsafe.fix.safety) == ("safe", "unsafe")
    assert "trust" in unsafe.advice


@pytest.mark.parametrize(
    ("value", "instead", "safety"),
    [
        ("None", "()", "safe"),
        ('"IMAGENET1K_V1"', "(pretrained=True)", "unsafe"),
        ("models.ResNet18_Weights.DEFAULT", "(pretrained=True)", "unsafe"),
        ("args.weights", "(weights=args.weights)", ""),
    ],
)
def test_torchvision_takes_pretrained_before_weights(value: str, instead: str, safety: str) -> None:
    text = f"from torchvision import models\nmodel = models.resnet18(weights={value})\n"
    (finding,) = [item for item in found(text) if item.code == "NPU534"]
    assert (finding.fix.safety if finding.fix else "") == safety
    assert f"model = models.resnet18{instead}\n" in migrated(text, OLD)
    assert migrated(text, "2.6") == text


def test_a_class_that_other_versions_derive_from_elsewhere() -> None:
    text = "from torch.optim.lr_scheduler import LRScheduler\nclass Mine(LRScheduler):\n    pass\n"
    wanted = "from torch.optim.lr_scheduler import _LRScheduler as LRScheduler\n"
    assert migrated(text, OLD).startswith(wanted)
    assert migrated(text, "2.6") == text


RULES = {rule.options.about: rule for rule in every_rule() if rule.kind == "release-names"}


@pytest.mark.parametrize("about", ["later", "earlier"])
def test_names_with_an_equivalent_are_names_of_some_release(about: str) -> None:
    newest = of_version(newest_version().text)
    unknown = [
        name
        for name in RULES[about].options.names
        if not newest.known(name.rstrip("*.")) and "_six." not in name
    ]
    assert unknown == []


@pytest.mark.parametrize("about", ["later", "earlier"])
def test_equivalents_are_names_of_some_release(about: str) -> None:
    names = {known.name.rstrip("*.") for known in RULES[about].options.names.values() if known.name}
    ours = of_version(newest_version().text)
    unknown = [
        name
        for name in names
        if name.startswith("torch.") and not ours.known(name) and look_up(name, newest_version()) is None
    ]
    assert unknown == []


NEWEST = newest_version().text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param(
            "if True:\n    from torch._six import (string_classes as sc, inf,\n        with_metaclass)\n",
            "if True:\n    from torch._six import with_metaclass\n"
            "    from math import inf\n    sc = (str, bytes)\n",
            id="a value, a name and what has neither",
        ),
        pytest.param(
            "from torch._six import PY3; print(PY3)\n", "PY3 = True; print(PY3)\n", id="one line of two"
        ),
        pytest.param(
            "from torch._six import (  # of Python 2\n    string_classes,\n)\n",
            "from torch._six import (  # of Python 2\n    string_classes,\n)\n",
            id="a comment, which an assignment would lose",
        ),
        pytest.param(
            "import torch._six as six\nfrom torch import nn, _six\n\ndef f(x):\n"
            '    return isinstance(x, six.container_abcs.Mapping), x is _six.inf, f"{_six.PY3}"\n',
            "import collections.abc\nfrom torch import nn\nimport math\n\ndef f(x):\n"
            '    return isinstance(x, collections.abc.Mapping), x is math.inf, f"{True}"\n',
            id="a module under other names",
        ),
        pytest.param(
            "import torch._six\ndef f(x):\n    from torch import _six\n"
            "    return isinstance(x, torch._six.int_classes)\n",
            "import torch\ndef f(x):\n    return isinstance(x, int)\n",
            id="a module by its whole name, and one that nothing uses",
        ),
        pytest.param(
            "from torch import _six\nclass A(_six.with_metaclass(B)):\n    x = _six.inf\n",
            "from torch import _six\nclass A(_six.with_metaclass(B)):\n    x = _six.inf\n",
            id="a module of which something has no equivalent",
        ),
        pytest.param(
            "import torch._six as six\nhelp(six)\nx = six.inf\n",
            "import torch._six as six\nhelp(six)\nx = six.inf\n",
            id="a module that is used as such",
        ),
        pytest.param(
            "from torch import (  # of Python 2\n    _six,\n)\nx = _six.inf\n",
            "from torch import (  # of Python 2\n    _six,\n)\nx = _six.inf\n",
            id="a comment inside the import of a module",
        ),
        pytest.param(
            "import torchvision.transforms.functional_tensor\n"
            "torchvision.transforms.functional_tensor.invert(1)\n",
            "import torchvision.transforms._functional_tensor\n"
            "torchvision.transforms._functional_tensor.invert(1)\n",
            id="a module by its whole name",
        ),
        pytest.param(
            "import torch\nfrom torch._six import string_classes\nprint(torch._six.string_classes)\n",
            "import torch\nstring_classes = (str, bytes)\nprint((str, bytes))\n",
            id="an import, and the whole name beside it",
        ),
        pytest.param(
            'import torch\ntorch.onnx._export(model, x, "m.onnx")\n',
            'import torch\ntorch.onnx.export(model, x, "m.onnx", dynamo=False)\n',
            id="a new name from which another rule starts",
        ),
    ],
)
def test_an_earlier_name_is_mended_in_one_migration(text: str, wanted: str) -> None:
    assert migrated(text, NEWEST) == wanted
    assert migrated(wanted, NEWEST) == wanted


def test_parameters_with_an_answer_are_absent_from_some_release() -> None:
    idle = []
    for key in RULES["parameters"].options.parameters:
        name, _, word = key.rpartition(".")
        releases = [of_version(version.text) for version in known_versions()]
        if "*" not in name and not any(word in names.lacking(name) for names in releases):
            idle.append(key)
    assert idle == []


SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.mark.parametrize("version", [OLD, newest_version().text])
@pytest.mark.parametrize(
    "file", sorted(SAMPLES.glob("*/*.py")), ids=lambda file: f"{file.parent.name}-{file.stem}"
)
def test_the_samples_use_what_old_and_new_releases_have(file: Path, version: str) -> None:
    result = migrate(file.read_text(encoding="utf-8"), version)
    assert [item.message for item in result.findings if item.code.startswith("NPU53")] == []
    assert result.text is None or messages(result.text, version) == []


@pytest.mark.parametrize(
    ("file", "package", "absent"),
    [
        ("train.py", "torchvision", False),
        ("torchvision/transforms/cut.py", "torchvision", False),
        ("train.py", "acme", True),
    ],
)
def test_what_the_project_defines_itself_is_there(file: str, package: str, absent: bool) -> None:
    text = "import torch\nfrom torchvision import tv_tensors\nx = tv_tensors.KeyPoints\n"
    found = migrate_text(engine("2.6"), file, text, Project(packages=frozenset([package]))).findings
    assert ("NPU530" in {each.code for each in found}) == absent


@pytest.mark.parametrize("version", [OLD, NEWEST])
def test_the_backend_of_torchaudio_is_set_where_that_has_an_effect(version: str) -> None:
    text = 'import torch\nimport torchaudio\ntorchaudio.set_audio_backend("sox_io")\n'
    kept = "".join(text.splitlines(keepends=True)[: 3 if version == OLD else 2])
    assert migrated(text, version) == kept
