"""What becomes of Horovod's names, and what is only reported; torch is not needed."""

from __future__ import annotations

import ast
import csv
from pathlib import Path

import pytest

from migrator.cli.main import run
from migrator.convert.draft import functions
from migrator.convert.horovod.calls import table
from migrator.convert.horovod.convert import convert
from migrator.core.check import Converted

HERE = Path(__file__).parent
SAMPLE = HERE.parents[2] / "samples" / "horovod_resnet50" / "benchmark.py"

BASE = """\
import torch
import horovod.torch as hvd

hvd.init()
torch.cuda.set_device(hvd.local_rank())
model = make_model()
model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size())
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
for x in loader:
    optimizer.zero_grad()
    loss = model(x.cuda()).sum()
    loss.backward()
    optimizer.step()
if hvd.rank() == 0:
    torch.save(model.state_dict(), "model.pt")
"""


OPTIMIZER = next(line for line in BASE.splitlines(True) if "DistributedOptimizer" in line)
WRAPPED = "model = DistributedDataParallel(model, broadcast_buffers=False)"


def converted(texts: str | dict[str, str], version: tuple[int, ...] = (2, 6, 0)) -> dict[str, Converted]:
    files = {"train.py": texts} if isinstance(texts, str) else texts
    names = [name for name, text in files.items() if "horovod" in text]
    result = convert(names, list(files), files.get, version)
    for file in result.values():
        ast.parse(file.text)
    return result


def lines(text: str) -> list[str]:
    """The lines of a converted script."""
    result = converted(text)["train.py"]
    assert result.text != result.before, [one.message for one in result.findings]
    return result.text.splitlines()


def reasons(texts: str | dict[str, str], version: tuple[int, ...] = (2, 6, 0)) -> str:
    """Why nothing is converted."""
    result = converted(texts, version)
    assert all(file.text == file.before for file in result.values())
    found = [one for file in result.values() for one in file.findings]
    assert {one.code for one in found} == {"NPU931"}
    assert all(one.advice for one in found)
    return "\n".join(one.message for one in found if one.severity == "error")


def with_argument(text: str) -> str:
    """BASE with one more argument of DistributedOptimizer."""
    return BASE.replace("model.named_parameters())", f"model.named_parameters(), {text})")


def with_line(line: str) -> str:
    return BASE.replace("for x in loader", f"{line}\nfor x in loader")


def test_a_script() -> None:
    text = converted(BASE)["train.py"].text
    assert "hvd." not in text
    assert "import horovod" not in text
    body = text[text.index("setup_distributed()\ntorch") :]
    assert body == (
        """\
setup_distributed()
torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
model = make_model()
model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * dist.get_world_size())
model = DistributedDataParallel(model, broadcast_buffers=False)
hvd_broadcast_parameters(model.module.state_dict(), root_rank=0)
for x in loader:
    optimizer.zero_grad()
    loss = model(x.cuda()).sum()
    loss.backward()
    optimizer.step()
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "model.pt")
model = model.module
leave_distributed()
"""
    )


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_lines_that_do_not_change_stay_and_a_second_time_nothing_changes(newline: str) -> None:
    source = SAMPLE.read_text().replace("\n", newline)
    result = converted(source)["train.py"]
    assert result.text.count("\n") == result.text.count(newline)
    kept = set(result.text.split(newline))
    gone = [line.strip() for line in source.split(newline) if line not in kept]
    parts = ("hvd", "optimizer", "model", "named_parameters", "compression=", ")", "")
    assert all(line.startswith(parts) or "hvd." in line or "model." in line for line in gone), gone
    assert converted(result.text) == {}


