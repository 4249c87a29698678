"""Batches that a program draws itself, and loaders of a function that makes others: what each rank takes."""

from __future__ import annotations

import pytest

from tests.convert.distributed.test_convert import BASE, converted, new_lines, reported
from tests.convert.distributed.test_find import HEAD, NO_LOADER, STEP, indented
from tests.timing import grows_evenly

DATA = HEAD.replace("loader = DataLoader(data, batch_size=4, shuffle=True)\n", "").replace(
    "from torch.utils.data import DataLoader\n", ""
)
HEADS = {
    "get_batch": "def get_batch(n):\n    at = torch.randint(len(data), (n,))\n    return data[at]\n\n\n",
    "batches": "def batches(data, n):\n    for i in range(0, len(data), n):\n        "
    "yield data[i : i + n]\n\n\n",
    "Source": "class Source:\n    def __init__(self):\n        self.at = 0\n\n    def next_batch(self):\n"
    "        self.at += 4\n        return data[self.at - 4 : self.at]\n\n\nsource = Source()\n",
    "part": "def part(data, i):\n    return data[i : i + 4]\n\n\n",
}


def drawn(loop: str, *heads: str) -> str:
    return DATA + "".join(HEADS[one] for one in heads) + loop + indented(STEP, 4)


@pytest.mark.parametrize(
    ("loop", "after", "head"),
    [
        (
            "for step in range(9):\n    x = get_batch(4)\n",
            "    x = own_turn(lambda: get_batch(4))",
            "get_batch",
        ),
        ("while step < 9:\n    x = get_batch(4)\n", "    x = own_turn(lambda: get_batch(4))", "get_batch"),
        ("for x in batches(data, 4):\n", "for x in ShareOfRank(batches(data, 4)):", "batches"),
        (
            "for step, x in enumerate(batches(data, 4)):\n",
            "for step, x in enumerate(ShareOfRank(batches(data, 4))):",
            "batches",
        ),
        (
            "for i in range(9):\n    x = source.next_batch()\n",
            "    x = own_turn(lambda: source.next_batch())",
            "Source",
        ),
        (
            "for i in range(0, len(data), 4):\n    x = data[i : i + 4]\n",
            "for i in ShareOfRank(range(0, len(data), 4)):",
            "part",
        ),
        (
            "for n, i in enumerate(range(0, len(data), 4)):\n    x = part(data, i)\n",
            "for n, i in enumerate(ShareOfRank(range(0, len(data), 4))):",
            "part",
        ),
    ],
)
def test_each_rank_takes_its_own(loop: str, after: str, head: str) -> None:
    result = converted(drawn("step = 0\n" + loop, head))
    assert not result.reason
    assert after in new_lines(result)
    seeded = "seed_alike(torch.manual_seed)" in new_lines(result)
    assert seeded is (head == "get_batch")
    said = "every rank draws the batches of all ranks in turn, and trains on its own batches"
    assert said in reported(result)


@pytest.mark.parametrize(
    ("loop", "head"),
    [
        ("for epoch in range(9):\n    x = data\n", "get_batch"),  # all of the data in each step
        ("for epoch in range(9):\n    rate = rates[epoch]\n    x = data\n", "get_batch"),
        ("for x in elsewhere.batches():\n", "get_batch"),
        (
            "for i in range(9):\n    x = data[i : i + 4]\n    if i % 3 == 0:\n        evaluate(model)\n",
            "part",
        ),
    ],
)
def test_what_cannot_be_shared_is_refused(loop: str, head: str) -> None:
    assert converted(drawn(loop, head)).reason == NO_LOADER


def test_a_loop_that_validates_too() -> None:
    run = "def run(data, training):\n    for x in batches(data, 4):\n        loss = model(x.cuda()).sum()\n"
    run += "        if training:\n            loss.backward()\n            optimizer.step()\n\n\n"
    result = converted(DATA + HEADS["batches"] + run + "run(data, True)\nrun(others, False)\n")
    assert result.reason.startswith("the same loop trains and validates")


def test_parts_of_a_step_are_not_shared() -> None:
    step = STEP.replace("optimizer.step()\n", "").replace("optimizer.zero_grad()\n", "")
    loop = (
        f"for epoch in range(9):\n    for x in batches(data, 4):\n{indented(step, 8)}    optimizer.step()\n"
    )
    assert converted(DATA + HEADS["batches"] + loop).reason == NO_LOADER


