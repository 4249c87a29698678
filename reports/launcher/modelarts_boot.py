#!/usr/bin/env python3
"""Boot file of a ModelArts training job: starts a script with the variables that torch reads.

Written by npumigrate launch modelarts. It needs Python 3.7 or newer and nothing else. Where a folder
ascend_modelarts_function lies beside it, data are copied before and after the training as its
path_mapping_config.py says.

ModelArts starts a boot file in one of these ways, told apart by what is set, in this order:
  RANK, WORLD_SIZE, LOCAL_RANK, ...   torchrun started it once for each card (MA_RUN_METHOD=torchrun)
  RANK_ID, RANK_SIZE, RANK_TABLE_FILE the engine Ascend-Powered-Engine started it once for each card
  --init_method tcp://host:port       the PyTorch engine started it once on each node
  MA_NUM_HOSTS                        a custom image started it once on each node
In the last two it starts one rank for each NPU of the node. A script that starts its own ranks is
started once on each node instead: of the boot files of a node's cards that of the first one does it.

Exit code: that of the script, or of the first rank to fail; 128 + n if signal n ended it; 78 for missing or
wrong variables, arguments or configuration; 74 if copying failed.
"""

from __future__ import annotations

import ctypes
import glob
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

ENTRY = "@ENTRY@"
MODULE = "@MODULE@"  # set where the script imports relatively: it is started as a module of its package
MODULE_ROOT = "@MODULE_ROOT@"
MASTER_PORT = "29500"  # the variable MASTER_PORT says another one
RANK_TABLE_TIMEOUT = "600"  # seconds; the variable RANK_TABLE_TIMEOUT says another number
KILL_AFTER = 30.0  # seconds for the other ranks to end after one has failed
DEFAULTS: dict[str, str] = {}  # @VARIABLES@
# What the script gets before its own arguments; %NAME% stands for a variable.
OPTIONS: list[str] = []  # @OPTIONS@
STARTS_RANKS = False  # @STARTS_RANKS@: the script starts those of its node itself

HERE = os.path.dirname(os.path.abspath(__file__))
WRONG = 78  # EX_CONFIG
OF_A_RANK = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK")
TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class BootError(Exception):
    """Training cannot start: the line for the user."""


class Start(NamedTuple):
    """What this process starts: rank and local rank of each process, and what is the same for all of them."""

    ranks: list[tuple[int, int]]
    world_size: int
    local_world_size: int
    node: int
    address: str
    port: str
    how: str


class Server(NamedTuple):
    """A machine of the rank table: rank and device of each NPU, by rank."""

    address: str
    devices: list[tuple[int, str]]


def main(arguments: list[str]) -> int:
    """Start the script and give its exit code."""
    running = Ranks()
    running.listen()
    try:
        start, arguments = how_started(os.environ, arguments)
        if not os.path.isfile(os.path.join(HERE, ENTRY)):
            raise BootError(f"the script {ENTRY} is not in {HERE}")
    except BootError as error:
        say(str(error))
        return WRONG
    if STARTS_RANKS:
        if start.ranks[0][1]:
            say(f"the boot file of node {start.node}'s first card starts {ENTRY}, which starts the ranks")
            return 0
        start = start._replace(ranks=start.ranks[:1])
    first, last = start.ranks[0][0], start.ranks[-1][0]
    ranks = f"rank {first}" if first == last else f"ranks {first} to {last}"
    master = f"{start.address}:{start.port}"
    say(f"{ranks} of {start.world_size}, node {start.node}, master {master}, by {start.how}")
    if not os.path.isdir(os.path.join(HERE, "ascend_modelarts_function")):
        return running.run(start, arguments)
    sys.path.insert(0, HERE)
    try:
        paths = importlib.import_module("ascend_modelarts_function.modelarts_path_manager")
        path_manager, path_mapping_error = paths.PathManager, paths.PathMappingError
    except (AttributeError, ImportError) as error:
        say(f"ascend_modelarts_function is not that of this boot file: {error}")
        return WRONG
    try:
        manager = path_manager(HERE, start.node, say)
        manager.download()
    except path_mapping_error as error:
        say(str(error))
        return int(error.code)
    code = running.run(start, arguments)
    try:
        manager.upload(failed=code != 0)
    except path_mapping_error as error:
        say(str(error))
        code = code or int(error.code)
    return code


