"""Copies between object storage and the local disk around a training, as path_mapping_config.py says.

Several processes of one node run this at the same time, one for each card. They agree by two locks of the
kernel, on files in the temporary folder: a process that dies holds none, so nothing stays behind that would
be wrong later. Each process holds the lock "users", shared, from its download until its training ends; the
lock "gate" lets one process at a time download or upload.

It needs Python 3.7 or newer; moxing, which ModelArts has, only for obs:// and s3://.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Callable

CONFIG = "ascend_modelarts_function/path_mapping_config.py"
WRONG, NOT_COPIED = 78, 74  # EX_CONFIG, EX_IOERR
# Seconds that a process whose training failed waits for the others to end, before it uploads what is there:
# when it ends itself, the platform ends the others, and soon kills them.
GRACE = 10.0


class PathMappingError(Exception):
    """A wrong configuration, or a copy that failed: the line for the user, and the exit code."""

    def __init__(self, line: str, code: int = WRONG) -> None:
        super().__init__(line)
        self.code = code


class PathManager:
    """The copies of one process of a node. ``home`` is the folder from which relative local paths start."""

    def __init__(self, home: str, node: int, say: Callable[[str], None]) -> None:
        self.say = say
        config = read_config()
        self.inputs = pairs(config, "input", home)
        self.outputs = [
            (local, remote.replace("{node}", str(node))) for local, remote in pairs(config, "output", home)
        ]
        if config.get("output_nodes", "all") not in ("all", "first"):
            raise PathMappingError(f'{CONFIG}: "output_nodes" is neither "all" nor "first"')
        if config.get("output_nodes") == "first" and node > 0:
            self.outputs = []
        # One name for all processes of this training on this node.
        same = repr((self.inputs, self.outputs, node, os.getuid())).encode()
        self.lock = os.path.join(
            tempfile.gettempdir(), "modelarts_paths_" + hashlib.sha256(same).hexdigest()[:16]
        )
        self.users = -1

    def download(self) -> None:
        """Have the inputs on the local disk: by this process, or by another one, for which it waits."""
        with self.gate("another process of this node downloads"):
            self.users = opened(self.lock + ".users")
            if alone(self.users):
                os.utime(self.users, (0, 0))  # nothing is uploaded yet
                for local, remote in self.inputs:
                    self.copy(remote, local)
                    if not os.path.exists(local):
                        raise PathMappingError(f"{remote} has nothing to download", NOT_COPIED)
            fcntl.flock(self.users, fcntl.LOCK_SH)

    def upload(self, failed: bool) -> None:
        """Have the outputs in the object storage, when no process of this node trains any more.

        The last one to end uploads. One whose training ``failed`` does not wait long for the others.
        """
        ended = time.time()
        fcntl.flock(self.users, fcntl.LOCK_UN)
        while True:
            with self.gate("another process of this node uploads"):
                last = alone(self.users)
                if last or (failed and time.time() > ended + GRACE):
                    if os.fstat(self.users).st_mtime < ended:
                        self.upload_now()
                    return
            if not failed:
                return
            time.sleep(0.5)

    def upload_now(self) -> None:
        """Upload what is there. When that began is kept, for those that ended before: the lock's time."""
        begun = time.time()
        for local, remote in self.outputs:
            if os.path.exists(local):
                self.copy(local, remote)
            else:
                self.say(f"{local} is not there, and not uploaded")
        os.utime(self.users, (begun, begun))

    @contextmanager
    def gate(self, why: str) -> Iterator[None]:
        """Hold the gate; say why it has to be waited for."""
        gate = opened(self.lock + ".gate")
        try:
            if not alone(gate):
                self.say("waiting: " + why)
                fcntl.flock(gate, fcntl.LOCK_EX)
            yield
        finally:
            LOCKS.remove(gate)
            os.close(gate)

    def copy(self, source: str, target: str) -> None:
        """Copy a file, or what is in a folder. Raises PathMappingError."""
        begun = time.monotonic()
        try:
            (copy_object if is_object(source) or is_object(target) else copy_local)(source, target)
        except PathMappingError:
            raise
        except Exception as error:  # moxing raises what its network code raises
            reason = str(error).strip().split("\n")[0] or type(error).__name__
            raise PathMappingError(f"{source} was not copied to {target}: {reason}", NOT_COPIED) from error
        self.say(f"{source} copied to {target} in {time.monotonic() - begun:.1f} s")


