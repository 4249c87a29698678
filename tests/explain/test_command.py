"""``npumigrate explain`` as a user sees it: what failed first, on which rank, at which line."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

import pytest

from migrator.cli.main import run
from migrator.explain.logs import Log, lines, log_at, logs_of_run
from migrator.explain.scan import Scan
from migrator.explain.table import Entry, entries_in, table, weight
from tests.reading import write

OOM = "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 3; 60.97 GiB total capacity)"
TIMEOUT = "EI0006: [PID: 4021] 2024-07-01-10:15:30.123.456 Getting socket times out. Reason: Remote Rank did"
TORCH = "/usr/local/lib/python3.10/site-packages/torch/_tensor.py"


def traceback(error: str, line: int = 88, file: str = "/home/me/train.py", before: str = "") -> str:
    shown = [
        "Traceback (most recent call last):",
        f'  File "{file}", line {line}, in main',
        "    loss.backward()",
        f'  File "{TORCH}", line 5, in backward',
        "    torch.autograd.backward(",
        *error.splitlines(),
    ]
    return "".join(f"{before}{each}\n" for each in shown)


@pytest.fixture
def explain(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Gives what explain says of files as JSON, and checks its exit code."""

    def command(*texts: object, code: int = 0, folder: Optional[dict[str, str]] = None) -> dict[str, Any]:
        names = []
        for number, text in enumerate(texts):
            (tmp_path / f"{number}.log").write_bytes(text if isinstance(text, bytes) else str(text).encode())
            names.append(str(tmp_path / f"{number}.log"))
        if folder is not None:
            names = ["--run", str(write(tmp_path / "run", folder))]
        capsys.readouterr()
        assert run(["explain", "--output-format", "json", *names]) == code
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    return command


def first(found: dict[str, Any]) -> tuple[Any, ...]:
    failure = found["failure"]
    return found["code"], failure["rank"], failure["place"] and failure["place"]["line"]


def test_ranks_by_the_prefix_of_torchrun(explain) -> None:
    one = traceback(TIMEOUT.replace("EI0006:", "RuntimeError: EI0006:"), 90, before="[rank0]: ")
    two = traceback(OOM, before="[default1]:[rank1]: ")
    mixed = "".join(a + b for a, b in zip(one.splitlines(True), two.splitlines(True)))
    assert first(explain(mixed)) == ("npu-out-of-memory", 1, 88)
    assert first(explain(one)) == ("EI0006", 0, 90)


def test_torchs_logger_says_the_rank_before_the_first_line_only(explain) -> None:
    head = "[rank2]:[W904 09:50:12.0 compiler_depend.ts:57] Warning: Inner Error!\n"
    assert first(explain(f"{head}TraceBack (most recent call last):\n{TIMEOUT}\n"))[1] == 2
    assert first(explain(f"{head}\n{TIMEOUT}\n"))[1] is None
    assert first(explain(f"{head}(Worker pid=7) next\n{TIMEOUT}\n"))[1] is None


def test_what_follows_counts_only_alone(explain) -> None:
    found = explain(TIMEOUT + "\n" + "x\n" * 50 + traceback(OOM, before="[rank3]: "))
    assert first(found) == ("npu-out-of-memory", 3, 88)
    assert found["others"] == [{"code": "EI0006", "name": "HCCL connection timeout", "ranks": []}]


def test_an_unknown_failure_is_the_first_where_the_others_only_waited(explain) -> None:
    """torch_npu and CANN write their part of a message over several lines."""
    waited = (
        "RuntimeError: operator():OpParamMaker.cpp:396 OPS function error: HcclAllreduce, error code is 21\n"
        "[ERROR] 2026-11-28-03:13:42 (PID:4922, Device:0, RankID:0) ERR01100 OPS call acl api failed\n"
        f"[Error]: error cqe\n{TIMEOUT}"
    )
    log = traceback(waited, 11, before="[default0]:[rank0]: ")
    log += traceback("KeyError: 'los'\nand EI0002 at the end", 10, before="[default2]:[rank2]: ")
    found = explain(log, code=1)
    assert first(found) == (None, 2, 10)
    assert ("EI0006", [0]) in [(each["code"], each["ranks"]) for each in found["others"]]


