"""The one editor of YAML files: a draft says what changes, and what that does not touch keeps its text."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any, Callable, Union

import yaml

from migrator.findings.edits import apply
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.launch.k8s.cluster import PlaceError

Path = tuple[Union[str, int], ...]
_GONE = object()
# First and last character, new text, rank of those that start at the same place.
_Edit = tuple[int, int, str, int]


class _CannotEditError(Exception):
    """The text has a form in which a change cannot be made in place."""


def at(data: Any, path: Path) -> Any:
    """What lies at ``path``. Raises KeyError, IndexError or TypeError where there is nothing."""
    for step in path:
        data = data[step]
    return data


class Draft:
    """The data of a document, and its changes.

    Paths are those of ``data``, which stays as it is, and of ``new``: there what goes is ``_GONE`` in its
    place, and a key that gets another name keeps its own until the ``result``. What is met twice through
    aliases of an anchor is one in both. ``rewrite`` has what makes a text of another one that is written in
    several lines. ``notes`` are texts, each with the place that it is about; ``spoken_of`` needs no other
    word.
    """

    def __init__(self, data: Any) -> None:
        self.data, self.new = data, deepcopy(data)
        self._keys: dict[tuple[int, Any], str] = {}
        self._settled: set[Path] = set()
        self.rewrite: dict[tuple[str, str], Callable[[str], str]] = {}
        self.notes: list[tuple[Path, str]] = []
        self.spoken_of: set[Path] = set()

    def mapping(self, path: Path) -> dict[str, Any]:
        """The mapping at ``path``. Raises PlaceError where there is none."""
        value = self._get(path)
        if not isinstance(value, dict):
            name = f"{path[-2]}[{path[-1]}]" if isinstance(path[-1], int) else path[-1]
            raise PlaceError(path, "{name} is not a mapping", name=name)
        return value

    def listed(self, path: Path) -> list[Any]:
        """The items of the list at ``path``, which may be missing. Raises PlaceError for anything else."""
        value = self._get(path)
        if not isinstance(value, (list, type(None))):
            raise PlaceError(path, "{path} is not a list", path=path[-1])
        return value or []

    def _get(self, path: Path) -> Any:
        try:
            return at(self.data, path)
        except LookupError:
            return None

    def key(self, held: Any, step: Any) -> Any:
        """The key that an entry of a part of ``new`` gets; of an item its number."""
        return self._keys.get((id(held), step), step)

    def result(self, value: Any = _GONE) -> Any:
        """What all of ``new``, or a part of it, becomes."""
        value = self.new if value is _GONE else value
        if isinstance(value, dict):
            kept = ((self.key(value, step), held) for step, held in value.items() if held is not _GONE)
            return {key: self.result(held) for key, held in kept}
        return (
            [self.result(item) for item in value if item is not _GONE] if isinstance(value, list) else value
        )

    def put(self, path: Path, key: str, value: Any, first: bool = False) -> None:
        """Add an entry to the mapping at ``path``, behind the others or before them."""
        holder = at(self.new, path)
        others = holder.copy() if first else {}
        if first:
            holder.clear()
        holder.update({key: value, **others})

    def append(self, path: Path, value: Any) -> None:
        """Add a last item to the list at ``path``, once."""
        items = at(self.new, path)
        if value not in items[len(at(self.data, path)) :]:
            items.append(value)

    def rename(self, path: Path, key: str) -> None:
        """Give the entry at ``path`` another key."""
        self._keys[id(at(self.new, path[:-1])), path[-1]] = key

    def set(self, path: Path, value: Any) -> None:
        """Write another value at ``path``."""
        at(self.new, path[:-1])[path[-1]] = value
        self._settled.add(path)

    def delete(self, path: Path) -> None:
        """Take the entry or item at ``path`` away."""
        self.set(path, _GONE)

    def entries(self, path: Path, added: Any, removed: Collection[Any] = ()) -> None:
        """Add entries to the list or mapping at ``path``, and remove some by their numbers or keys.

        It is made where it is missing, and goes when it is empty. What a mapping has stays as it is.
        """
        holder = at(self.data, path[:-1])
        present = holder.get(path[-1])
        if not isinstance(present, type(added)):
            if added and path[-1] in holder:
                self.set(path, added)
            elif added:
                self.put(path[:-1], str(path[-1]), added)
            return
        new = [each for each in added if isinstance(added, list) or each not in present]
        if removed and len(removed) == len(present) and not new:
            self.delete(path)
            return
        for step in removed:
            self.delete((*path, step))
        for each in new:
            if isinstance(added, dict):
                self.put(path, each, added[each])
            else:
                self.append(path, each)

    def note(self, path: Path, text: str, /, **values: object) -> None:
        """Note the change of a place and all that is below it."""
        self.remark(path, text, **values)
        self.spoken_of.add(path)

    def remark(self, path: Path, text: str, /, **values: object) -> None:
        """Say something else of a place."""
        self.notes.append((path, _(text, **values)))

    def settled(self, path: Path) -> bool:
        """Whether a place is changed, removed or spoken of already."""
        places = self._settled | self.spoken_of
        return any(path[:length] in places for length in range(1, len(path) + 1))


def changed_text(text: str, drafts: Sequence[Draft]) -> tuple[str, list[int]]:
    """A file's text with the changes of each of its documents.

    Also gives the numbers of the documents that had to be written anew, without
    their comments: those where the text in place would not mean the same as the
    changed data. Raises yaml.YAMLError where ``text`` is no YAML.
    """
    nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    wanted = [draft.result() for draft in drafts]
    edits: list[list[_Edit] | None] = []
    for node, draft in zip(nodes, drafts):
        try:
            # An anchor may be met through its aliases, too.
            edits.append(list(dict.fromkeys(_edits(text, node, draft, draft.data, draft.new))))
        except (_CannotEditError, LookupError):
            edits.append(None)
    if None not in edits and _read(_applied(text, edits)) == wanted:
        return _applied(text, edits), []
    anew = []
    ends = _document_ends(text)
    for number, node in enumerate(nodes):
        alone = _read(_applied(text, [edits[number]]))
        if edits[number] is None or alone is None or alone[number] != wanted[number]:
            whole = (node.start_mark.index, _end_of_line(text, ends[number]), dump(wanted[number]), 0)
            edits[number] = [whole]
            anew.append(number)
    new = _applied(text, edits)
    if _read(new) == wanted:
        return new, anew
    return "---\n".join(map(dump, wanted)), list(range(len(nodes)))


def _document_ends(text: str) -> list[int]:
    """Where the last value of each document ends; as a node, an alias has the place of its anchor."""
    ends: list[int] = []
    event: Any
    for event in yaml.parse(text):
        start, end = event.start_mark.index, event.end_mark.index
        if isinstance(event, yaml.DocumentStartEvent):
            ends.append(end)
        elif isinstance(event, yaml.ScalarEvent) and event.style in ("|", ">"):
            ends[-1] = len(text[:end].rstrip())
        elif isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent)):
            ends[-1] = end
        elif isinstance(event, yaml.CollectionEndEvent) and start < end:  # a block's lies behind comments
            ends[-1] = end
    return ends


def _read(text: str) -> list[Any] | None:
    try:
        return list(yaml.safe_load_all(text))
    except yaml.YAMLError:
        return None


def _applied(text: str, edits: Sequence[Sequence[_Edit] | None]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    found = [edit for own in edits for edit in own or ()]

    def in_bytes(place: int) -> int:
        return len(text[:place].encode("utf-8"))

    made = [
        Edit(in_bytes(start), in_bytes(end), re.sub("\r?\n", newline, new))
        for start, end, new, _ in sorted(found, key=lambda edit: (edit[0], edit[1], edit[3]))
    ]
    return apply(text.encode("utf-8"), made).decode("utf-8")


def _edits(text: str, node: Any, draft: Draft, old: Any, new: Any) -> Iterator[_Edit]:
    """The edits that make ``new`` of a node, which holds ``old``."""
    if draft.result(new) == old:
        return
    if isinstance(new, (dict, list)) and type(new) is type(old):
        yield from _edits_inside(text, node, draft, old, new)
    elif not isinstance(node, yaml.ScalarNode) or isinstance(new, (dict, list)):
        raise _CannotEditError
    else:
        start, end = node.start_mark.index, node.end_mark.index
        rewrite = draft.rewrite.get((old, new))
        if rewrite and (node.style in ("|", ">") or "\n" in text[start:end]):
            yield start, end, rewrite(text[start:end]), 0
        elif node.style in ("|", ">"):
            yield start, _end(text, node), _scalar(new, None), 0
        else:
            yield start, end, _scalar(new, node.style), 0


def _edits_inside(text: str, node: Any, draft: Draft, old: Any, new: Any) -> Iterator[_Edit]:
    """The edits of a list or a mapping, whose entries change."""
    is_list, whole = isinstance(old, list), draft.result(new)
    steps = range(len(old)) if is_list else old
    gone = [step for step in steps if new[step] is _GONE]
    added = range(len(old) - len(gone), len(whole)) if is_list else [key for key in new if key not in old]
    if node.flow_style and (gone or added):
        yield node.start_mark.index, node.end_mark.index, _flow(text, node, whole), 0
        return
    for step in steps:
        to, value = draft.key(new, step), new[step]
        if step in gone:
            yield _deletion(text, node, step)
            continue
        if to == step and draft.result(value) == old[step]:
            continue
        key, below = (None, node.value[step]) if is_list else _entry(node, str(step))
        if key is not None and to != step:
            yield key.start_mark.index, key.end_mark.index, _scalar(to, key.style), 0
        if old[step] is None and isinstance(value, (dict, list)):
            yield _filled(text, key, below, value)
        else:
            yield from _edits(text, below, draft, old[step], value)
    for step in added:
        yield _insertion(text, node, whole, step)


def _flow(text: str, node: Any, value: Any) -> str:
    """A collection with braces anew: as JSON, with its indentation, where it was JSON."""
    start, end = node.start_mark.index, node.end_mark.index
    try:
        json.loads(text[start:end])
    except ValueError:
        return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**9).strip()
    second = re.search(r"\n( *)\S", text[start:end])
    if not second:
        return json.dumps(value, ensure_ascii=False)
    line = text[text.rfind("\n", 0, start) + 1 : start]
    before = len(line) - len(line.lstrip(" "))
    own = json.dumps(value, ensure_ascii=False, indent=max(len(second.group(1)) - before, 1))
    return own.replace("\n", "\n" + " " * before)


def _deletion(text: str, node: Any, step: Any) -> _Edit:
    """The lines of an entry or item go."""
    is_list = isinstance(node, yaml.SequenceNode)
    key, value = (node.value[step],) * 2 if is_list else _entry(node, str(step))
    start = text.rfind("\n", 0, key.start_mark.index) + 1
    if not re.fullmatch(r" *- +" if is_list else " *", text[start : key.start_mark.index]):
        raise _CannotEditError
    return start, _end_of_line(text, _end(text, value)), "", 0


def _filled(text: str, key: Any, node: Any, value: Any) -> _Edit:
    """A collection where only its key stood."""
    if key is None or node.start_mark.index != node.end_mark.index:
        raise _CannotEditError
    place = _end_of_line(text, key.end_mark.index)
    column = key.start_mark.column + (2 if isinstance(value, dict) else 0)
    return place, place, _indented(text, place, dump(value), column), -column * 1000


def _insertion(text: str, node: Any, held: Any, step: Any) -> _Edit:
    """The lines of what is new in a collection."""
    if not node.value:
        raise _CannotEditError
    is_list = isinstance(held, list)
    first = (node.value[0] if is_list else node.value[0][0]).start_mark
    column = first.column
    if is_list:
        start = text.rfind("\n", 0, first.index) + 1
        if not re.fullmatch(r" *- +", text[start : first.index]):
            raise _CannotEditError
        column = text.index("-", start) - start
    place = _end_of_line(text, _end(text, node))
    if not is_list and step == next(iter(held)) and not text[first.index - column : first.index].strip(" "):
        place = first.index - column
    lines = _indented(text, place, dump([held[step]] if is_list else {step: held[step]}), column)
    # At one place the innermost comes first, then those of a list.
    return place, place, lines, -column * 1000 + (0 if is_list else 500)


def _indented(text: str, place: int, content: str, column: int) -> str:
    """The lines to put at the beginning of a line, or after the last one, which may have no line end."""
    lines = "".join(" " * column + line if line.strip() else line for line in content.splitlines(True))
    return "\n" + lines.rstrip("\n") if place and text[place - 1] != "\n" else lines


def _entry(node: Any, key: str) -> Any:
    """The nodes of a key and its value, also where they come from a merged mapping (``<<``)."""
    for entry in node.value:
        if entry[0].value == key:
            return entry
    for merged in [value for name, value in node.value if name.value == "<<"]:
        for one in merged.value if isinstance(merged, yaml.SequenceNode) else [merged]:
            with suppress(_CannotEditError):
                return _entry(one, key)
    raise _CannotEditError


def _end(text: str, node: Any) -> int:
    """Where a node's last character ends; a block's own mark lies behind the comments that follow it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]  # an alias has the place of its anchor, before its key
        return max(_end(text, part) for part in (last if isinstance(last, tuple) else (last,)))
    end: int = node.end_mark.index
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        end = len(text[:end].rstrip())
    return end


def _end_of_line(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end + 1


def _scalar(value: Any, style: str | None) -> str:
    if style == '"':
        return json.dumps(str(value), ensure_ascii=False)
    if style == "'":
        return "'" + str(value).replace("'", "''") + "'"
    return yaml.safe_dump(value, width=10**9).split("\n...\n")[0].rstrip("\n")


class _Dumper(yaml.SafeDumper):
    """Lists are indented by nothing, texts of several lines stand as they are, nothing is an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(
    str, lambda to, text: to.represent_scalar("tag:yaml.org,2002:str", text, "|" if "\n" in text else None)
)


def dump(data: Any) -> str:
    """``data`` as a block of YAML, in its own order."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**9)


def line_of(root: Any, path: Path) -> int:
    """The line of what lies at ``path`` below a composed node, or of what holds it."""
    node = root
    line: int = root.start_mark.line
    for step in path:
        try:
            if isinstance(node, yaml.SequenceNode):
                node = node.value[step]
                line = node.start_mark.line
            else:
                key, node = _entry(node, str(step))
                line = key.start_mark.line
        except (_CannotEditError, LookupError, TypeError, ValueError):
            break
    return line + 1
