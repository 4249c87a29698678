"""Where the training loader and the model are found, in the ways in which scripts write their loops."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.convert.distributed.convert import Conversion, convert
from tests.convert.distributed.test_convert import BASE, converted, new_lines, reported

HEAD, _, LOOP = BASE.partition("for epoch in range(3):\n    for x in loader:\n")
STEP = LOOP.replace("        ", "")
LOADER = "loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))"
WRAPPED = "model = DistributedDataParallel(model)"
NO_LOADER = (
    "no loop with backward() iterates over a recognized DataLoader, or draws batches that ranks could share"
)


def indented(text: str, depth: int) -> str:
    return "".join(" " * depth + line + "\n" for line in text.splitlines())


@pytest.mark.parametrize(
    "loop",
    [
        "batches = iter(loader)\nfor step in range(9):\n    x = next(batches)\n",
        "batches = iter(loader)\nwhile step < 9:\n    x = next(batches)\n",
        "batches = iter(loader)\nfor step in range(9):\n    try:\n        x = next(batches)\n"
        "    except StopIteration:\n        batches = iter(loader)\n        x = next(batches)\n",
        "batches = itertools.cycle(loader)\nfor step in range(9):\n    x = next(batches)\n",
        "def forever(batches):\n    while True:\n        for batch in batches:\n            yield batch\n\n\n"
        "for x in forever(loader):\n",
        "for step, x in zip(range(9), loader):\n",
    ],
)
def test_batches_that_are_drawn(loop: str) -> None:
    result = converted("import itertools\n" + HEAD + "step = 0\n" + loop + indented(STEP, 4))
    if "zip" in loop:  # what else it gives is not known
        assert result.reason == NO_LOADER
        return
    assert not result.reason
    lines = new_lines(result)
    assert LOADER in lines
    assert WRAPPED in lines
    assert "without set_epoch every epoch has the same sample order" in reported(result)


def test_what_is_drawn_beside_the_batches_is_not_shared() -> None:
    val = "val_loader = DataLoader(others, batch_size=4)\n"
    look = "    for x in elsewhere:\n" + indented(STEP, 8) + "    look(next(iter(val_loader)))\n"
    assert converted(HEAD + val + "for epoch in range(3):\n" + look).reason == NO_LOADER
    drawn = "batches = iter(loader)\nmore = iter(val_loader)\nfor step in range(9):\n    x = next(batches)\n"
    drawn += "    if step % 3 == 0:\n        look(next(others))\n" + indented(STEP, 4)
    result = converted(HEAD + val + drawn)
    assert LOADER in new_lines(result)
    assert val in result.files["train.py"].text


def test_two_loaders_side_by_side() -> None:
    both = "more = DataLoader(others, batch_size=4, shuffle=True)\nfor epoch in range(3):\n"
    result = converted(HEAD + both + "    for x, y in zip(loader, more):\n" + indented(STEP, 8))
    assert LOADER in new_lines(result)
    assert "more = DataLoader(others, batch_size=4, sampler=DistributedSampler(others))" in new_lines(result)


def test_an_epoch_loop_with_while() -> None:
    loop = "epoch = 0\nwhile epoch < 3:\n    for x in loader:\n" + indented(STEP, 8) + "    epoch += 1\n"
    text = converted(HEAD + loop).files["train.py"].text
    assert "while epoch < 3:\n    loader.sampler.set_epoch(epoch)\n    for x in loader:\n" in text


TABLE = """\
for epoch in range(3):
    for phase in ["train", "val"]:
        for x in loaders[phase]:
            with torch.set_grad_enabled(phase == "train"):
                loss = model(x.cuda()).sum()
                if phase == "train":
                    loss.backward()
                    optimizer.step()