def test_a_consequence_does_not_explain_a_python_exception(explain) -> None:
    end = "\n[ERROR] 2026-11-28-03:17:39 (PID:8350, Device:1, RankID:-1) EI0006 said at the end\n"
    assert first(explain(traceback("KeyError: 'a'", 16) + end, code=1)) == (None, None, 16)
    assert first(explain(traceback("RuntimeError: HCCL failed", 16) + end, code=1)) == (None, None, 16)
    assert first(explain(end + traceback("RuntimeError: HCCL failed", 16))) == ("EI0006", None, 16)


def test_a_logger_that_says_the_rank_before_a_traceback(explain) -> None:
    said = "2024-10-21 10:42:00,218 - app - ERROR - agent.py:489 - Rank[2] failed.\n" + traceback(OOM)
    assert first(explain(said)) == ("npu-out-of-memory", 2, 88)
    assert first(explain("x\n" + said.replace("failed.\n", "failed.\nx\n"))) == (
        "npu-out-of-memory",
        None,
        88,
    )


def test_a_paste_that_lacks_its_first_sign(explain) -> None:
    assert first(explain(traceback(OOM, before="[rank1]: ")[1:]))[1] == 1


def test_torchruns_table_within_its_own_exception(explain) -> None:
    """Without an empty line between them."""
    table = "Root Cause (first observed failure):\n[0]:\n  rank      : 3 (local_rank: 3)\n  exitcode  : 1"
    said = traceback(f"torch.distributed.elastic.ChildFailedError:\n=====\ntrain.py FAILED\n{table}\n=====")
    assert first(explain(said)) == ("rank-failed", 3, 88)


def test_of_numbers_the_one_that_was_returned_counts(explain) -> None:
    """The text of another number is reported for many."""
    crash = "EZ9999: [PID: 8] 2024-07-01-10:15:30.1 there is an exception of aicore error, core id is 9"
    for log in (f"{crash}\naclrtSynchronizeStream failed: 507014\n", f"aclrtX failed : 507014\n{crash}\n"):
        assert explain(log)["code"] == "507014"
    assert explain(crash)["code"] == "507015"


def test_a_message_of_its_own_says_more_than_a_code(explain) -> None:
    said = "RuntimeError: call aclnnFoo failed, EZ1001: please check if the opp_kernel package is installed"
    assert explain(traceback(said))["code"] == "opp-kernels-missing"


def test_what_stands_before_a_traceback_on_its_line_is_read(explain) -> None:
    said = "gmake: *** No rule to make target '/tmp/pip-build-env-7/x.so', needed by 'y.so'. Stop. "
    assert explain(said + traceback("RuntimeError: it failed"))["code"] == "build-environment-gone"


def test_glog_says_threads_and_not_processes(explain) -> None:
    lost = "Mooncake transfer failed, ret: -1"
    said = f"E1210 03:24:54.778028 77 transfer.cpp:820] {lost}\n(Worker_DP0_TP5 pid=99) ERROR {lost}\n"
    assert first(explain(said)) == ("kv-transfer-failed", 5, None)
    assert first(explain(said.replace("transfer.cpp", "api.py"))) == ("kv-transfer-failed", None, None)


def test_time_stamps_decide_across_files(explain) -> None:
    stamped = "2024-07-01 10:15:{} INFO step\n"
    files = {
        "attempt_0/0/stderr.log": stamped.format(59) + traceback(OOM, 10),
        "attempt_0/1/stderr.log": stamped.format(20) + traceback(OOM, 11),
        "attempt_0/2/stdout.log": "nothing\n",
    }
    assert first(explain(folder=files)) == ("npu-out-of-memory", 1, 11)


