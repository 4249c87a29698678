"""Commands that a program runs: their words, through names, lists, splits and sums."""

from __future__ import annotations

import textwrap

import pytest

from migrator.names.commands import Command, commands
from migrator.names.index import ModuleIndex

RUNS = ["run", "check_output", "popen", "system", "command"]


def found(text: str) -> list[Command]:
    return list(commands(ModuleIndex(textwrap.dedent(text), RUNS)))


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ('subprocess.run(args=("tool", option))', ["tool", ""]),
        ("subprocess.run('tool -L | wc -l 2>/dev/null', shell=True)", ["tool", "-L", "|", "wc", "-l"]),
        ('os.popen(f"tool --id={i} -L")', ["tool", "", "-L"]),
        ("subprocess.check_output(shlex.split(\"tool 'a b'\"))", ["tool", "a b"]),
        ('subprocess.check_output("tool -L".strip().split(" "))', ["tool", "-L"]),
        ('subprocess.run(["tool"] + options + ["-L"])', ["tool", "", "-L"]),
        ('os.system("tool " + name + " -L")', ["tool", "", "-L"]),
        (
            'subprocess.run([str(HERE / "t.py"), os.path.join(HERE, "u.py"), HERE / "v"])',
            ["t.py", "u.py", ""],
        ),
        ('options = ["-L"]\nsubprocess.run(["tool", *options])', ["tool", "-L", ""]),
        ('subprocess.run(["tool", *options, "-L"])', ["tool", "", "-L"]),
    ],
)
def test_the_words_of_a_command(run, words):
    (command,) = found(f"import os, shlex, subprocess, sys\n{run}\n")
    assert command.texts == words


def test_options_that_callers_hand_in():
    text = """
        import subprocess
        def start(name, options):
            subprocess.run(["tool", name, *options])
        start("a", ["-L"])
        start("b", options=("-q", "--id"))
        """
    (command,) = found(text)
    assert sorted(command.texts[2:]) == ["", "--id", "-L", "-q"]  # which are of one call is not known


def test_a_command_comes_by_the_last_assignment_before_it():
    text = """
        import subprocess
        command = "first -a"
        one = subprocess.check_output(command.split())
        command = "second -b"
        two = subprocess.check_output(command.split())
        """
    assert [(each.texts, each.through[0].lineno) for each in found(text)] == [
        (["first", "-a"], 3),
        (["second", "-b"], 5),
    ]


@pytest.mark.parametrize(
    "text",
    [
        'def run(command):\n    return command\nrun(["tool"])\n',
        "import subprocess\ndef f(command):\n    subprocess.run(command)\n",
        'import os\nos.system("a quote that \' nothing closes")\n',
        'import subprocess\nif x:\n    command = "a"\nelse:\n    command = "b"\nsubprocess.run(command)\n',
    ],
)
def test_what_is_no_known_command(text):
    assert found(text) == []
