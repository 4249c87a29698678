"""Rank tables: made, checked, converted, through the command."""

from __future__ import annotations

import json
import socket
from functools import partial
from pathlib import Path
from typing import Any, Callable

import pytest


@pytest.fixture
def launch(launch: Callable[..., tuple[int, str, str]]) -> Callable[..., tuple[int, str, str]]:
    return partial(launch, "rank-table")


def hccn(folder: Path, first: str, count: int = 2) -> Path:
    """A hccn.conf as the tool of the driver writes it."""
    path = folder / f"hccn_{first.replace('.', '_')}.conf"
    lines = [f"address_{i}={first}{i + 1}\nnetmask_{i}=255.255.255.0\n" for i in range(count)]
    path.write_text("".join(lines))
    return path


def test_two_servers_with_addresses(launch, tmp_path):
    a, b = hccn(tmp_path, "192.168.0."), hccn(tmp_path, "192.168.1.")
    code, out, err = launch("--hosts", "a:2,b:2", "--hccn", f"a={a}", "--hccn", f"b={b}")
    assert (code, json.loads(out)) == (0, table())
    assert err == "assumed: ranks 0 to 3, numbered in the order of the hosts\n"


def test_the_older_form(launch, tmp_path):
    code, out, _ = launch("--hosts", "a", "--hccn", hccn(tmp_path, "192.168.1.", 8), "--format", "older")
    content = json.loads(out)
    (group,) = content["group_list"]
    counts = content["group_count"], group["device_count"]
    assert (code, content["status"], counts) == (0, "completed", ("1", "8"))
    instance = group["instance_list"][0]
    assert instance["server_id"] == "a"
    assert instance["devices"][7] == {"device_id": "7", "device_ip": "192.168.1.8"}


def test_an_mpi_host_file(launch, tmp_path):
    (tmp_path / "hosts").write_text(
        "# my hosts\nnode-1 slots=2 max_slots=4\n\nnode-2   # one\nnode-1 slots=1\n"
    )
    code, out, err = launch("--hostfile", tmp_path / "hosts")
    servers = {s["server_id"]: [d["rank_id"] for d in s["device"]] for s in json.loads(out)["server_list"]}
    assert (code, servers) == (0, {"node-1": ["0", "1", "2"], "node-2": ["3"]})
    assert "no NPU addresses for node-1, node-2" in err


def test_this_machine_by_its_hccn_conf(launch, tmp_path):
    _, out, _ = launch("--hccn", hccn(tmp_path, "192.168.1.", 3))
    (server,) = json.loads(out)["server_list"]
    assert (server["server_id"], len(server["device"])) == (socket.gethostname(), 3)


def test_some_devices_only(launch):
    _, out, _ = launch("--hosts", "a,b", "--devices", "1,4-5")
    devices = [[d["device_id"] for d in s["device"]] for s in json.loads(out)["server_list"]]
    assert devices == [["1", "4", "5"]] * 2


def test_thousands_of_devices(launch, tmp_path):
    names = ",".join(f"node{i}:16" for i in range(512))
    file = tmp_path / "table.json"
    assert launch("--hosts", names, "-o", file)[0] == 0
    table = json.loads(file.read_text())
    assert table["server_list"][-1]["device"][-1]["rank_id"] == "8191"


@pytest.mark.parametrize("form", ["current", "older"])
def test_forms_convert_into_one_another(launch, tmp_path, form):
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    other = "older" if form == "current" else "current"
    launch("--hosts", "10.0.0.1:2", "--hccn", hccn(tmp_path, "192.168.1."), "--format", form, "-o", first)
    assert launch("check", first)[:2] == (0, f"{first}: {form} form, servers: 1, ranks: 2\n")
    assert launch("convert", first, "--format", other, "-o", second)[0] == 0
    assert launch("convert", second, "--format", form, "-o", third)[0] == 0
    assert third.read_text() == first.read_text()
    assert second.read_text() != first.read_text()


def test_ranks_that_go_to_and_fro_keep_their_places(launch, tmp_path):
    file = tmp_path / "table"
    file.write_text(json.dumps(table(ranks=((0, 2), (1, 3)))))
    launch("convert", file, "--format", "older", "-o", tmp_path / "older")
    _, out, _ = launch("convert", tmp_path / "older")
    servers = {s["server_id"]: [d["rank_id"] for d in s["device"]] for s in json.loads(out)["server_list"]}
    assert servers == {"a": ["0", "2"], "b": ["1", "3"]}


def test_modelarts_writes_the_older_form(launch, tmp_path):
    file = tmp_path / "jobstart_hccl.json"
    devices = [{"device_id": "4", "device_ip": "192.1.10.254"}]
    instance = {"pod_name": "job-0", "server_id": "192.168.0.25", "devices": devices}
    group = {"device_count": "1", "group_name": "job", "instance_count": "1", "instance_list": [instance]}
    file.write_text(json.dumps({"group_count": "1", "group_list": [group], "status": "completed"}))
    _, out, _ = launch("convert", file)
    assert json.loads(out)["server_list"] == [
        {"server_id": "192.168.0.25", "device": [{**devices[0], "rank_id": "0"}]}
    ]


def table(ranks=((0, 1), (2, 3))) -> dict[str, Any]:
    servers = []
    for k, name in enumerate("ab"):
        ids = [{"device_id": str(i), "device_ip": f"192.168.{k}.{i + 1}"} for i in range(2)]
        devices = [{**each, "rank_id": str(rank)} for each, rank in zip(ids, ranks[k])]
        servers.append({"server_id": name, "device": devices})
    return {"status": "completed", "version": "1.0", "server_count": "2", "server_list": servers}