def say(line: str) -> None:
    """One line on the standard error, in one piece."""
    sys.stderr.write(f"modelarts_boot: {line}\n")
    sys.stderr.flush()


def how_started(env: Mapping[str, str], arguments: list[str]) -> tuple[Start, list[str]]:
    """What to start, and the script's arguments. Raises BootError."""
    if all(env.get(name) for name in TORCHRUN):
        return by_torchrun(env), arguments
    if env.get("RANK_ID"):
        return by_rank_table(env), arguments
    engine, rest = engine_arguments(arguments)
    if "--init_method" in engine:
        return by_init_method(env, engine), arguments if STARTS_RANKS else rest
    if env.get("MA_NUM_HOSTS"):
        return by_hosts(env), arguments
    raise BootError(
        "how was this started? There is neither RANK_ID (Ascend-Powered-Engine), nor --init_method tcp://... "
        "(PyTorch engine), nor MA_NUM_HOSTS (custom image), nor RANK and the like (torchrun)"
    )


def by_torchrun(env: Mapping[str, str]) -> Start:
    """The variables are there already."""
    rank, local = number(env, "RANK"), number(env, "LOCAL_RANK")
    size, local_size = number(env, "WORLD_SIZE"), number(env, "LOCAL_WORLD_SIZE", least=1)
    node = number(env, "GROUP_RANK") if env.get("GROUP_RANK") else rank // local_size
    return Start(
        [(rank, local)], size, local_size, node, env["MASTER_ADDR"], env["MASTER_PORT"], "the launcher's RANK"
    )


def by_rank_table(env: Mapping[str, str]) -> Start:
    """Once for each card: the rank is RANK_ID, everything else is in the rank table."""
    rank, size = number(env, "RANK_ID"), number(env, "RANK_SIZE", least=1)
    file, servers = read_rank_table(env)
    known = sorted(one for server in servers for one, _ in server.devices)
    if known != list(range(len(known))):
        raise BootError(f"{file}: its ranks are not 0 to {len(known) - 1}, each once")
    if size != len(known):
        raise BootError(f"RANK_SIZE is {size}, and {file} has {len(known)} devices")
    if rank >= size:
        raise BootError(f"RANK_ID is {rank}, and RANK_SIZE {size}")
    node, mine = next(
        (i, server) for i, server in enumerate(servers) if any(one == rank for one, _ in server.devices)
    )
    return Start(
        [(rank, local_rank(env, rank, mine))],
        size,
        len(mine.devices),
        node,
        env.get("MASTER_ADDR") or servers[0].address,
        port(env),
        "RANK_ID and " + file,
    )


def local_rank(env: Mapping[str, str], rank: int, server: Server) -> int:
    """The NPU's number among those of its machine: ASCEND_DEVICE_ID, or else its place in the table."""
    place = [one for one, _ in server.devices].index(rank)
    device = number(env, "ASCEND_DEVICE_ID", str(place))
    if device < len(server.devices):
        return device
    if str(device) == server.devices[place][1]:  # the number that the whole machine has for it
        return place
    raise BootError(
        f"ASCEND_DEVICE_ID is {device}, and {server.address} has {len(server.devices)} NPUs in the rank table"
    )


