"""What differs between two torch versions, as far as the tables know."""

from __future__ import annotations

from collections.abc import Iterator

from migrator.api_support import npu_names, support, tables, torch_names
from migrator.api_support.versions import TorchVersion, resolve
from migrator.language import N_, MessageError, _
from migrator.light import Frozen


class Change(Frozen):
    """One difference, about a name, own, kernel, document or torch; ``before`` and ``after`` are words or ''.

    ``certain`` is False where the two versions' documents are of different
    editions: then the document may have changed, and not the API.
    """

    about: str
    name: str
    before: str
    after: str
    certain: bool = True


def between(older: TorchVersion, newer: TorchVersion) -> list[Change]:
    """Every change from one version to another, by what it is about and by name."""
    return [
        *(
            Change("name", name, before.npu, after.npu)
            for name in sorted(npu_names.names())
            for before, after in [(npu_names.look_up(name, older), npu_names.look_up(name, newer))]
            if before and after and before.npu != after.npu
        ),
        *_held("custom_ops", "own", "in torch_npu", older, newer),
        *_held("kernels", "kernel", "kernel", older, newer),
        *_documents(older, newer),
        *_torch(older, newer),
    ]


def caveats(older: TorchVersion, newer: TorchVersion) -> list[str]:
    """What has to be known to read the changes."""
    lines = []
    for version in (older, newer):
        if "docs" not in version.evidence:
            lines.append(_("torch {version} has no documents: documents are not compared.", version=version))
        if "wheel" not in version.evidence:
            said = N_("No wheel of torch {version} was read: its names come from the sources.")
            lines.append(_(said, version=version))
    if older.tuple < (2, 1) <= newer.tuple:
        lines.append(_("Before torch 2.1 the lists include composite operators: a lost kernel may be one."))
    return lines


def _held(table: str, about: str, word: str, older: TorchVersion, newer: TorchVersion) -> Iterator[Change]:
    sides = []
    for version in (older, newer):
        rows = tables.rows_at(table, version.tuple)
        sides.append({row[0] for row in rows if about != "kernel" or row[3] == "kernel"})
    for name in sorted(sides[0] ^ sides[1]):
        yield Change(about, name, word if name in sides[0] else "", word if name in sides[1] else "")


def _torch(older: TorchVersion, newer: TorchVersion) -> Iterator[Change]:
    """Public names that came and went: one spelling of each, and nothing that lies in one of them."""
    sides = torch_names.of_version(older.text), torch_names.of_version(newer.text)
    told = ""
    for name in torch_names.listed():
        gone, new = (here.present(name) and there.absent(name) for here, there in (sides, sides[::-1]))
        if (gone or new) and not (told and name.startswith(f"{told}.")):
            told = name
            yield Change("torch", name, "in torch" if gone else "", "in torch" if new else "")


def _documents(older: TorchVersion, newer: TorchVersion) -> Iterator[Change]:
    if not ("docs" in older.evidence and "docs" in newer.evidence):
        return
    rows = [support.parsed(line) for line in tables.lines("api_support")]
    sides = [{row.api: row for row in tables.at(rows, version.tuple)} for version in (older, newer)]
    same_edition = older.documents == newer.documents
    for api in sorted(sides[0].keys() | sides[1].keys()):
        before, after = sides[0].get(api), sides[1].get(api)
        # From the status to the operator: neither the range nor the source.
        if before is None or after is None or before[3:9] != after[3:9]:
            yield Change("document", api, _words(before, after), _words(after, before), same_edition)


def _words(row: support.Support | None, other: support.Support | None) -> str:
    """The document's word, and what else it says where the word is the same."""
    if row is None:
        return ""
    if other is None or row.status != other.status:
        return row.status
    parts = [set(here).difference(there) for here, there in zip(row[4:7], other[4:7])]
    return " ".join([row.status, *sorted(set().union(*parts))])


def pair(words: tuple[str, str]) -> tuple[TorchVersion, TorchVersion]:
    """Two versions in their order, from a user's words.

    Raises UnknownVersion, and ValueError for twice the same.
    """
    older, newer = sorted((resolve(word) for word in words), key=lambda version: version.tuple)
    if older == newer:
        raise MessageError("both are torch {older}: choose two different versions", older=older)
    return older, newer