@pytest.mark.parametrize(
    ("imported", "name"),
    [
        ("import horovod.torch as hvd", "hvd."),
        ("import horovod.torch", "horovod.torch."),
        ("from horovod import torch as hvd", "hvd."),
        ("from horovod.torch import init, rank", ""),
        ("from horovod.torch.mpi_ops import init, rank", ""),
        ("import math, horovod.torch as hvd", "hvd."),
    ],
)
def test_ways_to_import_it(imported: str, name: str) -> None:
    result = lines(f"{imported}\n{name}init()\nprint({name}rank())\n")
    assert "print(dist.get_rank())" in result
    assert ("import math" in result) == ("math" in imported)
    assert sum("horovod" in line for line in result) == 0


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("hvd.allreduce(x)", "hvd_allreduce(x)"),
        ("hvd.allreduce(x, name='a')", "hvd_allreduce(x)"),
        ("hvd.allreduce(x, False, 'a')", "hvd_allreduce(x, op=dist.ReduceOp.SUM)"),
        ("hvd.allreduce(x, average=True)", "hvd_allreduce(x)"),
        ("hvd.allreduce(x, op=hvd.Sum, name='a')", "hvd_allreduce(x, op=dist.ReduceOp.SUM)"),
        ("hvd.allreduce(x, compression=hvd.Compression.none)", "hvd_allreduce(x)"),
        ("hvd.allreduce(x, process_set=hvd.global_process_set)", "hvd_allreduce(x)"),
        ("hvd.allreduce_(hvd.size() * x)", "hvd_allreduce_(dist.get_world_size() * x)"),
        ("hvd.allgather(x, 'a')", "hvd_allgather(x)"),
        ("hvd.broadcast(x, 0, 'a')", "hvd_broadcast(x, 0)"),
        ("hvd.broadcast(x, root_rank=0, name='a')", "hvd_broadcast(x, root_rank=0)"),
        ("hvd.broadcast_object(x, name='a')", "hvd_broadcast_object(x)"),
        ("hvd.synchronize(x)", "hvd_synchronize(x)"),
        ("hvd.barrier()", "dist.barrier()"),
        ("hvd.SyncBatchNorm(8)", "torch.nn.SyncBatchNorm(8)"),
        ("net(norm_layer=hvd.SyncBatchNorm)", "net(norm_layer=torch.nn.SyncBatchNorm)"),
        ("f(hvd.rank, hvd.size)", "f(dist.get_rank, dist.get_world_size)"),
        ("hvd.cross_size()", 'dist.get_world_size() // int(os.environ.get("LOCAL_WORLD_SIZE", 1))'),
    ],
)
def test_calls(call: str, after: str) -> None:
    assert f"y = {after}" in lines(with_line(f"y = {call}"))


def test_every_call_has_its_helper_and_helpers_stand_in_order() -> None:
    for name in table("calls"):
        assert f"hvd_{name}" in functions("horovod_helpers.py") or name in table("values"), name
    helpers = list(functions("horovod_helpers.py"))
    text = lines(with_line("y = hvd.allgather(x)"))
    found = [line for line in text if line.startswith(("def ", "class "))]
    names = [line.split()[1].partition("(")[0] for line in found]
    assert names == [name for name in helpers if name in names]
    assert "HvdAllgather" in names


@pytest.mark.parametrize(
    "line",
    [
        "model = model.cuda() if many else model",
        "model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)",
        "print(model)",
        "ema = ModelEma(model)",
        "summary(model, (3, 8, 8))",
        "for p in model.encoder.parameters():\n    p.requires_grad = False",
    ],
)
def test_what_prepares_a_model_does_not_matter(line: str) -> None:
    assert WRAPPED in lines(BASE.replace("model.cuda()\n", f"{line}\n"))


@pytest.mark.parametrize(
    ("arguments", "before", "behind"),
    [
        ("", [], []),
        ("backward_passes_per_step=1, sparse_as_dense=False", [], []),
        (
            "compression=hvd.Compression.fp16",
            [],
            ["model.register_comm_hook(None, default_hooks.fp16_compress_hook)"],
        ),
        ("op=hvd.Sum", [], ["model.register_comm_hook(None, hvd_sum_hook)"]),
        (
            "op=hvd.Average if mean else hvd.Adasum, num_groups=2, gradient_predivide_factor=2.0",
            ["if not (mean):", '    raise NotImplementedError("torch.distributed has no Adasum")'],
            [],
        ),
    ],
)
def test_the_optimizer(arguments: str, before: list[str], behind: list[str]) -> None:
    after = [*before, WRAPPED, *behind]
    result = lines(with_argument(arguments))
    at = result.index(after[0])
    assert result[at : at + len(after)] == after
    assert result[at + len(after)].startswith("hvd_broadcast_parameters(")