def older(**change: Any) -> dict[str, Any]:
    devices = [{"device_id": "0", "device_ip": "1.2.3.4"}, {"device_id": "1", "device_ip": "1.2.3.5"}]
    instances = [{"server_id": "a", "devices": devices}]
    group = {"group_name": "g", "device_count": "2", "instance_count": "1", "instance_list": instances}
    return {"status": "completed", "group_count": "1", "group_list": [{**group, **change}]}


def changed(path: str, value: Any) -> dict[str, Any]:
    """The good table with one value changed; None takes it away."""
    content = table()
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    inner: Any = content
    for part in way:
        inner = inner[part]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return content


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (changed("status", "initializing"), "status is 'initializing'"),
        (changed("version", "2.0"), "version is '2.0', not '1.0'"),
        (changed("server_count", "3"), "server_count is 3, but server_list has 2"),
        (changed("server_count", None), "server_count is missing"),
        (changed("server_list", []), "server_list is not a list, or is empty"),
        (
            changed("server_list.1.server_id", "a"),
            "server_list[1]: server_id 'a' is already used by server_list[0]",
        ),
        (changed("server_list.1.server_id", None), "server_list[1] has no server_id"),
        (changed("server_list.1.device", []), "server_list[1].device is not a list, or is empty"),
        (changed("server_list.1.device.0", []), "server_list[1].device[0] is not an object"),
        (
            changed("server_list.1.device.0.rank_id", "1"),
            "server_list[1].device[0]: rank_id 1 is already used by server_list[0].device[1]",
        ),
        (
            changed("server_list.1.device.0.rank_id", "x"),
            "server_list[1].device[0]: rank_id is missing or not an integer",
        ),
        (changed("server_list.1.device.0.rank_id", "9"), "ranks are not 0 to 3: 2 missing"),
        (
            changed("server_list.0.device.1.device_id", "0"),
            "server_list[0].device[1]: device_id 0 of a is already used by server_list[0].device[0]",
        ),
        (
            changed("server_list.0.device.1.device_id", -1),
            "server_list[0].device[1]: device_id is missing or not an integer",
        ),
        (
            changed("server_list.1.device.0.device_ip", "192.168.0.1"),
            "server_list[1].device[0]: device_ip 192.168.0.1 is already used by server_list[0].device[0]",
        ),
        (
            changed("server_list.1.device.0.device_ip", "1.2.3"),
            "server_list[1].device[0]: device_ip '1.2.3' is not an IP address",
        ),
        (changed("server_list.1.device.0.device_ip", None), "server_list[1].device[0]: device_ip is missing"),
        (older(device_count="8"), "group_list[0]: device_count is 8, but there are 2 devices"),
        (older(instance_count="2"), "instance_count is 2, but group_list[0].instance_list has 1"),
        (older(instance_list=[{"devices": []}]), "group_list[0].instance_list[0] has no server_id"),
    ],
)
def test_what_check_finds(launch, tmp_path, content, problem):
    file = tmp_path / "table.json"
    file.write_text(json.dumps(content))
    code, out, err = launch("check", file)
    assert (code, err) == (1, "")
    assert f"{file}: {problem}" in out
    assert launch("convert", file)[0] == 2


@pytest.mark.parametrize(
    "text", ['{"status": }', "[]", "3", '{"a": 1}', "", '{"server_list": 3, "status": 1}']
)
def test_no_table_never_is_a_traceback(launch, tmp_path, text):
    file = tmp_path / "table.json"
    file.write_text(text)
    code, out, err = launch("check", file)
    assert code in (1, 2)
    assert str(file) in out + err
    assert "internal error" not in err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--hosts", "a:8,:4"], "--hosts, part 2 (':4'): '' is not a host name or address"),
        (["--hosts", "a:0"], "--hosts, part 1 ('a:0'): '0' is not a number of NPUs (1 to 4096)"),
        (["--hosts", "a,a"], "--hosts: a is given twice"),
        (["--hosts", "a", "--hostfile", "b"], "--hosts and --hostfile cannot be used together"),
        (["--hosts", "a", "--devices", "3-1"], "--devices: '3-1' is not a device or a range (0 or 4-7)"),
        (["--hosts", "a", "--devices", "1,1"], "--devices: 1,1 lists a device twice"),
        ([], "no hosts given: use --hosts a:8,b:8, --hostfile FILE or --hccn /etc/hccn.conf"),
        (["--hostfile", "no"], "no: no such file or folder"),
    ],
)
def test_wrong_use_is_one_line(launch, arguments, line):
    assert launch(*arguments) == (2, "", f"npumigrate: {line}\n")


def test_wrong_files_are_named_with_the_line(launch, tmp_path):
    hosts, conf = tmp_path / "hosts", tmp_path / "hccn.conf"
    hosts.write_text("a slots=8\nb slot=8\n")
    conf.write_text("address_0=1.2.3.4\naddress_1=1.2.3.400\n")
    one = tmp_path / "one.conf"
    one.write_text("address_0=1.2.3.4\n")
    for arguments, line in (
        (("--hostfile", hosts), f"{hosts}:2: 'slot=8' is neither slots=N nor max_slots=N"),
        (("--hccn", conf), f"{conf}:2: '1.2.3.400' is not an IP address"),
        (("--hosts", "a:2", "--hccn", one), "--hccn of a: address_1 is missing"),
        (("--hosts", "a:1", "--hccn", f"b={one}"), "--hccn b=…: no such host: b"),
        (
            ("--hosts", "a:1,b:1", "--hccn", one),
            "--hccn FILE describes one host; for several use --hccn HOST=FILE",
        ),
    ):
        assert launch(*arguments)[2] == f"npumigrate: {line}\n"
