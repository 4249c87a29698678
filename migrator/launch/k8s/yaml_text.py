"""Changes of a YAML file's text: what they do not touch stays the owner's, comments and layout too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import yaml

from migrator.findings.edits import apply
from migrator.findings.finding import Edit
from migrator.launch.k8s.changes import GONE, Draft, Path

# First and last character, new text, rank of those that start at the same place.
_Edit = tuple[int, int, str, int]


class _CannotEditError(Exception):
    """The text has a form in which a change cannot be made in place."""


def changed_text(text: str, drafts: Sequence[Draft]) -> tuple[str, list[int]]:
    """A file's text with the changes of each of its documents.

    Also gives the numbers of the documents that had to be written anew, without
    their comments: those where the text in place would not mean the same as the
    changed data. Raises yaml.YAMLError where ``text`` is no YAML.
    """
    nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    wanted = [draft.result() for draft in drafts]
    edits = [_in_place(text, *each) for each in zip(nodes, drafts)]
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


def _in_place(text: str, node: Any, draft: Draft) -> list[_Edit] | None:
    try:
        # An anchor may be met through its aliases, too.
        new = draft.copy_of(draft.data)
        return [] if draft.data == new else list(dict.fromkeys(_edits(text, node, draft, draft.data, new)))
    except (_CannotEditError, LookupError):
        return None


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
    if isinstance(old, (dict, list)) and type(old) is type(new):
        yield from _edits_inside(text, node, draft, old, new)
    elif not isinstance(node, yaml.ScalarNode):
        raise _CannotEditError
    elif isinstance(new, (dict, list)):
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
    is_list = isinstance(old, list)
    renamed = draft.renamed.get(id(new), {})
    kept = {step: renamed.get(step, step) for step in (range(len(old)) if is_list else old)}
    gone = [step for step, to in kept.items() if (new[to] is GONE if is_list else to not in new)]
    added = range(len(old), len(new)) if is_list else [key for key in new if key not in kept.values()]
    if node.flow_style and (gone or added):
        yield node.start_mark.index, node.end_mark.index, _flow(text, node, draft.final(new)), 0
        return
    for step, to in kept.items():
        if step in gone:
            yield _deletion(text, node, step)
            continue
        if to == step and (old[step] is new[to] or old[step] == new[to]):
            continue
        key, value = (None, node.value[step]) if is_list else _entry(node, str(step))
        if key is not None and to != step:
            yield key.start_mark.index, key.end_mark.index, _scalar(to, key.style), 0
        if old[step] is None and isinstance(new[to], (dict, list)):
            yield _filled(text, key, value, new[to])
        elif old[step] != new[to]:
            yield from _edits(text, value, draft, old[step], new[to])
    for step in added:
        yield _insertion(text, node, new, step)


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
    """The lines to put at the beginning of a line, or behind the last one, which may lack its end."""
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


def _represent_text(dumper: yaml.SafeDumper, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


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
