"""Made-up machines: one that is right, and the same with one thing wrong."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from migrator.data_folders import reports_yaml
from migrator.doctor.checks import examine
from migrator.doctor.machine import Package, User
from migrator.launch.fault_texts import Fault, fault_texts
from migrator.launch.rank_table import Host, build, dump
from tests.doctor.conftest import CANN, INSTALL_INFO, LIMITS, VERSION_INFO, with_packages

HAL = "/usr/local/Ascend/driver/lib64/driver/libascend_hal.so"
HOME = "/home/me/Ascend/cann/set_env.sh"
SET_ENV = f"{CANN}/set_env.sh"
HCCN = "/etc/hccn.conf"
HOSTNAME, TCP, TCP6 = "/proc/sys/kernel/hostname", "/proc/net/tcp", "/proc/net/tcp6"
FIRMWARE = "/usr/local/Ascend/firmware/version.info"
VERSION = "/usr/local/Ascend/driver/version.info"
INFO = f"{CANN}/latest/aarch64-linux/ascend_toolkit_install.info"
FEW_FILES = "Max open files  1024  4096  files\n"


class _Listening:
    """A line of the kernel's table, for a port."""

    def format(self, port: int) -> str:
        return f"  sl  local_address rem_address   st\n   0: 00000000:{port:04X} 00000000:0000 0A 00\n"


LISTENING = _Listening()


def names(found: tuple[Fault, ...]) -> list[str]:
    return [one.name for one in found]


def given(variables: str) -> dict[str, str | None]:
    """Variables of ``NAME=value NAME``; the last one is not set."""
    pairs = (each.partition("=") for each in variables.split())
    return {name: value if sign else None for name, sign, value in pairs}


def test_a_machine_that_is_right_has_no_fault(make, python) -> None:
    machine = make()
    assert examine(machine, python) == []
    assert (machine.cann().version, machine.driver().version, machine.npus()) == (
        "8.3.RC1",
        "25.3.rc1",
        [0, 1],
    )