@pytest.mark.parametrize(
    ("old", "new", "after"),
    [
        ("optimizer, named_parameters=model.named_parameters()", "optimizer", ""),
        ("named_parameters=model.named_parameters()", "named_parameters=pairs", ""),
        ("named_parameters=model.named_parameters()", "list(model.named_parameters())", ""),
        (
            "optimizer = hvd.DistributedOptimizer(optimizer",
            "opt = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1)",
            "opt = torch.optim.SGD(model.parameters(), 0.1)",
        ),
    ],
)
def test_ways_to_name_the_model(old: str, new: str, after: str) -> None:
    result = lines(BASE.replace(old, new))
    at = result.index(WRAPPED)
    assert not after or result[at - 1] == after


def test_clipped_gradients() -> None:
    text = BASE.replace(
        "    optimizer.step()\n",
        "    # wait\n    optimizer.synchronize()\n    torch.cuda.synchronize()\n"
        "    clip(model.parameters())\n    with optimizer.skip_synchronize():\n"
        "        # now\n        optimizer.step()  # done\n",
    )
    result = lines(text)
    at = result.index("    loss.backward()")
    assert result[at + 1 : at + 5] == [
        "    torch.cuda.synchronize()",
        "    clip(model.parameters())",
        "    # now",
        "    optimizer.step()  # done",
    ]


def test_several_passes_are_right_and_the_lines_that_save_exchanges_are_reported() -> None:
    text = converted(with_argument("backward_passes_per_step=n"))["train.py"]
    assert "DistributedDataParallel(model" in text.text
    (found,) = [one for one in text.findings if not one.fixed]
    assert found.severity == "info"
    assert "with contextlib.nullcontext() if last else model.no_sync():" in found.advice


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("hvd.join()", "hvd.join has no equivalent"),
        ("state = hvd.elastic.TorchState(model, optimizer)", "hvd.elastic.TorchState has no equivalent"),
        ("group = hvd.ProcessSet([0])", "hvd.ProcessSet has no equivalent"),
        ("y = hvd.allreduce(x, process_set=group)", "hvd.allreduce with process_set has no equivalent"),
        ("y = hvd.allreduce(x, op=hvd.Adasum)", "hvd.Adasum has no equivalent"),
        ("y = hvd.allreduce(x, compression=hvd.Compression.fp16)", "hvd.allreduce with compression"),
        ("y = hvd.allreduce(x, prescale_factor=2.0)", "hvd.allreduce with prescale_factor"),
        ("y = hvd.allreduce(x, None, 'a', hvd.Compression.none, hvd.Sum)", "has arguments behind its name"),
        ("y = hvd.alltoall(x, splits=[1, 2])", "hvd.alltoall with splits"),
        ("y = hvd.allreduce(*xs)", "the arguments of hvd.allreduce are not plain"),
        ("hvd.init(comm=[0, 1])", "hvd.init is called with arguments"),
        ("hvd.start_timeline('x')", "hvd.start_timeline has no equivalent"),
        ("train(hvd)", "the module of Horovod is handed on as a value"),
        ("f = hvd.local_rank", "hvd.local_rank has no equivalent"),
        ("dist = 3", "dist is something else here"),
        ("model = other()", "model is set anew behind hvd.DistributedOptimizer"),
        ("model.to('cuda')", "model is moved behind hvd.DistributedOptimizer"),
        ("loss = model.loss(x)", "model.loss() is called"),
        ("loss = model[0](x)", "a part of model is used by itself"),
        ("loss = model.encoder.layer(x)", "model.encoder.layer() is called"),
        ("loss.backward(retain_graph=True)", "several backward passes go through one forward pass"),
        (
            "if optimizer.synchronize(): pass",
            "synchronize of the optimizer is used in a way that is not plain",
        ),
        ("import horovod.tensorflow", "horovod.tensorflow has no equivalent"),
    ],
)
def test_what_is_left_to_a_person(line: str, reason: str) -> None:
    assert reason in reasons(with_line(line))


