"""What a conversion writes and what it reports; torch is not needed."""

from __future__ import annotations

import ast
import csv
import difflib
from pathlib import Path

import pytest

from migrator.cli.main import run
from migrator.convert.distributed.convert import Conversion, convert
from tests.convert.distributed.test_trained import STYLES

HERE = Path(__file__).parent
SAMPLES = HERE.parents[2] / "samples"

BASE = """\
import torch
from torch import nn
from torch.utils.data import DataLoader

data = make_data()
loader = DataLoader(data, batch_size=4, shuffle=True)
model = nn.Linear(2, 2)
model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x in loader:
        optimizer.zero_grad()
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
"""


def converted(texts: str | dict[str, str], target: str = "") -> Conversion:
    files = {"train.py": texts} if isinstance(texts, str) else texts
    result = convert("train.py", files.get, target)
    for file in result.files.values():
        ast.parse(file.text)
    return result


def new_lines(result: Conversion, name: str = "train.py") -> list[str]:
    """The lines that the conversion has put in, without those of the set-up."""
    file = result.files[name]
    diff = difflib.ndiff(file.before.splitlines(), file.text.splitlines())
    return [line[2:] for line in diff if line.startswith("+ ")]


def reported(result: Conversion) -> list[str]:
    return [one.message for file in result.files.values() for one in file.findings if not one.fixed]


def with_loader(loader: str, before: str = "") -> Conversion:
    old = "loader = DataLoader(data, batch_size=4, shuffle=True)\n"
    return converted(BASE.replace(old, f"{before}loader = {loader}\n"))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_script_without_functions(newline: str) -> None:
    result = converted(BASE.replace("\n", newline))
    assert not result.reason
    text = result.files["train.py"].text
    assert text.count("\n") == text.count(newline)
    lines = text.split(newline)
    assert lines.index("setup_distributed()") < lines.index("data = make_data()")
    at = lines.index("model = DistributedDataParallel(model)")
    assert lines[at - 1].startswith("optimizer = ")
    assert "loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))" in lines
    assert lines[lines.index("for epoch in range(3):") + 1] == "    loader.sampler.set_epoch(epoch)"
    assert lines[-3:] == ["model = model.module", "leave_distributed()", ""]
    assert lines.count("import torch") == 1