@pytest.mark.parametrize(
    ("files", "variables", "expected", "said"),
    [
        ({}, "ASCEND_HOME_PATH", "set-env", f"source {CANN}/set_env.sh"),
        ({SET_ENV: None, HOME: ""}, "ASCEND_HOME_PATH", "set-env", "source ~/Ascend/cann/"),
        ({SET_ENV: None}, "ASCEND_HOME_PATH", "set-env-missing", "/opt/Ascend"),
        ({}, "ASCEND_HOME_PATH=/old/cann", "home-path", "/old/cann"),
        ({f"{CANN}/latest/lib64/libhccl.so": None}, "", "hccl-missing", "libhccl.so"),
        ({}, "LD_LIBRARY_PATH=", "hccl-missing", "source CANN's set_env.sh"),
        ({HAL: None}, "", "driver-missing", "libascend_hal.so"),
        ({"/dev/davinci_manager": None}, "", "no-device", "--device /dev/davinci_manager"),
        ({"/dev/hisi_hdc": None}, "", "no-device", "/dev/hisi_hdc is missing"),
        ({"/dev/davinci0": None, "/dev/davinci1": None}, "", "no-npu", "npu-smi info"),
        ({HCCN: None}, "", "hccn-missing", "hccn_tool"),
        ({HCCN: "address_0=10.0.0.300\n"}, "", "hccn-wrong", "'10.0.0.300' is not an IP address"),
        ({HCCN: "address_0=192.168.1.1\n"}, "", "hccn-incomplete", "no address for NPU 1"),
        ({"/proc/mounts": "shm /dev/shm tmpfs rw,size=65536k 0 0\n"}, "", "shared-memory", "64 MiB"),
        ({"/proc/self/limits": LIMITS.format(FEW_FILES)}, "", "open-files", "1024 files"),
        ({}, "ASCEND_RT_VISIBLE_DEVICES=0-1", "visible-devices", "'0-1' is not a number"),
        ({}, "ASCEND_RT_VISIBLE_DEVICES=0,0", "visible-devices", "0 is given twice"),
        ({}, "ASCEND_RT_VISIBLE_DEVICES=0,2", "visible-devices", "NPU 2 does not exist"),
        ({"/dev/davinci0": None, "/dev/davinci4": ""}, "ASCEND_RT_VISIBLE_DEVICES=4", "hccn-incomplete", "4"),
        ({}, "ASCEND_VISIBLE_DEVICES=all-of-them", "container-devices", "all-of-them"),
        ({}, "CUDA_VISIBLE_DEVICES=1", "cuda-devices", "export ASCEND_RT_VISIBLE_DEVICES=1"),
        ({}, "HCCL_IF_IP=10.0.0.9", "variable", "no network interface of this machine"),
        ({}, "HCCL_IF_IP=eth0", "variable", "not an IP address"),
        ({}, "HCCL_SOCKET_IFNAME==eth", "variable", "available: eth0, lo"),
        ({}, "HCCL_SOCKET_IFNAME=ens33", "variable", "no network interface matches"),
        ({}, "HCCL_CONNECT_TIMEOUT=60", "variable", "120 to 7200"),
        ({}, "HCCL_EXEC_TIMEOUT=30min", "variable", "not a number"),
        ({}, "HCCL_BUFFSIZE=4194304", "variable", "megabytes"),
        ({}, "HCCL_RDMA_TC=133", "variable", "multiples of 4"),
        ({}, "HCCL_WHITELIST_DISABLE=yes", "variable", "export 1"),
        ({}, "HCCL_WHITELIST_DISABLE=0", "whitelist", "is not set"),
        ({}, "HCCL_HOST_SOCKET_PORT_RANGE=60000:60050", "variable", "not a list of ports"),
        ({}, "GLOO_SOCKET_IFNAME=eth", "variable", "available: eth0, lo"),
        ({}, "TP_SOCKET_IFNAME=eth0,ens1", "variable", "network interface"),
        ({}, "HCCL_EXEC_TIMEOUT=30", "exec-timeout", "1836"),
        ({}, "HCCL_EVENT_TIMEOUT=1800", "event-timeout", "HCCL_EXEC_TIMEOUT (1836)"),
        ({}, "HCCL_EVENT_TIMEOUT=700 HCCL_EXEC_TIMEOUT=700", "event-timeout", "must exceed"),
        ({}, "MASTER_ADDR=node-1", "master-address", "node-1: unknown host"),
        ({HOSTNAME: "worker-7\n"}, "", "host-name", "worker-7 of this machine has no address"),
        ({TCP: LISTENING.format(29500)}, "", "master-port", "port 29500"),
        ({TCP6: LISTENING.format(29600)}, "MASTER_PORT=29600", "master-port", "port 29600"),
        (
            {TCP: LISTENING.format(60031)},
            "",
            "hccl-ports",
            "60000-60031, but another program listens on 60031",
        ),
        ({TCP: LISTENING.format(50015)}, "HCCL_IF_BASE_PORT=50000", "hccl-ports", "50015"),
        ({TCP: LISTENING.format(7)}, "HCCL_HOST_SOCKET_PORT_RANGE=5-6,7", "hccl-ports", "listens on 7"),
        ({FIRMWARE: "Version=9.0.0.1.220\n"}, "", "firmware-pair", "firmware 9.0.0.1.220 is installed"),
    ],
)
def test_a_fault_is_found(make, python, files, variables, expected, said) -> None:
    found = examine(make(files, given(variables)), python)
    assert names(found) == [expected]
    assert said in " ".join(one.line() for one in found)


@pytest.mark.parametrize(
    "variables",
    """ASCEND_RT_VISIBLE_DEVICES=0,1
    ASCEND_VISIBLE_DEVICES=0-3,5
    ASCEND_VISIBLE_DEVICES=Ascend910-0,Ascend910-1
    CUDA_VISIBLE_DEVICES=1 ASCEND_RT_VISIBLE_DEVICES=1
    CUDA_VISIBLE_DEVICES=
    HCCL_IF_IP=10.0.0.1
    HCCL_SOCKET_IFNAME=en,eth
    HCCL_SOCKET_IFNAME==eth0
    HCCL_SOCKET_IFNAME=^lo
    HCCL_CONNECT_TIMEOUT=7200 HCCL_EXEC_TIMEOUT=0
    HCCL_RDMA_TC=132 HCCL_RDMA_SL=4
    HCCL_WHITELIST_DISABLE=1
    HCCL_WHITELIST_DISABLE=0 HCCL_WHITELIST_FILE=/etc/group
    HCCL_HOST_SOCKET_PORT_RANGE=60000-60050,61000
    HCCL_HOST_SOCKET_PORT_RANGE=auto
    GLOO_SOCKET_IFNAME=lo,eth0
    MASTER_ADDR=10.0.0.2 MASTER_PORT=29501
    MASTER_ADDR=fe80::1
    HCCL_EVENT_TIMEOUT=0 HCCL_EXEC_TIMEOUT=600
    HCCL_EVENT_TIMEOUT=1868
    HCCL_EXEC_TIMEOUT=0""".splitlines(),
)
def test_values_that_are_right(make, python, variables: str) -> None:
    assert examine(make({}, given(variables)), python) == []