def test_a_graph_that_is_not_retained() -> None:
    plain = "    loss.backward(retain_graph=None)"
    assert plain in lines(BASE.replace("    loss.backward()", plain))


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("op=hvd.Adasum", "op of hvd.DistributedOptimizer"),
        ("op=kind", "op of hvd.DistributedOptimizer"),
        ("op=hvd.Sum, backward_passes_per_step=2", "gradients of several backward passes are summed"),
        ("compression=Mine", "the compression is not one"),
        ("sparse_as_dense=True", "sparse gradients"),
        ("process_set=g", "within a process set"),
    ],
)
def test_arguments_that_are_left_to_a_person(argument: str, reason: str) -> None:
    assert reason in reasons(with_argument(argument))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("named_parameters=model", "named_parameters=nets[0]", "has no plain name"),
        (
            "optimizer = hvd.Dist",
            "optimizer = trained = hvd.Dist",
            "what becomes of hvd.DistributedOptimizer",
        ),
        ("model.cuda()\n", "trainer.net = model\n", "model is used before hvd.DistributedOptimizer"),
        ("model = make_model()", "model = trainer.model", "model may have another name"),
        ("model.cuda()\n", "step = functools.partial(do, model)\n", "model is used before hvd.Distrib"),
        ("model.cuda()\n", "engine = lib.make_trainer(model=model)\n", "model is used before hvd.Distrib"),
        ("model = make_model()\n", "", "where model comes from is not seen"),
        ("loss = model(x.cuda()).sum()", "loss = compute(x)", "nothing that is seen calls model"),
    ],
)
def test_optimizers_that_are_left_to_a_person(old: str, new: str, reason: str) -> None:
    assert old in BASE
    assert reason in reasons(BASE.replace(old, new))


def test_two_losses_of_one_step_are_left_to_a_person() -> None:
    text = with_argument("backward_passes_per_step=2").replace(
        "    loss.backward()\n", "    loss.backward()\n    other.backward()\n"
    )
    assert "each backward pass of a step follows a forward pass of its own" in reasons(text)


def test_an_old_torch_has_what_the_new_text_holds() -> None:
    old = BASE + "hvd.broadcast_object(1)\n"
    older, newer = (converted(old, version)["train.py"].text for version in ((1, 11, 0), (2, 6, 0)))
    assert older == newer
    compressed = with_argument("compression=hvd.Compression.fp16")
    assert "register_comm_hook" in converted(compressed)["train.py"].text
    raises = "if default_hooks.fp16_compress_hook is not default_hooks.allreduce_hook:\n    raise Not"
    assert raises in converted(compressed, (1, 11, 0))["train.py"].text
    assert "sums of gradients need a hook" in reasons(with_argument("op=hvd.Sum"), (1, 11, 0))
    assert "for torch 1.11 and newer" in reasons(BASE, (1, 8, 1))


def test_a_report_has_the_lines_to_write() -> None:
    found = converted(with_line("hvd.join()"))["train.py"].findings
    advice = "\n".join(one.advice for one in found)
    assert "from torch.distributed.algorithms.join import Join with Join([model]):" in advice
    assert "model = DistributedDataParallel(model, broadcast_buffers=False)" in advice
    assert 'dist.init_process_group("hccl")' in advice
    assert [one.line for one in found if one.severity == "error"] == [11]


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import horovod.torch as hvd\nexcept ImportError:\n    hvd = None\nif hvd: hvd.init()\n",
        "import torch.distributed as dist\nimport horovod.torch as hvd\nif x:\n    hvd.init()\nelse:\n"
        "    dist.init_process_group('nccl')\n",
        "def f(args):\n    if args.horovod:\n        import horovod.torch as hvd\n        hvd.init()\n",
    ],
)
def test_horovod_as_one_of_several_ways_is_left(text: str) -> None:
    (result,) = converted(text).values()
    assert result.text == result.before
    assert all(one.severity == "info" and "one of several ways" in one.message for one in result.findings)
    assert result.findings


@pytest.mark.parametrize(
    "branch",
    [
        "if args.num_proc:\n    print('here')\n    horovod.run(main, np=args.num_proc)\nelse:\n    main()\n",
        "if args.num_proc is not None:\n    horovod.run(main, np=args.num_proc)\nelse:\n    main()\n",
        "if not args.num_proc:\n    main()\nelse:\n    horovod.run(main, np=args.num_proc)\n",
        "if args.join:\n    hvd.join()\n",
    ],
)
def test_a_branch_without_counterpart_is_refused_and_the_rest_converted(branch: str) -> None:
    result = converted("import horovod\n" + BASE + branch)["train.py"]
    name = "hvd.join" if "join" in branch else "horovod.run"
    assert f'    raise NotImplementedError("{name} has no equivalent: start the program with ' in result.text
    assert "horovod." not in result.text.replace('"horovod.run has', "")
    assert "DistributedDataParallel(model" in result.text
    assert ("\n    main()\n" in result.text) == ("main()" in branch)
    assert "print('here')" not in result.text
    told = [one for one in result.findings if "refuses this branch" in one.message]
    assert [one.severity for one in told] == ["warning"]
    assert "hvd.join" in told[0].message or "run_distributed_npu.sh" in told[0].advice