"""


@pytest.mark.parametrize(
    ("table", "after"),
    [
        (
            'loaders = {"train": DataLoader(data, shuffle=True), "val": DataLoader(others)}',
            '{"train": DataLoader(data, sampler=DistributedSampler(data)), "val": DataLoader(others)}',
        ),
        (
            'loaders = {k: DataLoader(sets[k], shuffle=True) for k in ["train", "val"]}',
            'DataLoader(sets[k], sampler=DistributedSampler(sets[k]) if k == "train" else None, '
            'shuffle=k != "train") for k in ["train", "val"]}',
        ),
        (
            'loaders = {k: DataLoader(sets[k], shuffle=k == "train") for k in sets}',
            'loaders = {k: DataLoader(sets[k], sampler=DistributedSampler(sets[k], shuffle=k == "train") '
            'if k == "train" else None, shuffle=(k == "train") and k != "train") for k in sets}',
        ),
        (
            "loaders = {k: DataLoader(sets[k]) for k in sets}",
            "sampler=DistributedSampler(sets[k], shuffle=False) if",
        ),
    ],
)
def test_a_table_of_loaders(table: str, after: str) -> None:
    result = converted(HEAD + table + "\n" + TABLE)
    assert any(after in line for line in new_lines(result)), new_lines(result)
    assert '    loaders["train"].sampler.set_epoch(epoch)' in new_lines(result)


def test_a_loop_of_which_it_is_not_plain_whether_it_trains() -> None:
    run = "def run(loader, training):\n    for x in loader:\n        loss = model(x.cuda()).sum()\n"
    run += "        if training:\n            loss.backward()\n\n\n"
    val = "val_loader = DataLoader(others)\n"
    calls = "for epoch in range(3):\n    run(loader, True)\n    run(val_loader, {})\n"
    assert val in converted(HEAD + val + run + calls.format("False")).files["train.py"].text
    doubtful = converted(HEAD + val + run + calls.format("option"))
    assert doubtful.reason == "the same loop trains and validates, and its loaders cannot be told apart"


def test_a_closure() -> None:
    closure = "    for x in loader:\n        def closure():\n            loss = model(x.cuda()).sum()\n"
    closure += "            loss.backward()\n            return {}\n\n        optimizer.step(closure)\n"
    text = HEAD.replace("optim.SGD", "optim.LBFGS") + "for epoch in range(3):\n" + closure
    lines = converted(text.format("loss")).files["train.py"].text
    reduced = "loss = sum_over_ranks(loss) / dist.get_world_size()\n            return loss\n"
    assert reduced in lines
    assert converted(text.format("loss.item()")).reason == "L-BFGS needs the same loss on every rank"
    plain = converted(text.format("loss").replace("LBFGS", "SGD"))
    assert "sum_over_ranks" not in plain.files["train.py"].text


def test_what_is_called_without_gradients_may_be_another_method() -> None:
    inside = "        with torch.no_grad():\n            model.sample(3)\n"
    lines = new_lines(converted(BASE + inside + "model.sample(9)\n"))
    assert "            model.module.sample(3)" in lines
    assert "model.module.sample(9)" in lines
    assert "training calls model.sample()" in converted(BASE + "        loss = model.sample(3)\n").reason


def test_questions_about_the_model() -> None:
    asked = 'print(hasattr(model, "head"), isinstance(model, nn.Linear), getattr(model, "bias", None))'
    put = 'setattr(model, "epoch", epoch)'
    wrapper = 'net = model.module if hasattr(model, "module") else None\nif model:\n    print(net)'
    result = converted(BASE + f"{asked}\n{put}\n{wrapper}\n")
    assert {each.replace("(model,", "(model.module,") for each in (asked, put)} <= {*new_lines(result)}
    assert wrapper in result.files["train.py"].text
    assert not any("is a DistributedDataParallel model here" in each for each in reported(result))


def test_a_global_model_is_wrapped_before_a_function_trains_it() -> None:
    head, _, loop = BASE.partition("for epoch in range(3):\n")
    function = "def one_epoch():\n" + loop + "\n\n"
    main = "for epoch in range(3):\n    one_epoch()\n    torch.save(model.state_dict(), 'a.pt')\n"
    lines = converted(head + function + main).files["train.py"].text.splitlines()
    assert lines.index(WRAPPED) < lines.index("for epoch in range(3):")
    assert "    loader.sampler.set_epoch(epoch)" in lines
    assert "        torch.save(model.module.state_dict(), 'a.pt')" in lines


def test_a_model_that_is_trained_in_part() -> None:
    lines = new_lines(converted(BASE.replace("model.parameters()", "model.head.parameters()")))
    assert "model = DistributedDataParallel(model, find_unused_parameters=True)" in lines


def test_a_model_that_a_function_gives_back() -> None:
    head, _, loop = BASE.partition("for epoch")
    function = "def fit(net):\n    for epoch" + loop.replace("model(", "net(").replace("\n", "\n    ")
    result = converted(head + function.rstrip() + "\n    return net\n\n\nbest = fit(model)\nbest.freeze()\n")
    assert "best.module.freeze()" in new_lines(result)
    assert "is a DistributedDataParallel model here" not in " ".join(reported(result))


def test_bars_are_shown_by_one_rank() -> None:
    text = "from tqdm.auto import tqdm, trange\n" + BASE.replace("in loader", "in tqdm(loader, leave=False)")
    text = text.replace("range(3)", "trange(3, disable=quiet)")
    result = converted(text + "def show():\n    return tqdm(total=3)\n")
    hidden = "disable=dist.is_initialized() and dist.get_rank() != 0"
    assert f"    for x in tqdm(loader, leave=False, {hidden}):" in new_lines(result)
    assert "    return tqdm(total=3, disable=dist.get_rank() != 0)" in new_lines(result)
    assert "trange(3, disable=quiet)" in result.files["train.py"].text


def test_batch_norm_is_reported() -> None:
    result = converted(BASE.replace("nn.Linear(2, 2)", "nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))"))
    assert "BatchNorm computes mean and variance of each rank's own batch" in reported(result)
    assert not [one for one in reported(converted(BASE)) if "BatchNorm" in one]


def test_what_is_moved_to_a_card_keeps_its_other_arguments() -> None:
    text = BASE.replace("x.cuda()", "x.cuda(0, non_blocking=True)")
    text = text.replace("model.cuda()", "model.cuda(device=0)") + "y = x.cuda(non_blocking=True)\n"
    text = converted(text).files["train.py"].text
    assert "model(x.cuda(non_blocking=True))" in text
    assert "model.cuda()\n" in text
    assert "y = x.cuda(non_blocking=True)\n" in text


def in_folder(folder: Path, files: dict[str, str]) -> Conversion:
    """The conversion of a program whose files jedi can read."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return convert("train.py", files.get, root=folder)