def read_rank_table(env: Mapping[str, str]) -> tuple[str, list[Server]]:
    """The file of RANK_TABLE_FILE and the machines in it. Waits until the platform has completed it."""
    file = env.get("RANK_TABLE_FILE", "")
    if not file:
        raise BootError("RANK_ID is set, and RANK_TABLE_FILE is not: it names the rank table")
    if os.path.isdir(file):  # custom images get the folder
        file = os.path.join(file, "jobstart_hccl.json")
    seconds = number(env, "RANK_TABLE_TIMEOUT", RANK_TABLE_TIMEOUT)
    end = time.monotonic() + seconds
    said = ""
    while True:
        state, content = look_at(file)
        if not state:
            return file, servers_of(file, content)
        if time.monotonic() >= end:
            raise BootError(f"RANK_TABLE_FILE: {file} {state} after {seconds} s (RANK_TABLE_TIMEOUT)")
        if state != said:
            say(f"waiting: {file} {state}")
            said = state
        time.sleep(0.5)


def look_at(file: str) -> tuple[str, Any]:
    """Why a table has to be waited for, empty where it has not, and what is in it."""
    try:
        with open(file, encoding="utf-8") as stream:
            content = json.load(stream)
    except FileNotFoundError:
        return "is not there", None
    except OSError as error:
        raise BootError(f"RANK_TABLE_FILE: {file} cannot be read: {error.strerror}") from error
    except ValueError:
        return "is not JSON", None  # it may just be written
    if not isinstance(content, dict):
        raise BootError(f"RANK_TABLE_FILE: {file} is no rank table")
    status = content.get("status")
    return ("" if status == "completed" else f"has the status {status!r}"), content


def servers_of(file: str, content: Any) -> list[Server]:
    """The machines of a rank table in one of its two forms, ordered by their first rank."""
    found: dict[str, Server] = {}
    try:
        if "server_list" in content:
            for server in content["server_list"]:
                address = server.get("host_ip") or server["server_id"]
                devices = [(int(one["rank_id"]), str(one["device_id"])) for one in server["device"]]
                found.setdefault(server["server_id"], Server(address, [])).devices.extend(devices)
        elif "group_list" in content:
            rank = 0
            for instance in in_order(
                [one for group in content["group_list"] for one in group["instance_list"]]
            ):
                name = instance["server_id"]
                for one in instance["devices"]:
                    found.setdefault(name, Server(name, [])).devices.append((rank, str(one["device_id"])))
                    rank += 1
        else:
            raise BootError(f"RANK_TABLE_FILE: {file} has neither server_list nor group_list")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BootError(f"RANK_TABLE_FILE: {file} cannot be understood: {error!r}") from error
    servers = [Server(server.address, sorted(server.devices)) for server in found.values() if server.devices]
    return sorted(servers, key=lambda server: server.devices[0])