def test_hosts_are_found_by_their_file(make, python) -> None:
    hosts = {"/etc/hosts": "10.0.0.2 node-1 n1 # first\n10.0.0.1 worker-7\n", HOSTNAME: "worker-7\n"}
    assert examine(make(hosts, {"MASTER_ADDR": "n1"}), python) == []
    # A connection to port 29500 is no program that listens there.
    other = {TCP: LISTENING.format(29500).replace(" 0A ", " 01 ")}
    assert examine(make(other), python) == []
    assert examine(make({TCP: LISTENING.format(29500)}, {"RANK": "1"}), python) == []


def test_an_older_cann_takes_sixteen_ports(make, python) -> None:
    files = {TCP: LISTENING.format(60016), INFO: "version=8.0.0\n"}
    assert "hccl-ports" not in names(examine(make(files), python))


def test_firmware_that_the_driver_works_with(make, python) -> None:
    machine = make({FIRMWARE: "Version=7.7.0.1.231\n"})
    assert (examine(machine, python), machine.firmware().version) == ([], "7.7.0.1.231")


def test_a_driver_that_is_older_than_all_of_cann(make, python) -> None:
    newer = with_packages(python, torch_npu=Package("2.6.0.post5", "2.6.0"))
    for version, expected in (("24.1.rc2", ["driver-older"]), ("25.0.rc1.1", []), ("26.0.rc1", [])):
        machine = make({VERSION: f"package_version={version}\n", INFO: "version=8.5.0\n"})
        found = examine(machine, newer)
        assert names(found) == expected, version
        assert "install Ascend HDK 25.5.0" in found[0].do if expected else True


def test_what_is_built_for_another_processor(make, python) -> None:
    machine = replace(make(), arch="x86_64")
    packages = {
        "torch_npu": Package("2.6.0.post3", "2.6.0", arch="x86_64"),
        "torch": Package("2.6.0", arch=""),
    }
    found = examine(machine, with_packages(python, **packages))
    assert [one.line() for one in found] == [
        "CANN 8.3.RC1 is built for aarch64, but this machine is x86_64; install the CANN for x86_64"
    ]
    assert examine(replace(machine, arch="aarch64"), python) == []


@pytest.mark.parametrize(
    ("packages", "expected", "said"),
    [
        # torch 2.6.0, torch_npu 2.6.0.post3, CANN 8.3.RC1 and Python 3.11 are there.
        ({"mx_driving": Package("26.2.0.post2")}, [], ""),
        (
            {"mx_driving": Package("26.2.0.post1")},
            ["goes-with"],
            "mx_driving 26.2.0.post1 requires torch 2.1.0",
        ),
        ({"deepspeed": Package("0.19.8")}, [], ""),
        ({"triton-ascend": Package("3.2.0rc4")}, [], ""),
        ({"triton-ascend": Package("3.2.0")}, ["goes-with"], "requires CANN 8.5.0, 8.5.1, but CANN 8.3.RC1"),
        (
            {"triton": Package("3.5.0"), "triton-ascend": Package("3.2.0rc4")},
            ["with-triton"],
            "share one folder",
        ),
        ({"triton": Package("3.5.0")}, [], ""),
        (
            {"vllm-ascend": Package("0.26.0rc1"), "vllm": Package("0.26.0.dev1")},
            ["goes-with"] * 2,
            "torch 2.10.0",
        ),
        ({"vllm": Package("0.18.0")}, ["without-ascend"], "without vllm-ascend"),
        ({"vllm-ascend": Package("0.99")}, [], ""),  # no table knows it
        (
            {"vllm-ascend": Package("0.18.0"), "vllm": Package("0.17.0")},
            ["goes-with"] * 4,
            "npumigrate doctor --plan 'vllm-ascend 0.18.0'",
        ),
    ],
)
def test_packages_that_do_not_belong_together(make, python, packages, expected, said) -> None:
    found = examine(make(), with_packages(python, **packages))
    assert names(found) == expected
    assert said in " ".join(one.line() for one in found)


