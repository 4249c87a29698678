"""The answers of ``npumigrate api`` as text: a screenful at 80 columns, and plain in a pipe."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional

from migrator.api_support.answer import Answer, Own, Range, at_version
from migrator.api_support.support import limit_words
from migrator.api_support.tables import as_tuple
from migrator.api_support.versions import TorchVersion, newest
from migrator.data_folders import data_folder
from migrator.language import N_, _, ngettext
from migrator.report.colors import paint
from migrator.wrapping import columns, padded, wrap

_COLORS = {
    **dict.fromkeys((N_("supported"), N_("kernel"), N_("composite")), "green"),
    **dict.fromkeys((N_("partial"), N_("fallback"), N_("unknown")), "yellow"),
    **dict.fromkeys((N_("unsupported"), N_("absent"), N_("none"), N_("no NPU equivalent")), "red"),
}
_WORDS = json.loads((data_folder("reports") / "api_words.json").read_bytes())
_KERNELS_ONLY = (2, 1)  # from here on the operator lists hold no composites
_LABEL = 13
_SPAN = 17
_WORD = 13


def page(answer: Answer, version: Optional[TorchVersion]) -> list[str]:
    """All about one name, or what holds of it at one version."""
    lines = [paint(answer.name, "bold")]
    if version:
        lines[0] += _("  at torch {version}, torch_npu {version.torch_npu}", version=version)
    if answer.alias_of:
        lines.append(_("another spelling of {alias_of}", alias_of=answer.alias_of))
    if answer.member_of:
        nearest = _(" or ").join(answer.nearest[:3])
        near = _("; did you mean {nearest}?", nearest=nearest) if nearest else ""
        said = N_("no data of its own; the following holds for all of {member_of}{near}")
        lines += _wrapped(_(said, member_of=answer.member_of, near=near))
    here = at_version(answer, version or newest())
    lines += [*_wrapped(here["sentence"]), "", *(_at(here) if version else _history(answer))]
    perhaps = [_("{name} (its name suggests it)", name=name) for name in answer.perhaps]
    lines += _entry(_("Alias for"), ", ".join(answer.stands_for))
    lines += _entry(_("NPU-friendly"), ", ".join([*answer.affine, *perhaps]))
    if cuda := answer.environment:
        values = _("values stay the same") if cuda.same_values else _("check the values")
        notes = [values if cuda.npu else "", cuda.advice]
        lines += _entry(_("On NPUs"), cuda.npu or _("no NPU equivalent"), notes)
    if npu := answer.variable:
        default = _(" (default {default})", default=npu.default) if npu.default else ""
        lines += _entry(_("Meaning"), npu.meaning)
        lines += _entry(_("Values"), npu.values + default)
        lines += _entry(_("Read on"), " ".join(npu.hardware), [npu.note])
    listed = [row.source for row in answer.forms] + [row.source for row in answer.registered]
    found = [source for sources in listed for source in sources.split("; ")]
    found += [known.source for known in (answer.environment, answer.variable) if known]
    found += [f"torch_npu ({row.evidence})" for row in answer.own]
    found += ["torch wheels"] if answer.in_torch else []
    editions = " ".join(_(row.source.replace("documents ", "", 1)) for row in answer.documents)
    if editions:
        editions = " ".join(dict.fromkeys(editions.replace(") (", ")|(").split(" ")))
        found.append(_("documents {editions}", editions=editions))
    ran = ((source, source.removesuffix(" executed")) for source in dict.fromkeys(found) if source)
    sources = (_(what) if what == source else _("{what} executed", what=what) for source, what in ran)
    return lines + _entry(_("Sources"), _("; ").join(sources))


def table(answers: Sequence[Answer], version: Optional[TorchVersion]) -> list[str]:
    """A line on each of several names, with the verdict; not on another spelling of one of them."""
    version = version or newest()
    names = {answer.name for answer in answers}
    listed = [answer for answer in answers if answer.alias_of not in names]
    width = max(len(answer.name) for answer in listed)
    lines = []
    for answer in listed:
        found = at_version(answer, version)
        words = [found["verdict"], *found["hardware"]]
        if answer.kind == "cuda":
            words = [found["npu_name"] or _("no NPU equivalent")]
            words += [found["verdict"]] if found["npu_name"] and found["verdict"] != "supported" else []
        elif answer.kind == "environment":
            own = answer.environment
            words = [own.npu or _("no NPU equivalent") if own else _("of an NPU")]
        elif answer.kind in ("own", "npu"):
            words = [_("in torch_npu") if found["exists"] else _("not in torch_npu")]
        shown = [_colored(word) for word in words if word] or ["-"]
        lines.append(f"{answer.name:<{width}}  {'  '.join(shown)}")
    count = ngettext("{n} name", "{n} names", len(listed))
    if len(answers) > len(listed):
        count += _(" and {answers} other spellings", answers=len(answers) - len(listed))
    return [
        *lines,
        "",
        _("{n}, at torch {version} with torch_npu {version.torch_npu}", n=count, version=version),
    ]


def _history(answer: Answer) -> Iterator[str]:
    # A name that every version has needs no line.
    partly = any(row.first or row.last for row in answer.in_torch)
    without = _("no NPU equivalent")
    blocks: dict[str, list[tuple[Range, str, str, list[str]]]] = {
        _("In torch"): [(row, "", "", []) for row in answer.in_torch if partly],
        _("Verdict"): [(row, row.verdict, "", []) for row in answer.verdicts],
        _("On NPUs"): [(row, row.npu_name or without, "", _on_an_npu(vars(row))) for row in answer.forms],
        _("In torch_npu"): [(row, "", "", _about(row)) for row in answer.own],
        _("Documents"): [
            (row, row.status, " ".join(row.hardware), _limits(row.dtypes, row.limits, row.npu_name))
            for row in answer.documents
        ],
        _("Registered"): [],
    }
    for held in answer.registered:
        meaning = _(_WORDS["registered"][held.kind])
        if held.last and as_tuple(held.last) < _KERNELS_ONLY:
            meaning = _("registered in torch_npu, as a kernel or a composite")
        notes = [f"{meaning} ({', '.join(held.overloads) or answer.operator})"]
        blocks[_("Registered")].append((held, held.kind, "", notes))
    for label, rows in blocks.items():
        for row, word, rest, notes in rows:
            padding = " " * max(_WORD - columns(_(word)), 1) if rest else ""
            versions = f"{row.first} – {row.last}" if row.last else _("from {first} on", first=row.first)
            if row.first == row.last:
                versions = row.first or _("every version")
            elif not row.first:
                versions = _("up to {last}", last=row.last)
            yield f"{padded(label, _LABEL)}{padded(versions, _SPAN)}{_colored(word)}{padding}{rest}".rstrip()
            yield from _notes(notes, _LABEL + _SPAN)
            label = ""


def _at(found: Mapping[str, Any]) -> Iterator[str]:
    """What holds at one version, as ``at_version`` has it."""
    absence, basis, is_cuda = found["absence"], found["basis"], found["is_cuda"]
    yield from _entry(_("Verdict"), _colored(found["verdict"]) + (f": {absence}" if absence else ""))
    if absence:
        return
    likely = "" if found["certain"] or not basis else _(" (likely: read from the source, not run)")
    lacking = [
        _("no kernel{when}: {operators}", when=when, operators=", ".join(found[key]))
        for key, when in (
            ("lacking", ""),
            ("sometimes", _(" for some arguments")),
            ("backward", _(" in the backward pass")),
        )
        if found[key]
    ]
    yield from _entry(_("Known from"), (_(_WORDS["basis"][basis]) if basis else "") + likely, lacking)
    if is_cuda:
        name = _colored(found["npu_name"] or _("no NPU equivalent"))
        yield from _entry(_("On NPUs"), name, _on_an_npu(found))
    if found["own"]:
        yield from _entry(_("In torch_npu"), _("yes") if found["exists"] else _("no"), _about(found["own"]))
    if found["status"]:
        words = "  ".join(filter(None, (_colored(found["status"]), " ".join(found["hardware"]))))
        if found["neighbour"]:
            words += _("  (the documents of torch {neighbour})", neighbour=found["neighbour"])
        notes = _limits(found["dtypes"], found["limits"], "" if is_cuda else found["npu_name"])
        notes += [f"{line}: {limit}" for line, limit in found["product_lines"]]
        yield from _entry(_("Documents"), words, notes)
    if registered := found["registered"]:
        meaning = f"{_colored(registered)}: {_(_WORDS['registered'][registered])}"
        yield from _entry(_("Registered"), meaning, [", ".join(found["overloads"])])


def _on_an_npu(form: Mapping[str, Any]) -> list[str]:
    return [form["advice"], "" if form["npu_name"] else _(_WORDS["unchanged"].get(form["unchanged"], ""))]


def _limits(dtypes: Iterable[str], limits: Sequence[str], npu_name: str) -> list[str]:
    lines = [_("NPU equivalent: {npu_name}", npu_name=npu_name)] if npu_name else []
    lines += [_("dtypes {group}", group=_dtype_words(group)) for group in dtypes]
    # What the dtypes line says need not be said again.
    coded = [limit for limit in limits if limit.partition(":")[0] not in ("dtype", "dtype_hw") or not dtypes]
    return lines + limit_words(coded)


def _dtype_words(group: str) -> str:
    where, colon, dtypes = group.rpartition(":")
    dtypes = dtypes.replace("+", " ")
    if not colon:
        return dtypes
    if where == "!":
        return _("all but {dtypes}", dtypes=dtypes)
    if not where.startswith("@"):
        return _("of {where}: {dtypes}", where=where.replace("&", ", "), dtypes=dtypes)
    hardware = where.strip("@!+")
    if where.endswith("!"):
        return _("not on {hardware}: {dtypes}", hardware=hardware, dtypes=dtypes)
    said = N_("also on {hardware}: {dtypes}") if where.endswith("+") else N_("on {hardware}: {dtypes}")
    return _(said, hardware=hardware, dtypes=dtypes)


def _about(own: Own) -> list[str]:
    said = []
    if own.replaces:
        named = _("its name suggests it") if own.replaces_source == "name" else _("documented")
        split = _(" or ").join(own.replaces.split())
        said.append(_("replaces {split} ({named})", split=split, named=named))
    if own.use_instead == "none":
        said.append(_("deprecated, no successor"))
    elif own.use_instead:
        said.append(_("deprecated: use {use_instead}", use_instead=own.use_instead))
    return said


def _entry(label: str, text: str, notes: Iterable[str] = ()) -> list[str]:
    """A labelled text, with what is to be said of it below; nothing of what is empty."""
    return [*_wrapped(text, padded(label, _LABEL), " " * _LABEL), *_notes(notes, _LABEL)]


def _notes(notes: Iterable[str], indent: int) -> Iterator[str]:
    for note in notes:
        yield from _wrapped(note, " " * indent, " " * indent)


def _wrapped(text: str, first: str = "", others: str = "") -> list[str]:
    """The lines of a text; none of an empty one."""
    width = min(max(shutil.get_terminal_size().columns, 60), 100)
    return wrap(text, width, first, others)


def _colored(word: str) -> str:
    return paint(_(word), _COLORS[word]) if word in _COLORS else word
