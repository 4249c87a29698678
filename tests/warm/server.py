"""A process that has torch already, and runs programs in children: each as a Python of its own would.

``python server.py SOCKET MODULE…`` imports the modules, listens, and ends when its standard input does.
``sitecustomize.py`` beside it asks for the programs. What the emulator does when torch is imported is done
when the program imports it, in the child.
"""

from __future__ import annotations

import ast
import atexit
import copy
import gc
import importlib
import os
import runpy
import selectors
import signal
import socket
import sys
import threading
import types
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

# The emulator has steps before and after the import of these; what is in them has been imported.
HOOKED = ("numpy", "torch", "torch_npu")
_before: dict[str, types.ModuleType] = {}


class Imported(PathFinder):
    """Finds the modules that the server has imported, and all that Python's own finder finds."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Find the module; its import does nothing but import what it imports itself."""
        module = _before.get(name)
        if module is None:
            return super().find_spec(name, path, target)
        spec = copy.copy(module.__spec__)
        assert spec is not None
        spec.loader = Again(module)
        return spec


class Again:
    """Imports a module that is there."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Return the module."""
        return self.module

    def exec_module(self, module: types.ModuleType) -> None:
        """Import what the module imports."""
        module.__spec__ = self.spec
        if module.__name__ == "torch":
            import numpy  # noqa: F401

            if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD") != "0" and "torch_npu" in _before:
                import torch_npu  # noqa: F401
        elif module.__name__ == "torch_npu":
            import torch  # noqa: F401


def serve(address: str) -> None:
    """Run what connections ask for, until standard input ends."""
    with socket.socket(socket.AF_UNIX) as listening, selectors.DefaultSelector() as selector:
        listening.bind(f"{address}.part")
        listening.listen(100)
        os.rename(f"{address}.part", address)
        selector.register(listening, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        children: dict[int, tuple[int, socket.socket]] = {}  # by the file of a child: its number, who waits
        while True:
            for key, _ in selector.select():
                if key.fileobj is sys.stdin:
                    for child, _connection in children.values():
                        os.kill(child, signal.SIGKILL)
                    return
                if key.fileobj is listening:
                    connection, _ = listening.accept()
                    child = start(connection, [listening, *(each[1] for each in children.values())])
                    if child is None:
                        connection.close()
                        continue
                    file = os.pidfd_open(child)
                    children[file] = child, connection
                    selector.register(file, selectors.EVENT_READ)
                    selector.register(connection, selectors.EVENT_READ, (child, file))
                elif key.data is None:  # a child has ended
                    child, connection = children.pop(key.fd)
                    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                    with suppress(OSError, KeyError):
                        selector.unregister(connection)
                    with suppress(OSError):
                        connection.sendall(str(code).encode())
                    connection.close()
                    selector.unregister(key.fd)
                    os.close(key.fd)
                elif key.data[1] in children:  # a signal to hand on, or who waited is dead
                    sent = b""
                    with suppress(OSError):
                        sent = key.fileobj.recv(1)  # type: ignore[union-attr]
                    os.kill(key.data[0], sent[0] if sent else signal.SIGKILL)
                    if not sent:
                        selector.unregister(key.fileobj)


def start(connection: socket.socket, others: list[socket.socket]) -> int | None:
    """Begin a child that runs what is asked for."""
    data, files, _, _ = socket.recv_fds(connection, 8, 120)
    size, got = int.from_bytes(data, "little"), b""
    while len(got) < size:
        more = connection.recv(size - len(got))
        if not more:
            return None
        got += more
    if not size:
        return None
    child = os.fork()
    if child:
        for file in files:
            os.close(file)
        return child
    status = 1
    try:
        for each in (connection, *others):
            each.close()
        asked = ast.literal_eval(got.decode())
        take_files(dict(zip(asked["files"], files)))
        status = become(asked)
    finally:
        with suppress(BaseException):
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        os._exit(status)


def take_files(files: dict[int, int]) -> None:
    """Let the files of the asking process have the numbers that they have there."""
    import fcntl

    high = {wanted: fcntl.fcntl(file, fcntl.F_DUPFD, 200) for wanted, file in files.items()}
    os.closerange(3, 200)
    for wanted, file in high.items():
        os.dup2(file, wanted, inheritable=True)
        os.close(file)


def become(asked: dict[str, Any]) -> int:
    """Run a program as a Python of its own would; return its exit code."""
    os.chdir(asked["cwd"])
    os.environb.clear()
    os.environb.update(asked["environment"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for file, (name, kind) in enumerate(asked["streams"].items()):
        if kind is not None:
            encoding, errors = kind
            how = {"encoding": encoding, "errors": errors, "closefd": False}
            stream = open(file, "w" if file else "r", **how)  # noqa: SIM115 (as long as Python)
            stream.reconfigure(line_buffering=file == 2, write_through=asked["unbuffered"])
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
    sys.executable = asked["executable"]
    sys.path[:] = asked["path"]
    sys.warm = True  # type: ignore[attr-defined]
    sys.modules.pop("sitecustomize", None)
    importlib.invalidate_caches()
    for name, module in [(name, sys.modules.pop(name)) for name in HOOKED if name in sys.modules]:
        _before[name] = module
    sys.meta_path[:] = [Imported if each is PathFinder else each for each in sys.meta_path]
    with suppress(ModuleNotFoundError):
        from npumigrate_emulator import hook

        hook.PathFinder = Imported
    with suppress(ModuleNotFoundError):
        importlib.import_module("sitecustomize")
    return run(asked["kind"], asked["what"], asked["arguments"])


def run(kind: str, what: str, arguments: list[str]) -> int:
    """Run it, and end as Python ends."""
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    code = 0
    try:
        if kind == "-m":
            sys.path.insert(0, os.getcwd())
            sys.argv = ["-m", *arguments]
            runpy._run_module_as_main(what)  # type: ignore[attr-defined]
        elif kind == "-c":
            sys.path.insert(0, "")
            sys.argv = ["-c", *arguments]
            exec(compile(what, "<string>", "exec"), main.__dict__)
        else:
            sys.path.insert(0, os.path.dirname(os.path.realpath(what)))
            sys.argv = [what, *arguments]
            main.__file__ = os.path.abspath(what)
            with open(what, "rb") as file:
                exec(compile(file.read(), os.path.abspath(what), "exec"), main.__dict__)
    except SystemExit as error:
        code = ended(error)
    except BaseException as error:
        trace = error.__traceback__
        assert trace is not None
        error = error.with_traceback(trace.tb_next)
        sys.last_value, sys.last_type, sys.last_traceback = error, type(error), trace.tb_next
        code = 1
        try:
            sys.excepthook(type(error), error, trace.tb_next)
        except SystemExit as left:
            code = ended(left)
        if isinstance(error, KeyboardInterrupt):
            code = -signal.SIGINT
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code & 255)


def ended(error: SystemExit) -> int:
    """The exit code of a program that leaves."""
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    print(error.code, file=sys.stderr)
    return 1


if __name__ == "__main__":
    for each in sys.argv[2:]:
        importlib.import_module(each)
    gc.collect()
    gc.freeze()
    serve(sys.argv[1])