@pytest.mark.parametrize("name", [*STYLES, "resnet18_cifar", "mobilenetv3_single"])
def test_lines_that_do_not_change_stay_and_a_second_time_nothing_changes(name: str) -> None:
    folder = HERE / "programs" / name if name in STYLES else SAMPLES / name
    files = {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*.py")}
    result = converted(files)
    assert not result.reason
    for file in result.files.values():
        gone = [
            line[2:].strip()
            for line in difflib.ndiff(file.before.splitlines(), file.text.splitlines())
            if line.startswith("- ")
        ]
        gone = [line for line in gone if line not in file.text]
        # What goes: arguments of the loader, numbers of cards, DataParallel; model.… gets .module
        loader = ("DataLoader", "shuffle", "get_dataloader(")
        card = ("cuda:", "CUDA_VISIBLE", "DataParallel", "GPUs", "device_count", "cuda(0")
        model = ("model.", "net.", "network.", "generator.", "discriminator.")
        # What is taken in turns, and where the ranks agree.
        taken = ("train_step(*get_batch(", "train_iter", "build_loader(", "os.makedirs(")
        asked = ("if stopper(", "if not torch.isfinite(", "if last <", "if wait >=")
        words = (*loader, *card, *model, *taken, *asked)
        assert all(any(word in line for word in words) for line in gone), gone
    again = convert("train.py", {**files, **{n: f.text for n, f in result.files.items()}}.get)
    assert again.already
    assert not again.files


@pytest.mark.parametrize(
    ("loader", "after"),
    [
        ("DataLoader(data, 4)", "DataLoader(data, 4, sampler=DistributedSampler(data, shuffle=False))"),
        ("DataLoader(data, 4, True)", "DataLoader(data, 4, sampler=DistributedSampler(data))"),
        (
            "DataLoader(dataset=data, shuffle=args.mix, drop_last=True)",
            "DataLoader(dataset=data, sampler=DistributedSampler(data, shuffle=args.mix), drop_last=True)",
        ),
        (
            "DataLoader(data, sampler=torch.utils.data.RandomSampler(data))",
            "DataLoader(data, sampler=DistributedSampler(data))",
        ),
        (
            "DataLoader(data, sampler=None, shuffle=True, **more)",
            "DataLoader(data, sampler=DistributedSampler(data), **more)",
        ),
        (
            "DataLoader(Data(1), batch_size=2, shuffle=True)",
            "DataLoader(train_dataset, batch_size=2, sampler=DistributedSampler(train_dataset))",
        ),
    ],
)
def test_loaders(loader: str, after: str) -> None:
    assert f"loader = {after}" in new_lines(with_loader(loader))


@pytest.mark.parametrize(
    ("loader", "reason"),
    [
        ("DataLoader(data, batch_sampler=Mine(data))", "a batch_sampler selects"),
        (
            "DataLoader(data, sampler=torch.utils.data.WeightedRandomSampler(w, 9))",
            "the sampler WeightedRandomSampler",
        ),
        (
            "DataLoader(data, sampler=torch.utils.data.SubsetRandomSampler(i))",
            "the sampler SubsetRandomSampler",
        ),
        ("DataLoader(Stream())", "a sampler cannot divide an IterableDataset"),
        ("DataLoader(*given)", "the arguments of this DataLoader"),
        ("elsewhere.make()", "no loop with backward() iterates over a recognized DataLoader"),
    ],
)
def test_loaders_that_a_person_has_to_share(loader: str, reason: str) -> None:
    stream = "class Stream(torch.utils.data.IterableDataset):\n    pass\n"
    result = with_loader(loader, stream)
    assert result.reason.startswith(reason)
    assert all(file.text == file.before for file in result.files.values())
    lines = " ".join(one.advice for file in result.files.values() for one in file.findings)
    assert 'dist.init_process_group("hccl")' in lines
    assert "DistributedSampler(dataset, shuffle=True)" in lines
    assert "DistributedDataParallel(model)" in lines


def test_what_training_calls_beside_the_model_goes_past_the_wrapper() -> None:
    result = converted(BASE.replace("model(x.cuda())", "model.encode(x.cuda())"))
    assert "training calls model.encode()" in result.reason


def test_each_of_several_models_is_wrapped_where_training_calls_it() -> None:
    second = "other = nn.Linear(2, 2).cuda()\nsecond = torch.optim.SGD(other.parameters(), lr=0.1)\n"
    text = BASE.replace("for epoch", second + "for epoch", 1)
    assert converted(text).reason == "training does not visibly call other"
    assert not converted(text, "model").reason
    lines = new_lines(converted(text.replace("model(x.cuda())", "other(model(x.cuda())) + other(0)")))
    assert "model = DistributedDataParallel(model)" in lines
    assert "other = DistributedDataParallel(other, broadcast_buffers=False)" in lines
    together = BASE.replace("(model.parameters()", "(list(model.parameters()) + list(head.parameters())")
    together = together.replace("optimizer =", "head = nn.Linear(2, 2).cuda()\noptimizer =", 1)
    lines = new_lines(converted(together.replace("model(x.cuda())", "head(model(x.cuda()))")))
    assert "model = DistributedDataParallel(model)" in lines
    assert "head = DistributedDataParallel(head)" in lines


def test_a_model_that_is_on_no_device() -> None:
    reason = converted(BASE.replace("model.cuda()\n", "")).reason
    assert "no line was found that moves model to its device" in reason


def test_a_model_that_is_moved_where_it_is_trained() -> None:
    head, _, loop = BASE.replace("model.cuda()\n", "").partition("for epoch")
    body = "def fit(model):\n    model = model.cuda()\n    for epoch" + loop.replace("\n", "\n    ")
    result = converted(head.replace("loader =", "\nloader =") + body.rstrip() + "\n\n\nfit(model)\n")
    assert not result.reason
    lines = result.files["train.py"].text.splitlines()
    at = lines.index("    model = DistributedDataParallel(model)")
    assert lines[at - 1] == "    model = model.cuda()"
    assert "        loader.sampler.set_epoch(epoch)" in lines


def test_a_model_that_a_trainer_moves() -> None:
    head, _, loop = BASE.replace("model.cuda()\n", "").partition("for epoch")
    loop = "for epoch" + loop.replace("model(", "self.net(").replace("\n", "\n        ").rstrip()
    body = "class Trainer:\n    def __init__(self, model):\n        self.net = model.to('cuda')\n\n"
    body += "    def fit(self):\n        " + loop + "\n\n\ntrainer = Trainer(model)\ntrainer.fit()\n"
    result = converted(head + body + "torch.save(trainer.net.state_dict(), 'a.pt')\n")
    assert not result.reason
    assert "    torch.save(trainer.net.module.state_dict(), 'a.pt')" in new_lines(result)
    lines = result.files["train.py"].text.splitlines()
    at = lines.index("        self.net = DistributedDataParallel(self.net)")
    assert lines[at - 1] == "        self.net = model.to('cuda')"


def test_a_function_that_makes_both_loaders() -> None:
    made = "def make(d, training):\n    return DataLoader(d, batch_size=2, shuffle=training)\n\n\n"
    result = with_loader("make(data, True)", made + "val_loader = make(val, False)\n")
    sampler = "sampler=DistributedSampler(d, shuffle=training) if over_ranks else None"
    shuffle = "shuffle=training and not over_ranks"
    assert f"    return DataLoader(d, batch_size=2, {sampler}, {shuffle})" in new_lines(result)
    assert "def make(d, training, over_ranks=False):" in new_lines(result)
    assert "loader = make(data, True, over_ranks=True)" in new_lines(result)
    assert "val_loader = make(val, False)\n" in result.files["train.py"].text
    both = made + "def get(d, name):\n    return make(d, True)\n\n\nval_loader = get(val, 'val')\n"
    lines = new_lines(with_loader("get(data, 'train')", both))
    assert "    return make(d, True, over_ranks=over_ranks)" in lines
    assert "loader = get(data, 'train', over_ranks=True)" in lines
    doubtful = made + "def get(d, /):\n    return make(d, True)\n\n\nval_loader = get(val)\n"
    result = with_loader("get(data)", doubtful)
    assert "also creates loaders for other purposes than training" in result.reason


def test_files_that_every_rank_would_write() -> None:
    text = "import json\n" + BASE + "with open('a.json', 'w') as f:\n    torch.save(model.state_dict(), f)\n"
    result = converted(text)
    assert reported(result).count("every rank writes this file") == 2
    assert "dist.get_rank() == 0:\n" not in result.files["train.py"].text


def test_several_cards() -> None:
    text = BASE.replace("model.cuda()", 'model.to("cuda:0")').replace("x.cuda()", 'x.to("cuda:1")')
    assert converted(text).reason == "the program uses several devices by number"


def test_checkpoints() -> None:
    load = 'model.load_state_dict(torch.load("a.pt", map_location="cpu"))\n'
    save = 'torch.save({"a": model.state_dict()}, "a.pt")\nmodel.load_state_dict(best)\n'
    save += 'torch.save(model, "b.pt")\n'
    lines = new_lines(converted(BASE.replace("optimizer =", load + "optimizer =", 1) + save))
    assert '    torch.save({"a": model.module.state_dict()}, "a.pt")' in lines
    assert "model.module.load_state_dict(best)" in lines
    assert '    torch.save(model.module, "b.pt")' in lines
    assert lines.count("if dist.get_rank() == 0:") == 2


def test_the_compiled_model_is_wrapped() -> None:
    text = BASE.replace("optimizer =", "model = torch.compile(model)\noptimizer =", 1)
    lines = converted(text).files["train.py"].text.splitlines()
    assert lines.index("model = torch.compile(model)") < lines.index("model = DistributedDataParallel(model)")


def test_what_may_differ_between_ranks_is_reported() -> None:
    more = "scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)\n"
    more += "os.mkdir('runs', 0o755)\n"
    text = BASE.replace("for epoch", more + "for epoch", 1)
    messages = " ".join(reported(converted("import os\n" + text)))
    assert "metric to this scheduler" in messages
    assert "the first rank creates this folder" in messages


@pytest.mark.parametrize("version", ["1.11", "2.13"])
def test_no_report_speaks_of_what_the_conversion_wrote(tmp_path: Path, version: str) -> None:
    for name in ("own_batches", "random_batches", "stop_early"):
        folder = HERE / "programs" / name
        assert run(["-q", "-i", str(folder), "-o", str(tmp_path), "-v", version, "distributed"]) == 0
        reports = tmp_path / f"{name}_msft_multi/migration_report"
        text = "".join(file.read_text() for file in folder.rglob("*.py"))
        for table in ("unknown_api", "unsupported_api", "cuda_op_list"):
            for row in csv.DictReader((reports / f"{table}.csv").open(encoding="utf-8-sig")):
                assert row["OP"].rpartition(".")[2] in text
        rows = list(csv.DictReader((reports / "manual_review.csv").open(encoding="utf-8-sig")))
        assert {row["Rule"] for row in rows} <= {"NPU921"}


def test_folders_that_another_rank_has_made() -> None:
    made = "os.mkdir('a')\nos.makedirs(folder)\nos.makedirs(folder, exist_ok=True)\n"
    lines = new_lines(converted("import os\n" + BASE + made))
    assert {"os.makedirs('a', exist_ok=True)", "os.makedirs(folder, exist_ok=True)"} <= set(lines)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "proj", tmp_path / "out"
    source.mkdir()
    (source / "train.py").write_text(BASE)
    start = ["-i", str(source), "-o", str(out), "-v", "2.6"]
    assert run([*start, "distributed", "-m", "train.py"]) == 0
    assert "Multi-NPU: train.py trains on many NPUs" in capsys.readouterr().out
    result = out / "proj_msft_multi"
    text = (result / "train.py").read_text()
    assert 'backend = "hccl"' in text
    assert "torch.npu.set_device(" in text
    assert "cuda" not in text
    assert "  train.py) ranks_by=launcher ;;\n" in (result / "run_distributed_npu.sh").read_text()
    rows = list(csv.DictReader((result / "migration_report/change_list.csv").open(encoding="utf-8-sig")))
    wrapped = next(row for row in rows if "wrapped" in row["Message"])
    assert (wrapped["Rule"], wrapped["Start Line"], wrapped["Safety"]) == ("NPU920", "9", "unsafe")
    moved = [row["Start Line"] for row in rows if row["Rule"] == "NPU111"]
    assert moved == ["8", "13"]  # lines of the input
    more = [*start, "--overwrite", "--distributed", "--main", "train.py", "--target-model", "model"]
    assert run(more) == 0
    assert (result / "train.py").read_text() == text


@pytest.mark.parametrize("name", [*STYLES, "resnet18_cifar", "mobilenetv3_single"])
def test_a_result_is_only_migrated(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    folder = HERE / "programs" / name if name in STYLES else SAMPLES / name
    start = ["-v", "2.13", "distributed", "-m", "train.py"]
    assert run(["-q", "-i", str(folder), "-o", str(tmp_path), *start]) == 0
    once = tmp_path / f"{name}_msft_multi"
    assert "init_process_group" in (once / "train.py").read_text()
    assert run(["-i", str(once), "-o", str(tmp_path / "again"), *start]) == 0
    assert "train.py is already distributed: only migrated" in capsys.readouterr().out
    twice = tmp_path / "again" / f"{once.name}_msft_multi"
    for file in once.rglob("*.py"):
        assert (twice / file.relative_to(once)).read_text() == file.read_text()


def test_what_cannot_be_converted_is_migrated(tmp_path: Path) -> None:
    source = tmp_path / "train.py"
    source.write_text(BASE.replace("shuffle=True", "batch_sampler=mine"))
    assert run(["-q", "-i", str(source), "-o", str(tmp_path), "-v", "2.6", "distributed"]) == 0
    result = tmp_path / "train_msft_multi"
    assert "model.npu()" in (result / "train.py").read_text()
    rows = list(csv.DictReader((result / "migration_report/manual_review.csv").open(encoding="utf-8-sig")))
    (first,) = [row for row in rows if row["Severity"] == "error"]
    assert (first["Rule"], first["Start Line"]) == ("NPU921", "6")
    assert "  train.py) ranks_by=none ;;\n" in (result / "run_distributed_npu.sh").read_text()


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["distributed", "-m", "no.py"], "no.py (-m/--main) is not a file in"),
        (["-t", "model"], "-t/--target-model needs --distributed"),
        (["distributed", "--mode", "transfer"], "cannot be used together"),
        (["distribute"], "distribute"),
    ],
)
def test_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], line: str) -> None:
    (tmp_path / "train.py").write_text(BASE)
    assert run(["-i", str(tmp_path), "-o", str(tmp_path.parent / "o"), "-v", "2.6", *more]) == 2
    error = capsys.readouterr().err
    assert line in error
    assert error.count("\n") == 1