MAKE = """\
from torch.utils.data import DataLoader


def make_loader(data):
    return DataLoader(data, batch_size=4, shuffle=True)


class Data:
    def __init__(self, data):
        self.data = data
        self.loader = DataLoader(self.data, batch_size=4, shuffle=True)

    def batches(self):
        return DataLoader(self.data, batch_size=4, shuffle=True)


class Images(Data):
    @classmethod
    def small(cls):
        return cls([])
"""


@pytest.mark.parametrize(
    ("imports", "loader", "place"),
    [
        ("from pkg import make_loader", "make_loader(data)", "pkg/make.py"),  # given on by __init__
        ("import pkg.make as m", "m.make_loader(data)", "pkg/make.py"),
        ("import pkg.make", "pkg.make.make_loader(data)", "pkg/make.py"),
        ("from pkg import make", "make.make_loader(data)", "pkg/make.py"),
        ("from pkg.make import Data", "Data(data).batches()", "pkg/make.py"),
        ("from pkg.make import Images", "Images(data).batches()", "pkg/make.py"),  # inherited
        ("from pkg.make import Images", "Images.small().batches()", "pkg/make.py"),
        ("from pkg.make import *", "make_loader(data)", "pkg/make.py"),
        ("from pkg.make import Data\nthings = Data(data)", "things.loader", "pkg/make.py"),
        (
            "import sys\nsys.path.append('src')\nfrom far import make_loader",
            "make_loader(data)",
            "src/far.py",
        ),
    ],
)
def test_a_loader_from_another_file(tmp_path: Path, imports: str, loader: str, place: str) -> None:
    text = BASE.replace("DataLoader(data, batch_size=4, shuffle=True)", loader)
    text = text.replace("loader =", f"{imports}\nloader =", 1)
    init = "from .make import make_loader\n"
    files = {"train.py": text, "pkg/__init__.py": init, "pkg/make.py": MAKE, "src/far.py": MAKE}
    result = in_folder(tmp_path, files)
    assert not result.reason
    assert any("sampler=DistributedSampler(" in line for line in new_lines(result, place))
    assert WRAPPED in new_lines(result)


