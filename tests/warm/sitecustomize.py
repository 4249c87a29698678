"""Lets a process that has torch already run this Python's program: see ``server.py``.

Python imports this at its start, where the tests have put its folder into PYTHONPATH and the server's socket
into NPUMIGRATE_WARM. It takes a tenth of a second at most, and the import of torch_npu two.
"""

import os
import sys

_NOT = ("migrator", "pytest", "build", "pip", "venv", "mkdocs")  # modules with a life of their own
_behind = []


def _asked():
    """What was asked of this Python, or None where the server cannot do it."""
    arguments = sys.argv[1:]
    words = sys.orig_argv[1 : len(sys.orig_argv) - len(arguments)]
    kind = sys.argv[0] if sys.argv and sys.argv[0] in ("-c", "-m") else ""
    flags = words[: -2 if kind else -1]
    if not words or any(flag not in ("-u", "-B") for flag in flags) or "PYTHONWARNINGS" in os.environ:
        return None
    what = words[-1]
    if kind == "-m" and what.partition(".")[0] in _NOT and not _is_for_editors():
        return None
    if kind == "-c" and "resource_tracker" in what:
        return None
    if not kind and (os.path.basename(what) in ("npumigrate", *_NOT) or not os.path.isfile(what)):
        return None
    unbuffered = "-u" in flags or "PYTHONUNBUFFERED" in os.environ
    return {
        "kind": kind,
        "what": what,
        "arguments": arguments,
        "unbuffered": unbuffered,
        "streams": {name: _kind(getattr(sys, name)) for name in ("stdin", "stdout", "stderr")},
        "path": sys.path,
        "cwd": os.getcwd(),
        "executable": sys.executable,
    }


def _kind(stream):
    return stream and (stream.encoding, stream.errors)


def _is_for_editors():
    return sys.orig_argv[1:4] == ["-m", "migrator", "server"]


def _run_there(asked, address):
    import _socket
    import array
    import signal

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.connect(address)
    except OSError:
        return
    open_files = [int(name) for name in os.listdir("/proc/self/fd")]
    files = [file for file in open_files if file != connection.fileno() and file < 100 and _is_open(file)]
    asked["files"] = files
    asked["environment"] = dict(os.environb)
    data = repr(asked).encode()
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", files))]
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, lambda number, _: connection.send(bytes([number])))
    connection.sendmsg([len(data).to_bytes(8, "little")], rights)
    connection.sendall(data)
    code = int(connection.recv(16) or b"1")
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _is_open(file):
    try:
        os.fstat(file)
    except OSError:
        return False
    return True


def _chain():
    """Run the sitecustomize that this one stands before."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(__file__)
    spec = PathFinder.find_spec(__name__, sys.path[sys.path.index(here) + 1 :] if here in sys.path else [])
    if spec is not None and spec.loader is not None:
        _behind.append(module_from_spec(spec))  # it lives as long as Python, as it would without this one
        spec.loader.exec_module(_behind[0])


_folder = os.environ.get("NPUMIGRATE_WARM")
if _folder and not hasattr(sys, "warm"):
    _plain = os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD") == "0"
    _address = f"{_folder}/{'editor' if _is_for_editors() else 'cpu' if _plain else 'npu'}"
    # It imports torch_npu by itself, which the one process has already and the other cannot load.
    _later = _plain and "NPUMIGRATE_EMULATOR" in os.environ
    _later = _later and "NPUMIGRATE_EMULATOR_STAND_IN" not in os.environ
    if not _later and os.path.exists(_address) and (_what := _asked()) is not None:
        _run_there(_what, _address)
_chain()