def test_without_times_torchrun_says_which_rank_was_first(explain) -> None:
    found = traceback(OOM, 10, before="[rank0]: ") + traceback(OOM, 11, before="[rank5]: ")
    root = """
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2024-07-01_10:15:59
  host      : a
  rank      : 5 (local_rank: 5)
  exitcode  : 1 (pid: 4021)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""
    assert first(explain(found + root)) == ("npu-out-of-memory", 5, 11)
    # The table itself names its ranks, the one that was first last.
    assert first(explain(root.replace("Root", "  rank      : 2 (local_rank: 2)\nRoot"))) == (
        "rank-failed",
        5,
        None,
    )
    # That torchrun killed the others is no failure.
    killed = f"""Failures:
[1]:
  rank      : 2 (local_rank: 2)
  exitcode  : -9 (pid: 4019)
  traceback : {OOM}"""
    assert first(explain(killed + root)) == ("rank-failed", 5, None)
    assert (
        first(explain(killed.replace("rank: 2", "rank: 5").replace(": 2", ": 5") + root))[0] != "rank-failed"
    )
    # Nothing else says whose log it is.
    assert first(explain(traceback(OOM, 10) + root)) == ("npu-out-of-memory", 5, 10)


def test_a_traceback_in_torchruns_table(explain) -> None:
    inner = traceback(OOM, 10).replace("\n", "\n  ").removeprefix("Traceback")
    head = "Root Cause (first observed failure):\n[0]:\n  rank      : 2 (local_rank: 2)\n"
    assert first(explain(f"{head}  traceback : Traceback{inner}")) == ("npu-out-of-memory", 2, 10)


def test_of_an_error_that_follows_the_ranks_without_it_are_named(explain, capsys) -> None:
    said = traceback(TIMEOUT.replace("EI0006:", "RuntimeError: EI0006:"))
    files = {f"rank_{rank}.log": "step 1\n" if rank == 2 else said for rank in range(4)}
    assert explain(folder=files)["not_reported_by"] == [2]
    assert explain(folder={"rank_0.log": traceback(OOM), "rank_1.log": ""})["not_reported_by"] == []


def test_torchruns_error_file(explain) -> None:
    said = {"message": OOM, "extraInfo": {"py_callstack": traceback(OOM, 12), "timestamp": "1719828930"}}
    found = explain(folder={"attempt_0/4/error.json": json.dumps({"message": said})})
    assert first(found) == ("npu-out-of-memory", 4, 12)


def test_cann_logs_know_their_rank_by_the_process(explain) -> None:
    plog = f"[ERROR] HCCL(4021,python):2024-07-01-10:15:30.123.456 [a.cc:1] {TIMEOUT}\n"
    files = {
        "plog/plog-4021_20240701101500123.log": plog,
        "plog/plog-77_20240601101500123.log": plog.replace("EI0006", "EI0002").replace("-07-", "-06-"),
        "rank_6.log": "(PID:4021, Device:6, RankID:6) starts\n" + traceback("RuntimeError: HCCL failed", 14),
    }
    assert first(explain(folder=files)) == ("EI0006", 6, 14)


def test_the_line_is_the_innermost_of_the_project(explain) -> None:
    found = explain(traceback(OOM, 7, "/home/me/model.py").replace("/model.py", "/a/model.py"))
    assert found["failure"]["place"] == {
        "file": "/home/me/a/model.py",
        "line": 7,
        "function": "main",
        "source": "loss.backward()",
    }
    for file in ("conda/lib/python3.11/runpy.py", "Ascend/ascend-toolkit/latest/tools/tikcpp/recompile.py"):
        assert explain(traceback(OOM, file=f"/opt/{file}"))["failure"]["place"] is None


@pytest.mark.parametrize(
    "before",
    [
        "(EngineCore_DP0 pid=77) ERROR 07-01 10:15:30 [core.py:12] ",
        "\x1b[36m(WorkerDict pid=77, ip=10.0.0.1)\x1b[0m ",
        "2024-07-01T10:15:30.123Z stderr F ",
        "3: ",
        "worker-1  | ",
        "[Worker_DP0_TP2_EP2 pid=77] ERROR 07-01 10:15:30 [core.py:12] ",
    ],
)
def test_what_loggers_put_before_each_line(explain, before: str) -> None:
    found = explain(f"{before}starts\n" + traceback(OOM + "\nand EI0006 in it", before=before))
    assert first(found)[0::2] == ("npu-out-of-memory", 88)
    assert found["failure"]["message"].startswith(OOM)


@pytest.mark.parametrize("before", ["", "(Worker_TP2 pid=77) ERROR 07-01 10:15:30 [core.py:12] "])
def test_a_log_that_starts_or_ends_within_a_traceback(explain, before: str) -> None:
    whole = traceback(OOM, before=before).splitlines(True)
    assert first(explain("".join(whole[1:])))[2] == 88
    assert first(explain("".join([before + OOM + "\n", *whole[:-1]])))[2] == 88
    assert first(explain("".join([*whole[:5], before + "    " + OOM + "\n"])))[0] == "npu-out-of-memory"
    # The same exception, without and with the project's lines.
    assert first(explain("".join(whole[3:] + whole)))[2] == 88


@pytest.mark.parametrize(
    ("before", "rank"),
    [
        ("(VllmWorker TP1 pid=35532) ERROR 08-26 04:05:22 [multiproc_executor.py:559] ", 1),
        ("(VllmWorker rank=7 pid=2159) ERROR 04-27 01:29:44 [multiproc_executor.py:522] ", 7),
        ("(Worker_TP3 pid=77) ", 3),
        ("(Worker pid=77) (Worker_DP1_TP1_EP5 pid=77) ", 5),
        ("[Worker_DP0_TP2_EP2 pid=77] ERROR 07-01 10:15:30 [core.py:12] ", 2),
        ("(Worker_PP1 pid=77) ", 1),
        ("(RayTrainWorker pid=7, ip=172.17.0.6) [rank4]: ", 4),
        ("[2026-07-01 02:42:56 TP8 EP2] ", 8),
        ("vllm-qwen3d5-27b | (Worker_TP2 pid=286) ERROR 06-05 15:53:15 [multiproc_executor.py:932] ", 2),
        ("(EngineCore_DP0 pid=77) ", None),
        ("(RayTrainWorker pid=7, ip=172.17.0.6) ", None),
    ],
)
def test_ranks_by_what_launchers_put_before_a_line(explain, before: str, rank: Optional[int]) -> None:
    assert first(explain(traceback(OOM, before=before))) == ("npu-out-of-memory", rank, 88)


def test_a_launcher_that_says_the_rank_on_the_first_line_of_a_traceback_only(explain) -> None:
    said = traceback(OOM).replace("Traceback", "[2026-07-01 02:42:56 TP3] Scheduler failed: Traceback")
    assert first(explain(said)) == ("npu-out-of-memory", 3, 88)
    flat = "\n".join(map(str.strip, said.splitlines()))  # as it is pasted into an issue
    assert first(explain(flat)) == ("npu-out-of-memory", 3, 88)
    assert explain(flat)["failure"]["place"]["source"] == "loss.backward()"


@pytest.mark.parametrize(
    "cut",
    [
        'File "/home/me/tr\nain.py", line 88, in main',
        'File "/home/me/train.py",\n    line 88, in main',
        'File "/home/me/train.py", line\n88, in main',
        'File "/home/me/train.py", line 88, in\nmain',
        '(Worker_TP0 pid=7) ERROR [core.py:12]   File "/home/me/train.py", line 88, in main',
        'stderr:   File "/home/me/train.py", line 88, in main',
    ],
)
def test_frames_that_are_cut_or_have_something_before_them(explain, cut: str) -> None:
    said = traceback(OOM).replace('File "/home/me/train.py", line 88, in main', cut)
    assert first(explain(said))[0::2] == ("npu-out-of-memory", 88)


def test_lines_without_a_rank_belong_to_the_one_around_them(explain) -> None:
    """torch_npu's warning, CANN's lines and the exception of a rank, as torchrun mixes them."""
    above = "RuntimeError: The Inner error is reported as above. The process exits for this inner error"
    crash = "EZ9999: [PID: 8] 2024-07-01-10:15:30.1 there is an exception of aicore error, core id is 9"
    log = f"[rank2]:[W701 10:15:31.1 a.cpp:57] Warning: EZ9999: Inner Error!\n{crash}\n"
    log += traceback(above, 31, before="[rank2]: ")
    assert first(explain(log)) == ("507015", 2, 31)
    late = f"{crash}\n{crash.replace('EZ9999', 'EZ9998')}\n[rank9]: ERR02005 DIST internal error\n"
    assert first(explain(late)) == ("507015", 9, None)
    two = f"[rank1]: ERR02005 DIST internal error\n{late}"
    assert first(explain(two))[1] is None


@pytest.mark.parametrize("vague", ["EZ9999", "EE9999", "EH9999", "ERR00100", "ERR99999", "500001"])
def test_what_names_no_cause_is_never_the_answer(explain, vague: str) -> None:
    said = f"RuntimeError: call failed, error code is {vague}\n{vague}: what"
    found = explain(traceback(said), code=1)
    assert (found["code"], [each["code"] for each in found["others"]]) == (None, [vague])
    assert found["collect"]
    specific = f"{said}\nEZ3002: Optype [A] of Ops kernel [B] is unsupported"
    assert first(explain(traceback(specific)))[0] == "EZ3002"
    assert first(explain(traceback(f"{said}\n[aicpu exception]")))[0] == "507018"
    named = traceback(f"{said}\nThe process exits, and the current working operator name is aclnnFoo.")
    assert first(explain(named))[0] == "async-operator-failed"


def test_a_failure_takes_no_time_of_another_rank(explain) -> None:
    log = "[rank0]: 2024-07-01 10:15:59 step 5\n[rank1]: 2024-07-01 10:15:20 step 5\n"
    assert explain(log + traceback(OOM, before="[rank0]: "))["failure"]["time"] == "2024-07-01 10:15:59"
    assert explain(log + traceback(OOM, before="[rank3]: "))["failure"]["time"] is None


def test_a_warning_is_no_failure_where_another_is(explain) -> None:
    log = "[W801 10:15:30.1 x.cpp:1] NPU out of memory, trying again\n" + traceback("KeyError: 'x'", 5)
    assert first(explain(log, code=1)) == (None, None, 5)
    assert explain(log.splitlines()[0] + "\nTraining is done\n", code=1)["failure"] is None


def test_an_unknown_failure_is_called_unknown(explain) -> None:
    found = explain(traceback("pkg.OddError: what", before="[rank1]: "), code=1)
    assert first(found) == (None, 1, 88)
    assert found["failure"]["type"] == "OddError"
    assert found["collect"]
    assert explain("all is well\n", code=1)["failure"] is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda log: b"\x80\x81\xff\x00" * 50_000 + b"\n" + log,
        lambda log: log.replace(b"\n", b"\r\n"),
        lambda log: b"\r".join(b" 5%%|#  | %d" % n for n in range(100)) + b"\r" + log,
        lambda log: "错误：设备 ".encode("gbk") + b"\n" + log,
        lambda log: log.decode().encode("utf-16"),
        lambda log: b"\x1b[31;1m" + log.replace(b" ", b"\x1b[0m \x1b[31m"),
        lambda log: log.rstrip(),
        lambda log: log + log[:70],
        lambda log: log + b"x" * 3_000_000,
    ],
)
def test_no_damage_stops_it(explain, damage) -> None:
    assert first(explain(damage(traceback(OOM).encode()))) == ("npu-out-of-memory", None, 88)


def test_of_equal_entries_the_first_is_chosen() -> None:
    """Words are looked up in their order, not in sets, whose order changes from run to run."""
    text = {"cause": "", "do": (), "source": (), "examples": (), "name": "n", "layer": "ge"}
    some = [Entry(code=f"E{one}", match=[rf"\bE{one}\b"], sure="likely", **text) for one in "81943"]
    found = entries_in(table(some), "E4 E8 E9 E1 E3")
    assert [entry.code for entry in found] == ["E4", "E8", "E9", "E1", "E3"]
    worse = [found[0]._replace(**more) for more in ({"lacks": True}, {"code": "507015"}, {"vague": True})]
    assert min([*worse, *found], key=weight) == found[0]


def test_a_huge_log_is_streamed() -> None:
    """What is kept does not grow with the log, nor do the lines that are looked at."""

    class Endless(io.RawIOBase):
        def __init__(self, blocks: int) -> None:
            self.left = blocks

        def read1(self, size: int) -> bytes:
            self.left -= 1
            return (
                (b"[rank1]: " + OOM.encode() + b"\nan ordinary line of a log\n") * 900
                if self.left >= 0
                else b""
            )

    def kept(blocks: int) -> tuple[int, int]:
        scan, longest = Scan(table_of_ours()), 0

        def watched() -> Iterator[tuple[int, bytes]]:
            nonlocal longest
            for number, line in lines(Endless(blocks), lambda count: None):  # type: ignore[arg-type]
                longest = max(longest, len(line))
                yield number, line

        scan.read(Log("", ""), watched())
        assert scan.records[0].count == 900 * blocks
        return len(scan.records), longest

    assert kept(2) == kept(20)


def table_of_ours() -> Any:
    from migrator.explain.table import known

    return known()


def test_ordinary_lines_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    from migrator.explain import scan as module

    seen = []
    monkeypatch.setattr(module, "decoded", lambda line: seen.append(line) or line.decode())
    scan = Scan(table_of_ours())
    scan.read(Log("", ""), ((n, b"step %d loss 0.5 at 10:15:30" % n) for n in range(1000)))
    assert seen == []


def test_folders_and_names(tmp_path: Path) -> None:
    for name in (
        "attempt_0/3/stderr.log",
        "rank_10.log",
        "rank2.txt",
        "a.bin",
        "plog/plog-5_20240701101500123.log",
    ):
        write(tmp_path, {name: "x\n"})
    found = [(Path(log.path).name, log.rank, log.process) for log in logs_of_run(str(tmp_path))]
    assert found == [
        ("rank2.txt", "2", ""),
        ("stderr.log", "3", ""),
        ("rank_10.log", "10", ""),
        ("plog-5_20240701101500123.log", "", "5"),
    ]
    assert log_at("-").path == ""


def test_for_people(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write(tmp_path, {"a.log": traceback(OOM, before="[rank3]: ")}) / "a.log"
    monkeypatch.chdir(tmp_path)
    assert run(["explain", log.name]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[:4] == [
        "Error          npu-out-of-memory: NPU out of memory",
        "First failure  rank 3, a.log:6",
        "Your code      /home/me/train.py:88: loss.backward()",
        "Message        RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU",
    ]
    assert all(len(line) <= 80 for line in said if "http" not in line)
    assert run(["explain", log.name, "--output-format", "md"]) == 0
    assert capsys.readouterr().out.startswith("## npu-out-of-memory: NPU out of memory\n")
    assert run(["explain", "EI0006"]) == 0
    assert "EI0006: HCCL connection timeout" in capsys.readouterr().out


def test_from_the_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (["-"], []):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(traceback(OOM).encode())))
        assert run(["explain", *words]) == 0
        assert "npu-out-of-memory" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.log"], "nowhere.log: no such file or folder"),
        (["EI00006"], "did you mean 'EI0006'?"),
        (["--run", "nowhere"], "--run: nowhere: no such file or folder"),
        (["--output-format", "xml", "-"], "xml"),
    ],
)
def test_wrong_use(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert run(["explain", *words]) == 2
    assert said in capsys.readouterr().err