def read_config() -> Mapping[str, Any]:
    """The content of path_mapping_config.py. Raises PathMappingError."""
    try:
        config = importlib.import_module("ascend_modelarts_function.path_mapping_config").PATH_MAPPING_CONFIG
    except SyntaxError as error:
        raise PathMappingError(f"{CONFIG}:{error.lineno}: {error.msg}") from error
    except (AttributeError, ImportError) as error:
        raise PathMappingError(f"{CONFIG}: {error}") from error
    if not isinstance(config, dict):
        raise PathMappingError(f"{CONFIG}: PATH_MAPPING_CONFIG is no dictionary")
    unknown = set(config) - {"input", "output", "output_nodes"}
    if unknown:
        raise PathMappingError(f"{CONFIG}: {min(unknown, key=repr)!r} is no part of it")
    return config


def pairs(config: Mapping[str, Any], part: str, home: str) -> list[tuple[str, str]]:
    """Local and remote paths of the configuration's ``input`` or ``output``. Raises PathMappingError."""
    entries = config.get(part, {})
    if not isinstance(entries, dict):
        raise PathMappingError(f'{CONFIG}: "{part}" is no dictionary')
    found = []
    for local, remote in entries.items():
        place = f'{CONFIG}: "{part}", {local!r}'
        if not isinstance(local, str) or not local or "://" in local:
            raise PathMappingError(f"{place}: a local path should stand before the colon")
        if not isinstance(remote, str) or not (is_object(remote) or remote.startswith(("/", "file:///"))):
            raise PathMappingError(
                f"{place}: {remote!r} is neither obs://bucket/path (or s3://), file:///path nor absolute"
            )
        path = os.path.normpath(os.path.join(home, os.path.expanduser(local)))
        if not is_object(remote):
            remote = remote[len("file://") :] if remote.startswith("file://") else remote
            shorter, longer = sorted((os.path.realpath(path), os.path.realpath(remote)), key=len)
            if os.path.join(longer, "").startswith(os.path.join(shorter, "")):
                raise PathMappingError(f"{place}: one of the two paths lies in the other")
        found.append((path, remote))
    return found


def is_object(path: str) -> bool:
    """Whether a path is one of the object storage."""
    return path.startswith(("obs://", "s3://"))


def copy_object(source: str, target: str) -> None:
    """Copy from or to the object storage."""
    try:
        files = importlib.import_module("moxing").file
    except ImportError as error:
        raise PathMappingError(
            f"{source} cannot be copied to {target}: there is no moxing here ({error})", NOT_COPIED
        ) from error
    if not is_object(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
    if files.is_directory(source) if is_object(source) else os.path.isdir(source):
        files.copy_parallel(source, target)
    else:
        files.copy(source, target + os.path.basename(source) if target.endswith("/") else target)


def copy_local(source: str, target: str) -> None:
    """Copy between folders of this machine: what is there stays, files of the same name are replaced."""
    if os.path.isdir(source):
        copy_folder(source, target, ())
    else:
        target = target + os.path.basename(source) if target.endswith("/") else target
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(source, target)


def copy_folder(source: str, target: str, above: tuple[str, ...]) -> None:
    """Copy what is in a folder; links are followed, but not into a folder ``above``."""
    real = os.path.realpath(source)
    if real in above:
        return
    os.makedirs(target, exist_ok=True)
    for entry in sorted(os.scandir(source), key=lambda one: one.name):
        inner = os.path.join(target, entry.name)
        if entry.is_dir():
            copy_folder(entry.path, inner, (*above, real))
        elif entry.is_file():
            shutil.copy2(entry.path, inner)


LOCKS: set[int] = set()


def forget_locks() -> None:
    """In a process that moxing forks: it may outlive this one, and would go on holding its locks."""
    for lock in LOCKS:
        os.close(lock)


os.register_at_fork(after_in_child=forget_locks)


def opened(path: str) -> int:
    """The file of a lock. Raises PathMappingError."""
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise PathMappingError(f"{path} cannot be opened: {error.strerror}", NOT_COPIED) from error
    LOCKS.add(lock)
    return lock


def alone(lock: int) -> bool:
    """Take a lock for this process alone, if no other one holds it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
