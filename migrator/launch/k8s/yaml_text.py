"""The one editor of YAML files: a draft says what changes, and what that does not touch keeps its text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Union

import yaml

from migrator.language import _
from migrator.launch.k8s.cluster import PlaceError

Path = tuple[Union[str, int], ...]
_GONE = object()
_Edit = tuple[int, int, str]  # first and last character, new text
_ITEM = re.compile(r" *- +")  # what stands before the first item of a list that has lines of its own


class _CannotEditError(Exception):
    """The text has a form in which a change cannot be made in place."""


def at(data: Any, path: Path) -> Any:
    """What lies at ``path``. Raises KeyError, IndexError or TypeError where there is nothing."""
    for step in path:
        data = data[step]
    return data


class Draft:
    """The data of a document, and its changes, at places of ``data``, which stays as it is.

    A part that is met twice through aliases of an anchor changes at both places. ``rewrite`` has what makes a
    text of another one that is written in several lines. ``notes`` are texts, each with the place that it is
    about.
    """

    def __init__(self, data: Any) -> None:
        self.data = data
        # By the mapping or the list and the key or number in it: other keys, and other values.
        self._keys: dict[tuple[int, Any], str] = {}
        self._values: dict[tuple[int, Any], Any] = {}
        # By the mapping or the list, and whether they come first: new entries, or new items.
        self._added: dict[tuple[int, bool], Any] = {}
        self._settled: set[Path] = set()
        self.rewrite: dict[tuple[str, str], Callable[[str], str]] = {}
        self.notes: list[tuple[Path, str]] = []

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
        with suppress(LookupError):
            return at(self.data, path)

    def key(self, held: Any, step: Any) -> Any:
        """The key that an entry of a part of the data gets; of an item its number."""
        return self._keys.get((id(held), step), step)

    def kept(self, held: Any) -> Iterator[tuple[Any, Any]]:
        """The keys or numbers of what stays in a mapping or list, each with its value by now."""
        for step, value in held.items() if isinstance(held, dict) else enumerate(held):
            now = self._values.get((id(held), step), value)
            if now is not _GONE:
                yield step, now

    def added(self, held: Any, first: bool = False) -> Any:
        """The entries or items that a mapping or list gets behind the others, or before them."""
        return self._added.get((id(held), first), type(held)())

    def result(self, held: Any = _GONE) -> Any:
        """What the data, or a part of it, becomes."""
        held = self.data if held is _GONE else held
        if isinstance(held, dict):
            kept = {self.key(held, step): value for step, value in self.kept(held)}
            entries = {**self.added(held, True), **kept, **self.added(held)}
            return {key: self.result(value) for key, value in entries.items()}
        if isinstance(held, list):
            return [self.result(item) for item in (*dict(self.kept(held)).values(), *self.added(held))]
        return held

    def put(self, path: Path, key: str, value: Any, first: bool = False) -> None:
        """Give the mapping at ``path`` an entry, a new one behind the others or before them."""
        holder = at(self.data, path)
        if key in holder:
            self._values[id(holder), key] = value
        else:
            self._added.setdefault((id(holder), first), {})[key] = value

    def append(self, path: Path, value: Any) -> None:
        """Add a last item to the list at ``path``, once."""
        items = self._added.setdefault((id(at(self.data, path)), False), [])
        if value not in items:
            items.append(value)

    def rename(self, path: Path, key: str) -> None:
        """Give the entry at ``path`` another key."""
        self._keys[id(at(self.data, path[:-1])), path[-1]] = key

    def set(self, path: Path, value: Any) -> None:
        """Write another value at ``path``."""
        self._values[id(at(self.data, path[:-1])), path[-1]] = value
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
        """Note the change of a place and all that is below it: it needs no other word."""
        self.remark(path, text, **values)
        self._settled.add(path)

    def remark(self, path: Path, text: str, /, **values: object) -> None:
        """Say something else of a place."""
        self.notes.append((path, _(text, **values)))

    def settled(self, path: Path) -> bool:
        """Whether a place is changed, removed or spoken of already."""
        return any(path[:length] in self._settled for length in range(1, len(path) + 1))


def changed_text(text: str, drafts: Sequence[Draft]) -> tuple[str, list[int]]:
    """A file's text with the changes of each of its documents.

    Also gives the numbers of the documents that had to be written anew, without
    their comments: those where the text in place would not mean the same as the
    changed data. Raises yaml.YAMLError where ``text`` is no YAML.
    """
    begins: list[Any] = [each for each in yaml.parse(text) if isinstance(each, yaml.DocumentStartEvent)]
    starts = [event.start_mark.index for event in begins[1:]]
    parts = [text[start:end] for start, end in zip([0, *starts], [*starts, len(text)])]
    anew = []
    for number, (part, draft) in enumerate(zip(parts, drafts)):
        node: Any = yaml.compose(part, Loader=yaml.SafeLoader)
        wanted = draft.result()
        try:
            # A part may be met through aliases, too.
            edits = [*dict.fromkeys(_edits(part, node, draft, draft.data))]
            new = _applied(part, edits)
            is_right = not edits or _means(new, wanted)
        except (_CannotEditError, LookupError):
            is_right = False
        if not is_right:
            anew.append(number)
            new = _applied(part, [(node.start_mark.index, _end_of_document(part), dump(wanted))])
            new = new if _means(new, wanted) else f"---\n{dump(wanted)}"
        parts[number] = new
    return "".join(parts), anew


def _means(text: str, data: Any) -> bool:
    """Whether a document's text stands for some data."""
    with suppress(yaml.YAMLError):
        return list(yaml.safe_load_all(text)) == [data]
    return False


