"""What the files of a project offer to each other, row by row."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from migrator.light import Frozen, NamedTuple

# What a row says of its name, by its kind.
LIGHTNING = "LightningModule"  # a class that derives from it
SET_DEVICE = "set_device"  # what torch.cuda.set_device is given, as written; empty for more than a name
DEVICE_KEY = "device key"  # a member or an item, in lower case, that goes into a device or is a backend
LIBRARY = "library"  # a package that is imported, which has a way of its own with devices
MODULE = "module"  # a name that stands for torch, torch.cuda or apex.amp, which is the detail
FOREIGN = "foreign"  # a file of another framework than PyTorch, which is the detail
FLAG = "flag"  # a name that holds or gives an answer; the details are what it depends on
REDUCER = "reducer"  # a function that reduces a parameter over the ranks: its place, its name as detail
TAKER = "taker"  # a function, a class or a method (OF_ANY) of which the argument at the place is a device
# Strings that change together, by what other files may name of them, or what they meet in others;
# details: the class, "device" where it meets one, "npu" where one is beside a branch for NPUs, and the places
# of its strings.
MEETS, MEETS_OTHERS = "meets", "meets others"
KEYS = "keys"  # a file of data in whose keys a device or a backend is looked up; the detail is the place
VALUES = "values"  # a file of data with a device or a backend behind a key, which is the detail
WAITER = "waiter"  # a function that calls a collective, and chooses no device
DOUBLE = "float64"  # a function that gives a tensor of float64
DOUBLE_ATTRIBUTE = "float64 attribute"  # an attribute that holds one, in the class of the detail
SAVED = "saved"  # the key of what ``weights_only`` does not read; details: what it is, and all keys beside it
CALLED = "called"  # a function of another file that TorchScript may compile; the detail is why:
SCRIPT, FORWARD = "script", "forward"
# Without a name.
SCRIPTS_MODULES = "scripts modules"  # torch.jit.script compiles more than functions of the same file
CUDA_DEFAULT = "CUDA default"  # a CUDA type becomes the default type of tensors
SCALES = (
    "scales"  # a GradScaler that is no torch.amp.GradScaler, or apex.amp; named where torch before 2.3 has it
)
WAITS = "waits"  # torch.distributed.barrier is called
CHOOSES = "chooses"  # the current device is chosen
GPU_KEYS = "GPU keys"  # "GPU" or "num_gpus" is a key, as in what Ray is asked for
LOCAL_RANK = "local rank"  # a name local_rank, which is not the option's alone
BINDS = "binds"  # init_process_group, or a function of such a name, is given a device_id


class Offer(NamedTuple):
    """One thing that a file does to others, or has for them; a name of a definition is its full one."""

    kind: str
    name: str = ""
    place: int = -1
    detail: tuple[str, ...] = ()


class Offers(Frozen):
    """What all files of a project offer."""

    rows: frozenset[Offer] = frozenset()

    @classmethod
    def of_all(cls, parts: Iterable[frozenset[Offer]]) -> Offers:
        """What some files offer together."""
        return cls(frozenset[Offer]().union(*parts))

    def of(self, kind: str) -> list[Offer]:
        """The rows of a kind, in order."""
        return self._by_kind.get(kind, [])

    def names(self, kind: str) -> frozenset[str]:
        """The names in the rows of a kind; empty where there are none."""
        return self._names.get(kind, frozenset())

    def elsewhere(self, kind: str, name: str) -> Offer | None:
        """What is offered under a name that is imported.

        The folder of a project may stand before its packages or not, and a package may hand on what its
        modules define.
        """
        package, _, last = name.rpartition(".")
        known = self._by_last.get((kind, last), ())
        same = (each for full, each in known if full.endswith(f".{name}") or f".{name}".endswith(full))
        inside = (each for full, each in known if package and f".{package}." in full)
        return next(same, None) or next(inside, None)

    def here(self, kind: str, name: str) -> Offer | None:
        """What a file offers under a name, by its own name or that of a package around it."""
        package, _, last = name.rpartition(".")
        for full, each in self._by_last.get((kind, last), ()):
            outer, inner = full.rpartition(".")[0] + ".", f".{package}."
            # The project's folder may be left out.
            if len(outer) > 1 and (inner.startswith(outer) or inner.endswith(outer) or outer.endswith(inner)):
                return each
        return None

    def met(self, name: str, own: bool) -> tuple[str, ...]:
        """What changes together with what has or takes a name, where it is in several files.

        That is ``npu`` where something there is beside a branch for NPUs, or else ``device`` where something
        meets one, or empty; and the places of all strings.
        """
        row = self.here(MEETS, name) if own else self.elsewhere(MEETS, name)
        return self._classes.get(row.detail[0], ()) if row is not None else ()

    @cached_property
    def _classes(self) -> dict[str, tuple[str, ...]]:
        """What changes with each class that is in several files."""
        joined: dict[str, list[Offer]] = {}
        for row in (*self.of(MEETS), *self.of(MEETS_OTHERS)):
            met = self.elsewhere(MEETS, row.name)
            if met is None:
                continue
            keys = row.detail[0], met.detail[0]
            few, many = sorted((joined.setdefault(key, []) for key in keys), key=len)
            few = few if few is not many else []
            many += [row, *few]
            joined.update(dict.fromkeys([*keys, *(each.detail[0] for each in few)], many))
        found: dict[str, tuple[str, ...]] = {}
        for rows in {id(rows): rows for rows in joined.values()}.values():
            if len({row.detail[0].partition(":")[0] for row in rows}) > 1:
                places = {place for row in rows for place in row.detail[2:]}
                meets = max(row.detail[1] for row in rows)
                found.update(dict.fromkeys((row.detail[0] for row in rows), (meets, *sorted(places))))
        return found

    @cached_property
    def _by_kind(self) -> dict[str, list[Offer]]:
        found: dict[str, list[Offer]] = {}
        for row in sorted(self.rows):
            found.setdefault(row.kind, []).append(row)
        return found

    @cached_property
    def _names(self) -> dict[str, frozenset[str]]:
        return {kind: frozenset(row.name for row in rows) for kind, rows in self._by_kind.items()}

    @cached_property
    def _by_last(self) -> dict[tuple[str, str], list[tuple[str, Offer]]]:
        """The rows by their kinds and the last parts of their names, with a dot before the full ones."""
        found: dict[tuple[str, str], list[tuple[str, Offer]]] = {}
        for row in sorted(self.rows):
            found.setdefault((row.kind, row.name.rpartition(".")[2]), []).append((f".{row.name}", row))
        return found