def in_order(instances: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The instances of the older form as ranks are counted: by rank_id, or by the number of their pod."""
    if all("rank_id" in one for one in instances):
        return sorted(instances, key=lambda one: int(one["rank_id"]))
    pods = [re.search(r"-(\d+)$", one.get("pod_name") or "") for one in instances]
    numbers = [int(pod.group(1)) for pod in pods if pod]
    if len(set(numbers)) < len(instances):
        return instances
    return [instances[i] for i in sorted(range(len(instances)), key=lambda i: numbers[i])]


def engine_arguments(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """What the PyTorch engine has put among the script's arguments, and the script's own ones."""
    engine: dict[str, str] = {}
    rest: list[str] = []
    words = iter(arguments)
    given = any(word.split("=")[0] == "--init_method" for word in arguments)
    for word in words:
        name, sign, value = word.partition("=")
        if not given or name not in ("--init_method", "--rank", "--world_size"):
            rest.append(word)
            continue
        if name in engine:
            raise BootError(
                f"{name} is there twice: the PyTorch engine gives it, and the script cannot have it too"
            )
        engine[name] = value if sign else next(words, "")
    return engine, rest


def by_init_method(env: Mapping[str, str], engine: Mapping[str, str]) -> Start:
    """Once on each node: --rank and --world_size count nodes; with one node they are left out."""
    url = engine["--init_method"]
    match = re.match(r"tcp://(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):(\d+)/?$", url)
    if not match:
        raise BootError(f"--init_method is {url!r}, not like tcp://host:port")
    node, nodes = number(engine, "--rank", "0"), number(engine, "--world_size", "1", least=1)
    if node >= nodes:
        raise BootError(f"--rank is {node}, and --world_size {nodes}")
    if env.get("MA_NUM_HOSTS") and nodes != number(env, "MA_NUM_HOSTS"):
        raise BootError(
            "--world_size is {}, and MA_NUM_HOSTS {}: it counts nodes".format(nodes, env["MA_NUM_HOSTS"])
        )
    return on_node(env, node, nodes, match.group(1).strip("[]"), match.group(2), "--init_method")


def by_hosts(env: Mapping[str, str]) -> Start:
    """Once on each node, by the variables that ModelArts sets in every container."""
    nodes = number(env, "MA_NUM_HOSTS", least=1)
    node = number(env, "VC_TASK_INDEX") if nodes > 1 else 0
    if node >= nodes:
        raise BootError(f"VC_TASK_INDEX is {node}, and MA_NUM_HOSTS {nodes}")
    address = env.get("MASTER_ADDR") or env.get("VC_WORKER_HOSTS", "").split(",")[0].strip()
    if not address and nodes > 1:
        raise BootError(f"MA_NUM_HOSTS is {nodes}, and VC_WORKER_HOSTS does not say where node 0 is")
    return on_node(env, node, nodes, address or "127.0.0.1", port(env), "MA_NUM_HOSTS and VC_TASK_INDEX")


def on_node(env: Mapping[str, str], node: int, nodes: int, address: str, at: str, how: str) -> Start:
    """One rank for each NPU of this node; all nodes have the same number."""
    count = npus(env)
    ranks = [(node * count + i, i) for i in range(count)]
    return Start(ranks, nodes * count, count, node, address, at, how)


def npus(env: Mapping[str, str]) -> int:
    """How many ranks a node has."""
    for name in ("NPROC_PER_NODE", "MA_NUM_GPUS"):  # the latter counts NPUs as well
        if env.get(name) and env[name] != "0":
            return number(env, name, least=1)
    if env.get("ASCEND_RT_VISIBLE_DEVICES"):
        return len(env["ASCEND_RT_VISIBLE_DEVICES"].split(","))
    devices = [one for one in glob.glob("/dev/davinci*") if re.search(r"davinci\d+$", one)]
    if not devices:
        raise BootError(
            "how many NPUs has this node? Neither NPROC_PER_NODE, MA_NUM_GPUS nor /dev/davinci* says it"
        )
    return len(devices)


def port(env: Mapping[str, str]) -> str:
    """MASTER_PORT, the same on all nodes."""
    return str(number(env, "MASTER_PORT", MASTER_PORT, least=1))


def number(values: Mapping[str, str], name: str, default: str = "", least: int = 0) -> int:
    """A variable or an argument as a number. Raises BootError where it is missing or none."""
    text = (values.get(name) or default).strip()
    if not text:
        raise BootError(f"{name} is not set")
    if not re.match(r"[0-9]+$", text) or int(text) < least:
        raise BootError(f"{name} is {text!r}, and should be a whole number from {least} on")
    return int(text)


class Ranks:
    """The started processes. Signals go on to them; a second one that asks to stop kills them."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []
        self.stops = 0

    def listen(self) -> None:
        """Take signals from now on; not in processes that moxing forks, and ends by signals."""
        names = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
        taken = [name for name in names if signal.getsignal(name) != signal.SIG_IGN]
        for name in taken:
            signal.signal(name, self.on_signal)

        def block() -> None:
            signal.pthread_sigmask(signal.SIG_BLOCK, taken)

        def unblock() -> None:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, taken)

        def in_child() -> None:
            for name in taken:
                signal.signal(name, signal.SIG_DFL)
            unblock()

        os.register_at_fork(before=block, after_in_parent=unblock, after_in_child=in_child)

    def on_signal(self, number: int, _: Any) -> None:
        """Ends this process before a rank runs, and, the second time, when all have ended and data go up."""
        stop = number not in (signal.SIGUSR1, signal.SIGUSR2)
        self.stops += stop
        if stop and (not self.processes or (self.stops > 1 and not self.alive())):
            sys.exit(128 + number)
        self.send(signal.SIGKILL if self.stops > 1 else number)

    def alive(self) -> list[subprocess.Popen[bytes]]:
        """Those that have not ended."""
        return [process for process in self.processes if process.returncode is None]

    def send(self, number: int) -> None:
        """Send a signal to those that have not ended, and to what they have started."""
        for process in self.alive():
            with suppress(OSError):  # it may just have ended
                os.killpg(process.pid, number)

    def run(self, start: Start, arguments: Sequence[str]) -> int:
        """Run all ranks to their end and give the exit code."""
        script = ["-m", MODULE] if MODULE else [os.path.join(HERE, ENTRY)]
        for rank, local in start.ranks:
            env = environment(os.environ, start, rank, local)
            options = filled(wanted(arguments), {**env, **of_nodes(start)})
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, "-u", *script, *options, *arguments],
                    cwd=HERE,
                    env=env,
                    start_new_session=True,
                    preexec_fn=die_with_parent,
                )
            )
            if self.stops:  # while this one started
                self.send(signal.SIGTERM)
                break
        code = 0
        kill_at = 0.0
        while self.alive():
            for process in self.alive():
                if process.poll() and not code:
                    code = process.returncode if process.returncode > 0 else 128 - process.returncode
                    rank = start.ranks[self.processes.index(process)][0]
                    say(f"rank {rank} ended with code {code}")
                    if not self.stops:  # otherwise all were asked, and may still be saving something
                        self.send(signal.SIGTERM)
                    kill_at = time.monotonic() + KILL_AFTER
            if kill_at and time.monotonic() > kill_at:
                self.send(signal.SIGKILL)
            time.sleep(0.05)
        return code