def _applied(text: str, edits: Iterable[_Edit]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    pieces, place = [], 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):  # at one place the innermost first
        pieces += [text[place:start], re.sub("\r?\n", newline, new)]
        place = end
    return "".join([*pieces, text[place:]])


def _end_of_document(text: str) -> int:
    """Where the line of the last value ends; as a node, an alias has the place of its anchor."""
    last = 0
    event: Any
    for event in yaml.parse(text):
        start, end = event.start_mark.index, event.end_mark.index
        if isinstance(event, yaml.ScalarEvent) and event.style in ("|", ">"):
            last = len(text[:end].rstrip())
        elif isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent)):
            last = end
        elif isinstance(event, yaml.CollectionEndEvent) and start < end:  # a block's lies behind comments
            last = end
    return _end_of_line(text, last)


def _edits(text: str, node: Any, draft: Draft, held: Any) -> Iterator[_Edit]:
    """The edits that make the ``result`` of a node, which holds a part of the data."""
    if not isinstance(held, (dict, list)):
        return
    kept, added, before = dict(draft.kept(held)), draft.added(held), draft.added(held, True)
    if node.flow_style and (added or before or len(kept) < len(held)):
        yield node.start_mark.index, node.end_mark.index, _flow(text, node, draft.result(held))
        return
    for step, old in held.items() if isinstance(held, dict) else enumerate(held):
        if step not in kept:
            yield _deletion(text, node, step)
            continue
        name, new = draft.key(held, step), kept[step]
        if name == step and draft.result(new) == old:
            continue
        key, value = _entry(node, step)
        if name != step:
            yield key.start_mark.index, key.end_mark.index, _scalar(name, key.style)
        if new is old:
            yield from _edits(text, value, draft, old)
        elif old is None and isinstance(new, (dict, list)):
            yield _filled(text, key, value, new)
        else:
            yield _replaced(text, value, draft, old, new)
    for content in filter(None, (before, added)):
        yield _insertion(text, node, content, content is before)


def _replaced(text: str, node: Any, draft: Draft, old: Any, new: Any) -> _Edit:
    """Another scalar in the place of one."""
    if not isinstance(node, yaml.ScalarNode) or isinstance(new, (dict, list)):
        raise _CannotEditError
    start, end = node.start_mark.index, node.end_mark.index
    rewrite = draft.rewrite.get((old, new))
    if rewrite and (node.style in ("|", ">") or "\n" in text[start:end]):
        return start, end, rewrite(text[start:end])
    return start, _end(text, node), " " * (start == end) + _scalar(new, node.style)


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
    line = text[_line_start(text, start) : start]
    before = len(line) - len(line.lstrip(" "))
    own = json.dumps(value, ensure_ascii=False, indent=max(len(second.group(1)) - before, 1))
    return own.replace("\n", "\n" + " " * before)


def _deletion(text: str, node: Any, step: Any) -> _Edit:
    """The lines of an entry or item go."""
    key, value = _entry(node, step)
    start = _line_start(text, key.start_mark.index)
    before = text[start : key.start_mark.index]
    if not _ITEM.fullmatch(before) if key is value else before.strip(" "):
        raise _CannotEditError
    return start, _end_of_line(text, _end(text, value)), ""


def _filled(text: str, key: Any, node: Any, value: Any) -> _Edit:
    """A collection where only its key stood."""
    if key is node or node.start_mark.index != node.end_mark.index:
        raise _CannotEditError
    column = key.start_mark.column + (2 if isinstance(value, dict) else 0)
    return _lines(text, _end_of_line(text, key.end_mark.index), value, column)


def _insertion(text: str, node: Any, content: Any, first: bool) -> _Edit:
    """The lines of new entries or items."""
    if not node.value:
        raise _CannotEditError
    mark = (node.value[0] if isinstance(content, list) else node.value[0][0]).start_mark
    start, column = _line_start(text, mark.index), mark.column
    before = text[start : mark.index]
    if isinstance(content, list):
        if not _ITEM.fullmatch(before):
            raise _CannotEditError
        column = before.index("-")
    is_above = first and not before.strip(" ")
    return _lines(text, start if is_above else _end_of_line(text, _end(text, node)), content, column)


def _lines(text: str, place: int, content: Any, column: int) -> _Edit:
    """New lines at the beginning of a line, or after the last one, which may have no line end."""
    written = dump(content).splitlines(True)
    lines = "".join(" " * column + line if line.strip() else line for line in written)
    return place, place, "\n" + lines.rstrip("\n") if place and text[place - 1] != "\n" else lines


def _entry(node: Any, step: Any) -> Any:
    """The nodes of a key and its value, also where they come from a merged mapping (``<<``).

    Of an item twice its own. Raises _CannotEditError, LookupError or TypeError where there is none.
    """
    if isinstance(node, yaml.SequenceNode):
        return node.value[step], node.value[step]
    entries = node.value if isinstance(node, yaml.MappingNode) else ()
    for entry in entries:
        if entry[0].value == str(step):
            return entry
    for merged in [value for name, value in entries if name.value == "<<"]:
        for one in merged.value if isinstance(merged, yaml.SequenceNode) else [merged]:
            with suppress(_CannotEditError):
                return _entry(one, step)
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


def _line_start(text: str, place: int) -> int:
    return text.rfind("\n", 0, place) + 1


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
    key = node = root
    with suppress(_CannotEditError, LookupError, TypeError):
        for step in path:
            key, node = _entry(node, step)
    return int(key.start_mark.line) + 1