def test_a_cann_that_a_package_names_is_right(make, python) -> None:
    """vllm-ascend 0.18.0 requires CANN 8.5.1, torch_npu 2.9.0 was released for 8.5.0."""
    packages = {"torch": Package("2.9.0+cpu"), "torch_npu": Package("2.9.0", "2.9.0")}
    packages |= {"torchvision": None, "torchaudio": None}
    machine = make({INFO: "version=8.5.1\n"})
    assert names(examine(machine, with_packages(python, **packages))) == ["cann-newer"]
    ascend = {"vllm-ascend": Package("0.18.0"), "vllm": Package("0.18.0")}
    assert examine(machine, with_packages(python, **packages, **ascend)) == []


def test_errors_come_first(make, python) -> None:
    found = examine(make({"/etc/hccn.conf": None}, {"HCCL_IF_IP": "x"}), python)
    assert [one.severity for one in found] == ["error", "warning"]


def test_device_files_of_another_group(make, python) -> None:
    machine = make()
    for name in ("davinci_manager", "davinci1"):
        (machine.root / "dev" / name).chmod(0o660)
    gid = (machine.root / "dev/davinci1").stat().st_gid
    (machine.root / "etc/group").write_text(f"HwHiAiUser:x:{gid}:other\n")
    found = examine(machine, python)
    assert names(found) == ["device-permission"] * 2
    assert found[0].line() == fault_texts()["device-permission"].line(
        file="/dev/davinci_manager", group="HwHiAiUser"
    )
    (machine.root / "etc/group").write_text(f"HwHiAiUser:x:{gid}:other,me\n")
    assert names(examine(machine, python)) == ["login-again"] * 2
    for user in (User("me", 4242, frozenset({gid})), User("root", 0, frozenset({0}))):
        assert examine(replace(machine, user=user), python) == []


def table(**hosts: int) -> str:
    """A rank table of hosts by their addresses (a10_0_0_1), each with so many NPUs."""
    made = []
    for number, (name, count) in enumerate(hosts.items()):
        addresses = {device: f"192.168.{number}.{device + 1}" for device in range(count)}
        made.append(Host(name[1:].replace("_", "."), tuple(range(count)), addresses))
    return dump(build(made))


@pytest.mark.parametrize(
    ("text", "variables", "expected", "said"),
    [
        (table(a10_0_0_1=2), {}, [], ""),
        (table(a10_0_0_1=2, a10_0_0_2=2), {"WORLD_SIZE": "4"}, [], ""),
        (None, {}, ["rank-table-missing"], "no such file"),
        ("{", {}, ["rank-table-wrong"], "is not JSON"),
        (
            table(a10_0_0_1=2).replace('"rank_id": "1"', '"rank_id": "0"'),
            {},
            ["rank-table-wrong"],
            "rank_id 0",
        ),
        (table(a10_0_0_7=2, a10_0_0_8=2), {}, ["rank-table-elsewhere"], "none of its servers"),
        (
            table(a10_0_0_1=8),
            {},
            ["rank-table-elsewhere"],
            "NPUs 2, 3, 4, 5, 6, 7, which this machine does not have",
        ),
        (table(a10_0_0_1=2), {"WORLD_SIZE": "4"}, ["rank-table-elsewhere"], "2 ranks, but WORLD_SIZE is 4"),
    ],
)
def test_rank_tables(make, python, text, variables, expected, said) -> None:
    machine = make({"/job/table.json": text}, {"RANK_TABLE_FILE": "/job/table.json", **variables})
    found = examine(machine, python)
    assert names(found) == expected
    assert said in " ".join(one.line() for one in found)


def test_a_link_is_no_rank_table(make, python) -> None:
    machine = make({"/job/table.json": table(a10_0_0_1=2)}, {"RANK_TABLE_FILE": "/job/link.json"})
    os.symlink("table.json", machine.root / "job/link.json")
    assert names(examine(machine, python)) == ["rank-table-file"]