def test_what_jedi_keeps_on_the_disk_may_be_half_written(tmp_path: Path, monkeypatch) -> None:
    import jedi
    import parso.cache

    usual, load = Path(jedi.settings.cache_directory), parso.cache._load_from_file_system

    def half_written(grammar: str, path: Path, changed: float, cache_path: Path) -> object:
        if cache_path == usual:
            raise EOFError("Ran out of input")
        return load(grammar, path, changed, cache_path=cache_path)

    monkeypatch.setattr(parso.cache, "_load_from_file_system", half_written)
    parso.cache.parser_cache.clear()
    text = BASE.replace("DataLoader(data, batch_size=4, shuffle=True)", "Images.small().batches()")
    text = text.replace("loader =", "from pkg.make import Images\nloader =", 1)
    files = {"train.py": text, "pkg/__init__.py": "", "pkg/make.py": MAKE}
    assert not in_folder(tmp_path, files).reason
    assert Path(jedi.settings.cache_directory) == usual


def test_a_trainer_that_inherits(tmp_path: Path) -> None:
    base = "class Base:\n    def __init__(self, net, loader):\n"
    base += "        self.net, self.loader = net.cuda(), loader\n"
    base += "        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)\n\n"
    base += "    def fit(self):\n        for epoch in range(3):\n            self.one_epoch()\n"
    trainer = "from base import Base\n\n\nclass Trainer(Base):\n    def __init__(self, net, loader, name):\n"
    trainer += "        super().__init__(net, loader)\n\n    def one_epoch(self):\n"
    trainer += "        for x in self.loader:\n            self.net(x.cuda()).sum().backward()\n"
    trainer += "            self.optimizer.step()\n\n"
    trainer += "    def save(self):\n        torch.save(self.net.state_dict(), 'a.pt')\n"
    head = BASE[: BASE.index("model.cuda()")]
    files = {
        "train.py": head + "from trainer import Trainer\n\nTrainer(model, loader, 'a').fit()\n",
        "base.py": "import torch\n\n\n" + base,
        "trainer.py": "import torch\n" + trainer,
    }
    result = in_folder(tmp_path, files)
    assert not result.reason
    wrap = "            self.net = DistributedDataParallel(self.net)"
    assert wrap in new_lines(result, "base.py")
    assert f"{' ' * 16}self.loader.sampler.set_epoch(epoch)" in new_lines(result, "base.py")
    assert any('getattr(self.net, "module", self.net)' in line for line in new_lines(result, "trainer.py"))


def test_a_method_that_is_left_open() -> None:
    base = "class Base:\n    def one_epoch(self):\n        raise NotImplementedError\n\n    def fit(self):\n"
    base += "        for epoch in range(3):\n            self.one_epoch()\n\n\nclass Trainer(Base):\n"
    base += "    def __init__(self, net):\n        self.net = net\n\n    def one_epoch(self):\n"
    base += "        for x in loader:\n            self.net(x.cuda()).sum().backward()\n"
    base += "            optimizer.step()\n\n\n"
    head = BASE[: BASE.index("for epoch")]
    lines = new_lines(converted(head + base + "trainer = Trainer(model)\ntrainer.fit()\n"))
    assert WRAPPED in lines
    assert "            loader.sampler.set_epoch(epoch)" in lines


