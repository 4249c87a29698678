from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from migrator.doctor.machine import Machine, Package, Python, User

CANN = "/usr/local/Ascend/ascend-toolkit"
HERE = "10.0.0.1"
INSTALL_INFO = """\
package_name=Ascend-cann-toolkit
version=8.3.RC1
innerversion=V100R001C23SPC001B231
compatible_version=[V100R001C15],[V100R001C18],[V100R001C19],[V100R001C20],[V100R001C21],[V100R001C23]
arch=aarch64
"""
VERSION_INFO = """\
Version=25.3.rc1
ascendhal_version=7.35.23
Innerversion=V100R001C23SPC002B212
compatible_version=[V100R001C19],[V100R001C20],[V100R001C21],[V100R001C22],[V100R001C23]
compatible_version_fw=[7.0.0,8.9.9]
package_version=25.3.rc1
"""
FIB_TRIE = f"""\
Main:
  +-- 0.0.0.0/0 3 0 5
           |-- 127.0.0.1
              /32 host LOCAL
           |-- 10.0.0.0
              /24 link UNICAST
           |-- {HERE}
              /32 host LOCAL
"""
LIMITS = "Limit                     Soft Limit           Hard Limit           Units\n{}"
FILES = {
    f"{CANN}/set_env.sh": "",
    f"{CANN}/latest/aarch64-linux/ascend_toolkit_install.info": INSTALL_INFO,
    f"{CANN}/latest/lib64/libhccl.so": "",
    "/usr/local/Ascend/driver/version.info": VERSION_INFO,
    "/usr/local/Ascend/driver/lib64/driver/libascend_hal.so": "",
    **{f"/dev/{name}": "" for name in ("davinci_manager", "devmm_svm", "hisi_hdc", "davinci0", "davinci1")},
    "/etc/hccn.conf": "address_0=192.168.100.100\naddress_1=192.168.100.101\n",
    "/etc/group": "root:x:0:\nHwHiAiUser:x:1000:other\n",
    "/proc/net/fib_trie": FIB_TRIE,
    "/proc/mounts": "shm /dev/shm tmpfs rw,nosuid,size=16777216k 0 0\n",
    "/proc/self/limits": LIMITS.format(
        "Max open files            65535                65535                files\n"
    ),
    "/sys/class/net/eth0/mtu": "",
    "/sys/class/net/lo/mtu": "",
}
VARIABLES = {
    "HOME": "/home/me",
    "ASCEND_HOME_PATH": f"{CANN}/latest",
    "LD_LIBRARY_PATH": f"{CANN}/latest/lib64:/usr/lib",
}
PACKAGES = {
    "torch": Package("2.6.0+cpu"),
    "torch_npu": Package("2.6.0.post3", "2.6.0"),
    "torchvision": Package("0.21.0", "2.6.0"),
    "torchaudio": Package("2.6.0", "2.6.0"),
}
ME = User("me", 4242, frozenset({4242}))

Make = Callable[..., Machine]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A machine that is right, but for the files and variables that are given: None takes one away."""

    def machine(
        files: Mapping[str, str | None] = {}, variables: Mapping[str, str | None] = {}, user: User = ME
    ) -> Machine:
        root = tmp_path / "machine"
        root.mkdir(exist_ok=True)
        for name, content in {**FILES, **files}.items():
            if content is not None:
                path = root / name.lstrip("/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)
                path.chmod(0o666)
        given = {**VARIABLES, **variables}
        return Machine(root, {name: value for name, value in given.items() if value is not None}, user)

    return machine


@pytest.fixture
def python() -> Python:
    return Python("/opt/python", "3.11.7", PACKAGES)


def with_packages(python: Python, **packages: Package | None) -> Python:
    """The same Python with other packages; None takes one away."""
    both = {**python.packages, **packages}
    return replace(python, packages={name: one for name, one in both.items() if one is not None})