@pytest.mark.parametrize(
    "branch",
    [
        "if hvd.rank() == 0:\n    hvd.join()\n",
        "if epochs:\n    hvd.join()\n",
        "if args.plain:\n    pass\nelse:\n    hvd.join()\n",
        "if args.join: hvd.join()\n",
    ],
)
def test_a_branch_that_no_option_chooses_keeps_the_file_as_it_is(branch: str) -> None:
    assert "hvd.join has no equivalent" in reasons(BASE + branch)


def test_other_libraries_called_so_are_left() -> None:
    assert converted("import horovod.tensorflow as hvd\nhvd.init()\n") == {}
    assert converted("import horovod_torch as hvd  # horovod.torch\nhvd.init()\n") == {}
    assert converted("def f(hvd):\n    'horovod.torch'\n    return hvd.rank()\n") == {}


def test_files_that_belong_together_are_converted_together() -> None:
    comm = "import horovod.torch as hvd\n\n\ndef is_main():\n    return hvd.rank() == 0\n"
    train = BASE.replace("hvd.rank() == 0", "is_main()").replace(
        "import torch\n", "import torch\nfrom comm import is_main\n"
    )
    result = converted({"train.py": train, "comm.py": comm})
    assert "return dist.get_rank() == 0" in result["comm.py"].text
    assert "setup_distributed" not in result["comm.py"].text
    stays = {"train.py": train.replace("for x", "hvd.join()\nfor x"), "comm.py": comm}
    assert "hvd.join" in reasons(stays)
    alone = converted({**stays, "other.py": BASE})
    assert alone["other.py"].text != BASE
    assert "comm.py" not in alone


def test_two_scripts_that_share_a_file() -> None:
    comm = "import horovod.torch as hvd\n\n\ndef mean(x):\n    return hvd.allreduce(x)\n"
    train = BASE.replace("import torch\n", "import torch\nfrom comm import mean\n")
    files = {"a/train.py": train, "a/eval.py": train, "a/comm.py": comm, "b.py": "import comm\n"}
    result = converted(files)
    assert {name for name, file in result.items() if file.text != file.before} == {*files} - {"b.py"}


FUNCTION = """\
import torch
import horovod.torch as hvd


def resume(path):
    model.load_state_dict(torch.load(path))


def save(net):
    torch.save(net.state_dict(), "x")


def step(x):
    model(x).sum().backward()
    optimizer.step()


if __name__ == "__main__":
    hvd.init()
    model = torch.nn.Linear(2, 2).cuda()
    resume("x")
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1), model.named_parameters())
    step(x)
    save(model)
"""


def test_a_model_that_is_wrapped_later() -> None:
    """What is called before the model is wrapped gets the bare one."""
    result = lines(FUNCTION)
    assert '    getattr(model, "module", model).load_state_dict(torch.load(path))' in result
    assert '    torch.save(net.module.state_dict(), "x")' in result
    assert result[-2:] == ["    model = model.module", "    leave_distributed()"]


PARAMETER = """\
import torch
import horovod.torch as hvd


def fit(net, loader):
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), 0.1))
    for x in loader:
        net(x).sum().backward()
        optimizer.step()
    return net


def test(net):
    net.eval()
    return net(1)


def main():
    hvd.init()
    model = torch.nn.Linear(2, 2).cuda()
    fit(model, [])
    test(model)
    torch.save(model.state_dict(), "x")


main()
"""


def test_a_model_that_is_handed_in() -> None:
    result = lines(PARAMETER)
    assert "    net = DistributedDataParallel(net, broadcast_buffers=False)" in result
    assert '    torch.save(model.state_dict(), "x")' in result
    more = "    fit(model, [])\n    model(2).backward()\n"
    assert "model is not the wrapped model here" in reasons(PARAMETER.replace("    fit(model, [])\n", more))
    assert "who calls fit with net is not seen" in reasons(PARAMETER.replace("    fit(model, [])\n", ""))