def wanted(arguments: Sequence[str]) -> list[str]:
    """The options, with their values, that are not among the arguments already."""
    given = {word.split("=")[0] for word in arguments if word.startswith("-")}
    words: list[str] = []
    left_out = False
    for word in OPTIONS:
        left_out = word in given if word.startswith("-") else left_out
        words += [] if left_out else [word]
    return words


def of_nodes(start: Start) -> dict[str, str]:
    """What a script that starts its own ranks may have to be told."""
    count = start.local_world_size
    return {"NPROC": str(count), "NNODES": str(start.world_size // count), "NODE_RANK": str(start.node)}


def filled(options: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Options with values in the places of their names: ``%RANK%``."""
    return [re.sub("%([A-Z_]+)%", lambda mark: values[mark.group(1)], option) for option in options]


def environment(env: Mapping[str, str], start: Start, rank: int, local: int) -> dict[str, str]:
    """The variables of one rank, as torchrun names them."""
    variables = {**DEFAULTS, **env}
    if MODULE:
        above = os.path.normpath(os.path.join(HERE, MODULE_ROOT))
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, (above, env.get("PYTHONPATH"))))
    if os.path.isdir(env.get("RANK_TABLE_FILE", "")):  # HCCL opens it as a file
        variables["RANK_TABLE_FILE"] = os.path.join(env["RANK_TABLE_FILE"], "jobstart_hccl.json")
    variables.update(MASTER_ADDR=start.address, MASTER_PORT=start.port)
    if STARTS_RANKS:
        return {name: value for name, value in variables.items() if name not in OF_A_RANK}
    variables.update(
        RANK=str(rank),
        LOCAL_RANK=str(local),
        WORLD_SIZE=str(start.world_size),
        LOCAL_WORLD_SIZE=str(start.local_world_size),
        GROUP_RANK=str(start.node),
    )
    return variables


LIBC = ctypes.CDLL(None)  # loaded here: little may happen between fork and exec


def die_with_parent() -> None:
    """In the child: where this process is killed without a chance to pass it on, Linux kills the rank."""
    if sys.platform == "linux":
        LIBC.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
