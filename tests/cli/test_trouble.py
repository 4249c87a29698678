"""What a person sees when the tool itself fails, or is stopped."""

from __future__ import annotations

import errno
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from migrator.files.document import Document
from migrator.files.output import OutputTree
from migrator.migrate import run as migration
from migrator.run import project_files
from tests.reading import write

forked = pytest.mark.skipif(
    multiprocessing.get_start_method() != "fork", reason="the workers have to see what the test replaces"
)


def many(project: Path) -> None:
    write(project, {f"more{n:02}.py": f"import torch\ny = torch.ones({n}).cuda()\n" for n in range(40)})


@pytest.mark.parametrize("error", [KeyError("unexpected\nthing"), MemoryError()])
def test_an_error_of_no_file_is_one_line(npumigrate, project, tmp_path, monkeypatch, error) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(migration, "add_launcher", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    answer = npumigrate("-i", project, "-o", tmp_path / "out", "-v", "2.6", "--jobs", "1")
    assert answer.code == 2
    if isinstance(error, MemoryError):
        advice = "use fewer processes (--jobs 1) or raise the limit"
        assert answer.err == f"npumigrate: out of memory: {advice}\n"
    else:
        match = re.fullmatch(r".+details: (.+)\n", answer.err)
        assert match
        assert "Traceback" in Path(match[1]).read_text()
    assert not (tmp_path / "out").exists()


@forked
@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("command", [(), ("analyze",)])
def test_an_internal_error_in_one_file_is_traced_in_the_log(
    npumigrate, project, tmp_path, monkeypatch, command, jobs
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("unexpected")

    monkeypatch.setattr("migrator.core.check.match_rules", fail)
    answer = npumigrate(*command, "-i", project, "-o", tmp_path / "out", "-v", "2.6", "--jobs", jobs)
    assert answer.code == 1
    (log,) = (tmp_path / "out").rglob("npumigrate.log")
    text = log.read_text()
    assert "internal error, file left unchanged: KeyError('unexpected')" in text
    assert "Traceback (most recent call last):" in text
    assert "in fail\n" in text


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("file", ["change_list.csv", "npumigrate.log"])
def test_a_disk_that_is_full_is_one_line(npumigrate, project, tmp_path, monkeypatch, file) -> None:
    real = migration._make_report_folder

    def full(tree: OutputTree) -> Path:
        reports = real(tree)
        (reports / file).symlink_to("/dev/full")
        return reports

    monkeypatch.setattr(migration, "_make_report_folder", full)
    answer = npumigrate("-i", project, "-o", tmp_path / "out", "-v", "2.6")
    assert answer.code == 2
    assert len(answer.err.splitlines()) == 1
    assert "no space left on device" in answer.err
    assert not (tmp_path / "out").exists()


def test_interrupted(npumigrate, project, tmp_path, monkeypatch) -> None:
    many(project)
    real, calls = project_files.check, []

    def stop_at_ten(*arguments: object, **named: object) -> object:
        calls.append(arguments)
        if len(calls) == 10:
            raise KeyboardInterrupt
        return real(*arguments, **named)

    monkeypatch.setattr(project_files, "check", stop_at_ten)
    answer = npumigrate("-i", project, "-o", tmp_path / "out", "-v", "2.6", "--jobs", "1")
    assert answer.code == 130
    assert answer.err == "npumigrate: interrupted after 9 of 43 files: no result was written\n"
    assert not (tmp_path / "out").exists()


@forked
def test_a_killed_worker_loses_nothing(npumigrate, project, tmp_path, monkeypatch) -> None:
    many(project)
    real, parent = project_files.check, os.getpid()

    def die_in_a_worker(document: Document, *rest: object, **named: object) -> object:
        if document.name == "more20.py" and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(document, *rest, **named)

    monkeypatch.setattr(project_files, "check", die_in_a_worker)
    answer = npumigrate("-i", project, "-o", tmp_path / "out", "-v", "2.6", "--jobs", "2")
    assert (answer.code, answer.err) == (0, "")
    result = tmp_path / "out" / "project_msft"
    assert all(".npu()" in path.read_text() for path in result.glob("more*.py"))
    assert "one process" in (result / "migration_report" / "npumigrate.log").read_text()


@pytest.mark.skipif(os.name == "nt", reason="needs a shell that closes streams")
@pytest.mark.parametrize(
    ("line", "code"),
    [("lint {file} >&-", 1), ("lint {file} 2>&-", 1), ("lint - <&-", 0), ("api torch.cuda >&-", 0)],
)
def test_a_stream_may_be_closed(tmp_path, line: str, code: int) -> None:
    file = tmp_path / "train.py"
    file.write_text("import torch\ntorch.cuda.init()\n")
    command = f'"{sys.executable}" -m migrator {line.format(file=file)}'
    done = subprocess.run(["sh", "-c", command], env=environment(), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.skipif(os.name == "nt", reason="a folder that is used stays")
@pytest.mark.parametrize("command", ["lint", "rule", "version"])
def test_a_current_folder_that_is_gone_is_one_line(tmp_path, command: str) -> None:
    line = f'mkdir gone && cd gone && rmdir ../gone && exec "{sys.executable}" -m migrator {command}'
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "npumigrate: the current folder cannot be used: no such file or folder\n"


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.mark.parametrize("step", ["__init__", "submit"])
def test_where_no_process_can_be_started_one_does_all(
    npumigrate, project, tmp_path, monkeypatch, step
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")  # such as /dev/shm, where their semaphores lie

    many(project)
    monkeypatch.setattr(f"concurrent.futures.process.ProcessPoolExecutor.{step}", refuse)
    answer = npumigrate("-i", project, "-o", tmp_path / "out", "-v", "2.6", "--jobs", "2")
    assert (answer.code, answer.err) == (0, "")
    result = tmp_path / "out" / "project_msft"
    assert all(".npu()" in path.read_text() for path in result.glob("more*.py"))
    log = (result / "migration_report" / "npumigrate.log").read_text()
    assert "no other process can be started (Read-only file system): going on with one process" in log


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="has no device that is always full")
@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        ("lint {project}", 2, "output"),
        ("-i {project} --diff -v 2.6", 2, "output"),
        ("-i {project} -o {out} -v 2.6", 0, "summary"),
        ("analyze -i {project} -o {out} -v 2.6", 0, "summary"),
        ("lint --help", 2, "output"),
        ("api --help", 2, "output"),
        ("version", 2, "output"),
        ("rule NPU101", 2, "output"),
        ("launch rank-table --help", 2, "output"),
    ],
)
def test_what_cannot_be_printed(project, tmp_path, arguments, code, what) -> None:
    words = arguments.format(project=project, out=tmp_path / "out").split()
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "migrator", *words]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        silent = subprocess.run(
            [*command, "--overwrite"] if "-o" in words else command, stdout=full, stderr=full
        )
    assert done.stderr == f"npumigrate: cannot write the {what}: no space left on device\n"
    assert (done.returncode, silent.returncode) == (code, code)


@forked
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_run_that_is_asked_to_end_leaves_nothing_behind(project, tmp_path, number, jobs) -> None:
    many(project)
    code = (
        "import sys, time, migrator.run.project_files as files\n"
        "files.check = lambda *_, **__: time.sleep(60)\n"
        "from migrator.cli.start import run\n"
        "sys.exit(run())"
    )
    arguments = ["-i", str(project), "-o", str(tmp_path / "out"), "-v", "2.6", "-j", jobs]
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        deadline = time.monotonic() + 30
        while not list(tmp_path.glob("out/.project_msft*/new/migration_report")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(1)
        if number == signal.SIGINT:  # a terminal's Ctrl-C reaches all processes
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert errors.startswith("npumigrate: interrupted")
    assert errors.count("\n") == 1
    assert not (tmp_path / "out").exists()