def test_a_state_that_goes_from_batch_to_batch() -> None:
    loop = "state = None\nfor x in {}:\n    out, state = model(x.cuda(), state)\n    out.sum().backward()\n"
    loop += "    optimizer.step()\n"
    reason = "the model passes state from one batch to the next"
    assert converted(DATA + HEADS["batches"] + loop.format("batches(data, 4)")).reason.startswith(reason)
    assert converted(HEAD + loop.format("loader")).reason.startswith(reason)
    fresh = loop.replace("    out, state", "    state = begin()\n    out, state")
    assert not converted(HEAD + fresh.format("loader")).reason
    kept = loop[loop.index("for") :].replace("state", "self.state").format("loader")
    kept = "class T:\n    def fit(self):\n" + indented(kept, 8) + "\n\nT().fit()\n"
    assert converted(HEAD + kept).reason.startswith(reason)
    again = BASE.replace("loss = model(x.cuda()).sum()", "x = model(x)\n        loss = x.sum()")
    assert not converted(again).reason


def test_the_number_of_batches_is_that_of_a_rank() -> None:
    loop = (
        f"def fit(own):\n    for x in own:\n{indented(STEP, 8)}\n\ndef look(own):\n    return len(own)\n\n\n"
    )
    made = "def make(data):\n    return batches(data, 4)\n\n\ntrain, others = make(data), make(more)\n"
    shown = "print(len(train), look(others))\nfit(train)\n"
    result = converted(DATA + HEADS["batches"] + loop + made + shown)
    assert "print(len(ShareOfRank(train)), look(others))" in new_lines(result)
    assert "    return len(own)\n" in result.files["train.py"].text


def agreed(text: str) -> str:
    """The line of a converted program in which the ranks agree."""
    found = [one for one in new_lines(converted(text)) if " on_any_rank(" in one and "def " not in one]
    assert len(found) < 2
    return "".join(found)


@pytest.mark.parametrize(
    ("more", "after"),
    [
        ("    if bad(loss):\n        break\n", "    if on_any_rank(bad(loss)):"),
        ("    if epoch == 2:\n        break\n", ""),
        ("    if options.once:\n        break\n", ""),
        ("        if step == 3:\n            break\n        step += 1\n", ""),
        ("    stopper(loss)\n    if stopper.stop:\n        break\n", "    if on_any_rank(stopper.stop):"),
    ],
)
def test_ranks_leave_a_loop_together(more: str, after: str) -> None:
    assert agreed(BASE.replace("data =", "step = 0\ndata =", 1) + more) == after


def test_what_ends_training_by_one_batch_is_reported() -> None:
    text = BASE.replace("    for x", "    total, all_ = 0.0, []\n    for x")
    text += "        total += loss.item()\n        all_.append(loss.item())\n"
    last = "    last = all_[-1]\n    if last < 0.1:\n        break\n"
    assert "last covers only the rank's own share of the data" in reported(converted(text + last))
    mean = "    mean = total / len(loader)\n    if mean < 0.1:\n        break\n"
    assert not [one for one in reported(converted(text + mean)) if "own share" in one]


@pytest.mark.parametrize(
    ("skip", "after"),
    [
        ("if loss.isnan():\n            continue\n        {}", "if on_any_rank(loss.isnan()):"),
        ("if not loss.isnan():\n            {}", "if not on_any_rank(loss.isnan()):"),
        ("if loss < 9:\n            {}", "if not on_any_rank(not (loss < 9)):"),
        (
            "if loss.isnan():\n            pass\n        else:\n            {}",
            "if on_any_rank(loss.isnan()):",
        ),
        ("if options.train:\n            {}", ""),
    ],
)
def test_ranks_skip_a_batch_together(skip: str, after: str) -> None:
    assert agreed(BASE.replace("loss.backward()", skip.format("loss.backward()"))).strip() == after


def test_numbers_in_a_table_are_reported() -> None:
    text = BASE.replace("    for x", "    sums = {'a': 0.0}\n    for x")
    text += "        sums['a'] += loss.item()\n    print(sums)\n"
    assert "sums covers only the rank's own share of the data" in reported(converted(text))


def test_the_time_grows_with_the_names_in_a_loop() -> None:
    def program(count: int) -> str:
        head, loop, behind = BASE.partition("    for x in loader:\n")
        return head + loop + indented("".join(f"z{i} = x + {i}\n" for i in range(count)), 8) + behind

    assert not converted(program(4)).reason
    assert grows_evenly(converted, program, 1600)