CLASS = """\
import torch
import horovod.torch as hvd


class Solver:
    def __init__(self):
        hvd.init()
        self.init_model()
        self.init_optimizer()
        self.sync()

    def init_model(self):
        self.model = build()
        self.model.cuda()

    def init_optimizer(self):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.optimizer = hvd.DistributedOptimizer(optimizer, self.model.named_parameters())

    def sync(self):
        hvd.broadcast_parameters(self.model.state_dict(), root_rank=0)

    def run(self, loader):
        for x in loader:
            self.optimizer.zero_grad()
            self.model(x).sum().backward()
            self.optimizer.synchronize()
            with self.optimizer.skip_synchronize():
                self.optimizer.step()


solver = Solver()
solver.run([])
torch.save(solver.model.state_dict(), "x")
"""


def test_a_class() -> None:
    result = lines(CLASS)
    at = result.index("        self.optimizer = optimizer")
    assert result[at + 1] == f"        {WRAPPED.replace('model', 'self.model')}"
    assert "            self.optimizer.step()" in result
    assert 'torch.save(getattr(solver.model, "module", solver.model).state_dict(), "x")' in result
    handed_out = "        self.model.cuda()\n        return self.model\n"
    more = CLASS.replace("        self.model.cuda()\n", handed_out)
    assert "self.model is handed on where it may not be wrapped yet" in reasons(more)


def test_two_optimizers_of_one_model() -> None:
    both = OPTIMIZER + OPTIMIZER.replace("optimizer =", "second =")
    assert "model has several optimizers" in reasons(BASE.replace(OPTIMIZER, both))
    either = f"if half:\n    {OPTIMIZER[:-2]}, compression=hvd.Compression.fp16)\nelse:\n    {OPTIMIZER}"
    assert lines(BASE.replace(OPTIMIZER, either)).count(f"    {WRAPPED}") == 2


def test_questions_about_the_model() -> None:
    asked = "isinstance({}, Net), hasattr(model, 'module'), isinstance(model, nn.DataParallel)"
    text = with_line(f"a = {asked.format('model')}")
    text += "bare = model.module if hasattr(model, 'module') else model\nprint(model.name, type(model))\n"
    result = "\n".join(lines(text))
    assert asked.format("model.module") in result
    assert "bare = model.module if hasattr(model, 'module') else model\n" in result
    assert "print(model.module.name, type(model.module))" in result


def test_a_model_that_is_wrapped_under_a_condition() -> None:
    result = lines(BASE.replace(OPTIMIZER, f"if args.many:\n    {OPTIMIZER}"))
    assert result[result.index("if args.many:") + 1] == f"    {WRAPPED}"
    assert '    torch.save(getattr(model, "module", model).state_dict(), "model.pt")' in result


def test_the_wrapped_model_that_a_function_returns() -> None:
    text = PARAMETER.replace("    fit(model, [])\n", "    model = fit(model, [])\n")
    assert '    torch.save(model.module.state_dict(), "x")' in lines(text)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.py").write_text(BASE)
    return tmp_path / "project"


def test_it_comes_with_the_migration(source: Path, tmp_path: Path) -> None:
    (source / "run.sh").write_text("horovodrun -np 2 python train.py\n")
    assert run(["-q", "-i", str(source), "-o", str(tmp_path / "out"), "-v", "2.6"]) == 0
    result = tmp_path / "out" / "project_msft"
    text = (result / "train.py").read_text()
    assert 'backend = "hccl"' in text
    assert "import torch_npu" in text
    with open(result / "migration_report" / "change_list.csv", encoding="utf-8-sig") as file:
        changes = [row for row in csv.DictReader(file) if row["Rule"] == "NPU930"]
    assert len(changes) == 9
    assert {row["Safety"] for row in changes} == {"unsafe"}
    review = (result / "migration_report" / "manual_review.csv").read_text(encoding="utf-8-sig")
    assert "run.sh,1,1,NPU932" in review
    assert "NPU614" not in review
    assert "training script" not in review


@pytest.mark.parametrize("options", [["--safe-only"], ["--ignore", "NPU930"]])
def test_it_can_be_left_out(source: Path, tmp_path: Path, options: list[str]) -> None:
    assert run(["-q", "-i", str(source), "-o", str(tmp_path / "out"), "-v", "2.6", *options]) == 0
    assert "import horovod.torch as hvd" in (tmp_path / "out" / "project_msft" / "train.py").read_text()
