"""Which sums of a training loop are summed over the ranks, which averaged, and which are left to a person."""

from __future__ import annotations

import pytest

from migrator.convert.distributed.convert import Conversion
from tests.convert.distributed.test_convert import BASE, converted, new_lines, reported

SUMMED = "sum_over_ranks(total)"
MEAN = "sum_over_ranks(total) / dist.get_world_size()"
SHARE = "total covers only the rank's own share of the data"


def trained(inside: str, behind: str, before: str = "total = 0.0", head: str = "") -> Conversion:
    """BASE with statements before, in and behind the loop over batches."""
    text = BASE.replace("for epoch", f"{head}for epoch", 1)
    text = text.replace("    for x in loader:\n", f"    {before}\n    for x in loader:\n", 1)
    text += "".join(f"        {line}\n" for line in inside.splitlines())
    return converted(text + "".join(f"    {line}\n" for line in behind.splitlines()))


def reductions(result: Conversion) -> list[str]:
    return [line.strip() for line in new_lines(result) if "sum_over_ranks(" in line and "def " not in line]


@pytest.mark.parametrize(
    ("inside", "behind", "after"),
    [
        ("total += loss.item()", "print(total / len(loader))", MEAN),
        ("total += loss.item()", "total /= len(loader)\nprint(total)", MEAN),
        ("total += loss.item()", "total = total / len(loader)\nprint(total)", MEAN),
        ("total += loss.item()", "mean = 100. * total / len(loader)\nhistory.append(mean)", MEAN),
        ("total += loss.item() * len(x)", "print(total / len(loader.dataset))", SUMMED),
        ("total += loss.item() * len(x)", "print('%.3f' % (total / len(data)))", SUMMED),
        ("total += loss.item() * len(x)", "print(total / float(len(data)))", SUMMED),
        ("total += (x > 0).sum().item()", "print(f'{total} of {len(data)}')", SUMMED),
        ("total += loss.detach()", "print(total.item() / len(loader))", MEAN),
    ],
)
def test_a_sum(inside: str, behind: str, after: str) -> None:
    result = trained(inside, behind)
    assert reductions(result) == [f"total = {after}"]
    lines = result.files["train.py"].text.splitlines()
    place = lines.index(f"    total = {after}")
    assert lines[place - 1].startswith("        ")  # behind the loop
    assert lines.count("def sum_over_ranks(value):") == 1


def test_sums_that_are_divided_by_each_other() -> None:
    result = trained("total += loss.item() * len(x)\nn += len(x)", "print(total / n)", "total, n = 0, 0")
    assert reductions(result) == ["total = sum_over_ranks(total)", "n = sum_over_ranks(n)"]
    result = trained("total += loss.item()\nn += 1", "print(total / n)", "total, n = 0, 0")
    assert reductions(result) == ["total = sum_over_ranks(total)", "n = sum_over_ranks(n)"]


@pytest.mark.parametrize(
    ("inside", "behind", "before"),
    [
        ("total += loss.item()", "print(total / 100)", "total = 0.0"),
        ("total += loss.item()", "print(total / steps)", "total = 0.0"),
        ("total += loss.item()", "best = min(best, total)", "total = 0.0"),
        ("total += loss.item()", "print(total, total / len(loader))", "total = 0.0"),
        ("total += loss.item() * len(x)", "print(total / len(loader), total / len(data))", "total = 0.0"),
    ],
)
def test_a_sum_that_a_person_has_to_judge(inside: str, behind: str, before: str) -> None:
    result = trained(inside, behind, before)
    assert not result.reason
    assert reductions(result) == []
    assert SHARE in reported(result)
    (advice,) = [one.advice for one in result.files["train.py"].findings if one.message == SHARE]
    assert "dist.all_reduce(total)" in advice


@pytest.mark.parametrize(
    ("inside", "behind", "before"),
    [
        ("step += 1", "print(step)", "pass"),  # counts over all epochs
        ("n += 1", "print(n)", "n = 0"),  # counts rounds, which are the same on each rank
        ("total += loss.item()", "pass", "total = 0.0"),  # is not used behind the loop
        ("total += loss.item()", "total = 0.0", "total = 0.0"),
        ("pass", "print(sum(len(one) for one in data))", "pass"),
    ],
)
def test_what_is_no_sum_of_the_data(inside: str, behind: str, before: str) -> None:
    result = trained(inside, behind, before)
    assert reductions(result) == []
    assert not [one for one in reported(result) if "share" in one]


def test_a_sum_that_is_shown_every_few_batches() -> None:
    window = "total += loss.item()\nif {} % 10 == 9:\n    print(total / 10)\n    total = 0.0"
    plain = BASE.replace("for x in loader", "for i, x in enumerate(loader)")
    lines = "".join(f"        {line}\n" for line in window.format("i").splitlines())
    result = converted(plain.replace("    for i", "    total = 0.0\n    for i") + lines)
    text = result.files["train.py"].text
    assert f"        if i % 10 == 9:\n            total = {MEAN}\n            print(total / 10)\n" in text
    drawn = trained(window.format("int(loss)"), "pass")  # not the same on each rank: they would wait for ever
    assert reductions(drawn) == []
    assert SHARE in reported(drawn)


METER = """\
class Meter:
    def __init__(self):
        self.sum = self.count = self.avg = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count


"""


def test_a_meter() -> None:
    result = trained("meter.update(loss.item())", "print(meter.avg)", "meter = Meter()", METER)
    assert reductions(result) == [f"meter.{name} = sum_over_ranks(meter.{name})" for name in ("sum", "count")]
    assert "    meter.avg = meter.sum / meter.count" in new_lines(result)
    once = trained("meter.update(loss.item())", "print(meter.avg)", "pass", METER + "meter = Meter()\n")
    assert reductions(once) == []
    assert "meter.avg covers only the rank's own share of the data" in reported(once)


def test_a_list_is_reported() -> None:
    result = trained("losses.append(loss.item())", "print(sum(losses) / len(losses))", "losses = []")
    assert "losses covers only the rank's own share of the data" in reported(result)


BOTH = """\
def run(loader, optimizer=None):
    training = optimizer is not None
    total = 0.0
    for x in loader:
        loss = model(x.cuda()).sum()
        if training:
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total / len(loader{})


for epoch in range(3):
    run(loader, optimizer)
    run(val_loader)
"""


def test_a_loop_that_validates_too() -> None:
    head = BASE[: BASE.index("for epoch")] + "val_loader = DataLoader(other_data, batch_size=4)\n\n\n"
    result = converted(head + BOTH.format(""))
    assert reductions(result) == ["total = " + MEAN]
    assert "val_loader = DataLoader(other_data, batch_size=4)\n" in result.files["train.py"].text
    assert "    loader.sampler.set_epoch(epoch)" in new_lines(result)
    result = converted(head + BOTH.format(".dataset"))
    assert f"    if training:\n        total = {SUMMED}\n" in result.files["train.py"].text