@pytest.mark.parametrize(
    ("packages", "expected", "said"),
    [
        ({"torch": None}, ["torch-missing"], "torch is not installed for /opt/python"),
        ({"torch_npu": None}, ["torch-missing"], "pip install torch_npu==2.6.0.post3"),
        (
            {"torch": Package("2.7.1")},
            ["torch-pair"] + ["companion-pair"] * 2,
            "torch_npu==2.7.1 for torch 2.7.1",
        ),
        ({"torch": Package("2.6.0+cu118")}, ["torch-for-cuda"], "built for CUDA"),
        ({"torchvision": Package("0.22.1", "2.7.1")}, ["companion-pair"], "pip install torchvision==0.21.0"),
        ({"torchaudio": Package("2.5.1+cpu", "2.5.1")}, ["companion-pair"], "pip install torchaudio==2.6.0"),
        ({"torchaudio": Package("2.11.0")}, [], ""),
        ({"apex": Package("0.1+ascend")}, [], ""),
        ({"apex": Package("0.1", for_npu=True)}, [], ""),
        ({"apex": Package("0.9.10.dev0")}, ["apex-for-cuda"], "0.9.10.dev0"),
        (
            {"torch_npu": Package("2.6.0.post5", "2.6.0")},
            ["cann-older"],
            "install CANN 8.5.0, or torch_npu 2.6.0.post3",
        ),
        ({"torch_npu": Package("2.6.0", "2.6.0")}, ["cann-newer"], "CANN 8.2.RC1"),
        ({"torch_npu": Package("2.6.0.dev20250226", "2.6.0")}, [], ""),
    ],
)
def test_releases_that_do_not_belong_together(make, python, packages, expected, said) -> None:
    found = examine(make(), with_packages(python, **packages))
    assert names(found) == expected
    assert said in " ".join(one.line() for one in found)


def test_a_python_for_another_torch(make, python) -> None:
    found = examine(make(), replace(python, version="3.12.1"))
    assert names(found) == ["python-pair"]
    assert found[0].do == "create the environment with Python 3.11"


@pytest.mark.parametrize(
    ("inner", "compatible", "expected"),
    [
        ("V100R001C21SPC002B220", "[V100R001C17],[V100R001C21]", []),  # CANN names it
        ("V100R001C25B001", "[V100R001C21,V100R001C25]", []),  # it names CANN, by a range
        ("V100R001C15SPC006B220", "[V100R001C13]", []),
        ("V100R001C17B001", "[V100R001C13],[V100R001C17]", ["driver-pair"]),
        ("", "[V100R001C17]", []),
    ],
)
def test_drivers(make, python, inner, compatible, expected) -> None:
    lines = VERSION_INFO.splitlines()
    lines[2:4] = [f"Innerversion={inner}", f"compatible_version={compatible}"]
    machine = make({"/usr/local/Ascend/driver/version.info": "\n".join(lines)})
    assert names(examine(machine, python)) == expected


def test_a_cann_that_says_nothing_of_drivers(make, python) -> None:
    info = INSTALL_INFO.replace("innerversion=", "other=").replace("compatible_version=", "another=")
    assert examine(make({f"{CANN}/latest/aarch64-linux/ascend_toolkit_install.info": info}), python) == []


def test_emulated_npus_have_no_device_files(make, python) -> None:
    nothing = {
        f"/dev/{name}": None for name in ("davinci_manager", "devmm_svm", "hisi_hdc", "davinci0", "davinci1")
    }
    machine = make(
        {**nothing, HAL: None, "/etc/hccn.conf": None},
        {"NPUMIGRATE_EMULATOR": "/x", "NPUMIGRATE_EMULATOR_DEVICES": "4", "ASCEND_RT_VISIBLE_DEVICES": "3"},
    )
    assert examine(machine, python) == []
    assert (machine.emulated, machine.npus()) == (4, [0, 1, 2, 3])


def test_each_text_has_a_fault_and_its_source() -> None:
    sources = {name: entry["source"] for name, entry in reports_yaml("doctor.yaml").items()}
    for name, text in fault_texts().items():
        assert text.severity in ("error", "warning"), name
        assert all((text.what, text.do, sources[name])), name
        assert "\n" not in text.what + text.do, name