def test_an_object_that_is_made_with_the_loader() -> None:
    ahead = "class Ahead:\n    def __init__(self, loader):\n        self.items = iter(loader)\n\n"
    ahead += "    def next(self):\n        return next(self.items, None)\n\n\n"
    loop = "batches = Ahead(loader)\nx = batches.next()\nwhile x is not None:\n" + indented(STEP, 4)
    lines = new_lines(converted(HEAD + ahead + loop + "    x = batches.next()\n"))
    assert LOADER in lines
    assert not [one for one in lines if "own_turn" in one]


def test_an_optimizer_that_the_model_makes() -> None:
    net = "class Net(nn.Module):\n    def forward(self, x):\n        return x\n\n    def optimizer(self):\n"
    net += "        every = dict(self.named_parameters())\n        groups = [p for n, p in every.items()]\n"
    net += "        return torch.optim.AdamW([{'params': groups}])\n\n\n"
    text = BASE.replace("data =", net + "data =", 1).replace("nn.Linear(2, 2)\nmodel", "Net()\nmodel")
    text = text.replace("torch.optim.SGD(model.parameters(), lr=0.1)", "model.optimizer()")
    assert WRAPPED in new_lines(converted(text))


def test_a_model_that_a_trainer_keeps_and_hands_over_in_a_tuple() -> None:
    head, middle, loop = BASE.partition("for epoch")
    loop = middle + loop.replace("model(", "self.model(").replace("optimizer", "self.optimizer")
    body = "class Trainer:\n    def __init__(self):\n        model = nn.Linear(2, 2)\n"
    body += "        optimizer = torch.optim.SGD([{'params': model.get_params()}], lr=0.1)\n"
    body += "        self.model, self.optimizer = model, optimizer\n"
    body += (
        "        self.model = self.model.cuda()\n\n    def fit(self):\n"
        + indented(loop, 8)
        + "\n\nTrainer().fit()\n"
    )
    head = head[: head.index("model =")]
    assert "        self.model = DistributedDataParallel(self.model)" in new_lines(converted(head + body))


def test_each_fold_has_a_model_of_its_own() -> None:
    head, loader, rest = BASE.partition("loader =")
    save = "    torch.save(model.state_dict(), 'a.pt')\n"
    folds = f"for fold in range(3):\n{indented(loader + rest, 4)}{save}"
    lines = new_lines(converted(head + folds + "print(model(data))\n"))
    assert f"    {WRAPPED}" in lines
    assert "        torch.save(model.module.state_dict(), 'a.pt')" in lines


def test_losses_of_the_whole_batch_are_reported() -> None:
    summed = "the loss is summed over the batch, but the ranks average its gradients"
    compared = "samples are compared within the batch: each rank compares only its own"
    text = BASE.replace("model(x.cuda()).sum()", "F.mse_loss(model(x.cuda()), x, reduction='sum')")
    assert summed in reported(converted(text))
    assert summed not in reported(converted(BASE + "val = F.mse_loss(a, b, reduction='sum')\n"))
    text = BASE.replace("model(x.cuda()).sum()", "nce(model(x.cuda()))")
    head = "def nce(z):\n    return torch.matmul(z, z.T).mean()\n\n\n"
    assert compared in reported(converted(head + text))
    head = (
        "class NTXentLoss(nn.Module):\n    def forward(self, a, b):\n        return (a @ b.t()).mean()\n\n\n"
    )
    text = head + BASE
    assert compared in reported(converted(text))
    assert compared not in reported(converted(text.replace("NTXentLoss", "Attention")))


def test_files_of_images_are_written_by_one_rank() -> None:
    text = "from torchvision.utils import save_image\n" + BASE + "save_image(x, 'a.png')\n"
    assert "    save_image(x, 'a.png')" in new_lines(converted(text))


def test_a_card_that_is_chosen_by_a_context() -> None:
    text = converted(BASE + "with torch.cuda.device(args.gpu):\n    pass\n").files["train.py"].text
    assert 'with torch.cuda.device(int(os.environ.get("LOCAL_RANK", 0))):' in text
