"""The server for agents and its tools: each runs commands of npumigrate and gives their results.

Texts are for clients that show no structured results: they say the same in short.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Callable, Optional

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, Field

from migrator import __version__
from migrator.files.unified_diff import changed_files
from migrator.findings.finding import SEVERITIES
from migrator.language import UserError
from migrator.light import Frozen
from migrator.mcp import results
from migrator.mcp.own_runs import LARGEST, Finished, Refused, existing, name_in, place_in, run_own

_INSTRUCTIONS = """\
npumigrate takes PyTorch projects from CUDA and NCCL to Ascend NPUs (torch_npu and HCCL). Ask look_up_api \
before you write code for NPUs, lint to find what keeps code from running there, explain_rule for the reason \
of a finding, preview_migration for the changes that npumigrate would make, explain_error for what failed in \
a log. Nothing is written: apply a diff yourself, or run `npumigrate SRC -o OUT`. Paths are relative to the \
workspace {workspace}.
"""
_ANSWERS = 30  # of a pattern
_LONGEST_DIFF = 60_000  # characters
_LONGEST_OUTPUT = 4_000
_AT_ONCE = 2
_LARGEST_LOG = 4 << 30
_TROUBLE = 2  # exit code of lint

_NAME = "torch.cuda.Event, Tensor.mode, F.relu, aten::add, NCCL_DEBUG, 'torch.fft.*', …"
Name = Annotated[str, Field(max_length=200, description=_NAME)]
_VERSION = "torch version to run on: 2.6; else that of the project's requirements, or the newest."
Version = Annotated[Optional[str], Field(max_length=40, description=_VERSION)]
_PATH = "File or folder, relative to the workspace. Not with text."
Path_ = Annotated[str, Field(max_length=4096, description=_PATH)]
_TEXT = "Look at this text instead of a file or folder."
Text = Annotated[Optional[str], Field(max_length=LARGEST, description=_TEXT)]
_FILE_NAME = "What the text would be called: its ending says what it is."
FileName = Annotated[str, Field(max_length=255, description=_FILE_NAME)]
_COMMAND = "The program and its arguments; else what the launcher starts."
_STEPS = "End each rank after so many steps of its optimizers."
Limit = Annotated[int, Field(ge=1, le=1000, description="Most findings to return.")]
_SELECT = "Only these rules: codes or their beginnings, such as NPU101, NPU2."
Select = Annotated[Optional[list[str]], Field(max_length=100, description=_SELECT)]


class Tools(Frozen):
    """The tools for one workspace, an absolute real path; ``packs`` are rule packs of the user's own.

    Each tool returns its result, and raises ToolError with a line that says what is wrong.
    """

    workspace: Path
    seconds: float
    packs: Sequence[str] = ()
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def look_up_api(
        self, name: Name, version: Annotated[Optional[str], Field(max_length=40)] = None
    ) -> Annotated[CallToolResult, results.ApiAnswer]:
        """Look up how a torch API, a torch.cuda name, an operator or an environment variable works on NPUs.

        Says whether it is supported, its NPU equivalent, its limits and the sources, at one torch version or
        at all that are known. With * or ? the name stands for all that fit.
        """
        asked = [*_version(version), "--", name]
        with _refusals():
            found, page = await asyncio.gather(self._run("api", "--json", *asked), self._run("api", *asked))
            content = _read(found)
        answers = content["answers"]
        content.update(answers=answers[:_ANSWERS], not_shown=max(0, len(answers) - _ANSWERS))
        text = page.out or _said(page.err)
        return _result(results.ApiAnswer(**content), _cut(text, _LONGEST_DIFF)[0])

    async def explain_rule(
        self, code: Annotated[str, Field(max_length=80, description="Such as NPU101, or the rule's name.")]
    ) -> Annotated[CallToolResult, results.Rules]:
        """Explain a rule of lint and migrate: why it exists, what to do, before and after, references."""
        with _refusals():
            rules = _read(await self._run("rule", "--output-format=json", *self._packs(), "--", code))
        return _result(results.Rules(rules=rules), "\n".join(map(_rule_text, rules)))

    async def lint(
        self,
        path: Path_ = ".",
        text: Text = None,
        filename: FileName = "snippet.py",
        version: Version = None,
        select: Select = None,
        limit: Limit = 100,
    ) -> Annotated[CallToolResult, results.LintResult]:
        """Find what keeps a file, a folder or a text from running on Ascend NPUs. Changes nothing.

        Python, notebooks, shell scripts, configurations, requirements and Dockerfiles are looked at. Settings
        are those of the project, as for npumigrate lint.
        """
        with _refusals():
            place = existing(self.workspace, path) if text is None else place_in(self.workspace, filename)
            options = [*_version(version), *([f"--select={','.join(select)}"] if select else [])]
            torch = _known(version) if version else await asyncio.to_thread(_configured, place)
            found, troubles = await self._findings(place, text, [*options, *self._packs()])
        shown, levels = found[:limit], Counter(item.severity for item in found)
        result = results.LintResult(
            torch=torch,
            total=len(found),
            by_severity={word: levels[word] for word in reversed(SEVERITIES) if levels[word]},
            by_rule=dict(sorted(Counter(item.code for item in found).items())),
            findings=shown,
            not_shown=len(found) - len(shown),
            troubles=troubles,
        )
        head = f"{_number(len(found), 'finding')} for torch {torch}"
        return _result(result, "\n".join([head, *_lines(shown, len(found)), *troubles]))

    async def explain_error(
        self, path: Path_ = ".", text: Text = None
    ) -> Annotated[CallToolResult, results.Explained]:
        """Explain what failed first in a log, a folder of logs or a text: cause, steps, and how sure that is.

        Reads tracebacks and logs of torch_npu, CANN, HCCL and torchrun of many ranks; says the first failing
        rank and the line of the project.
        """
        with _refusals():
            place = "-" if text is not None else str(existing(self.workspace, path, _LARGEST_LOG))
            content = _read(await self._run("explain", "--output-format=json", place, stdin=text or ""))
        result = results.Explained(**{**content, "explained": content["code"] is not None})
        said = [f"{result.code}: {result.name}. {result.cause}" if result.explained else "unknown"]
        return _result(result, "\n".join([*said, *result.do, *result.collect]))

    async def preview_migration(
        self,
        path: Path_ = ".",
        text: Text = None,
        filename: FileName = "snippet.py",
        version: Version = None,
        safe_only: Annotated[bool, Field(description="Apply safe changes only.")] = False,
        limit: Limit = 100,
    ) -> Annotated[CallToolResult, results.Preview]:
        """Show what a migration to Ascend NPUs would change in a file, a folder or a text, as a unified diff.

        Writes nothing. Unsafe changes, which a person should look at, and what is left for manual review are
        listed beside it.
        """
        with _refusals(), tempfile.TemporaryDirectory() as scratch:
            if text is None:
                place = existing(self.workspace, path)
            else:
                place = Path(scratch) / Path(filename).name
                place.write_bytes(text.encode("utf-8", "surrogatepass"))
            from migrator.project.wanted_versions import chosen_version

            torch = _known(version) if version else (await asyncio.to_thread(chosen_version, place)).version
            options = [*_version(torch), *self._packs()]
            command = ["migrate", f"--input={place}", "--diff", "--quiet", *options]
            done = await self._run(*command, *(["--safe-only"] if safe_only else []))
            if done.code not in (0, 1):
                raise Refused(_said(done.err).replace(f"{scratch}/", ""))
            found, troubles = await self._findings(place, text, [*options, "--isolated", "--ignore-noqa"])
        diff, complete = _cut(done.out, _LONGEST_DIFF)
        unsafe = [item for item in found if item.fix == "unsafe"]
        review = [item for item in found if item.fix is None]
        files = [
            results.ChangedFile(file=name.decode("utf-8").removeprefix("b/"), added=len(rows), removed=lost)
            for name, rows, lost in changed_files(done.out.encode("utf-8"))
        ]
        result = results.Preview(
            torch=torch,
            files=files,
            diff=diff,
            diff_complete=complete,
            unsafe=unsafe[:limit],
            review=review[:limit],
            not_shown=len(unsafe[limit:]) + len(review[limit:]),
            troubles=troubles,
        )
        return _result(result, _preview_text(result, safe_only, len(unsafe), len(review)))

    async def verify(
        self,
        path: Annotated[str, Field(max_length=4096, description="Folder of the migrated project.")],
        command: Annotated[Optional[list[str]], Field(max_length=200, description=_COMMAND)] = None,
        devices: Annotated[int, Field(ge=1, le=32, description="Number of emulated NPUs.")] = 8,
        steps: Annotated[Optional[int], Field(ge=1, description=_STEPS)] = None,
    ) -> Annotated[CallToolResult, results.Verified]:
        """Run a migrated project on emulated NPUs and say what that proves. Runs the project's own program.

        The program may do what any program of the user may: write files, use the network. Numbers are those
        of the CPU.
        """
        with _refusals(), tempfile.TemporaryDirectory() as scratch:
            place = existing(self.workspace, path)
            if not place.is_dir():
                raise Refused(f"no folder: {path}")
            verdict = Path(scratch) / "verdict.json"
            options = [f"--json={verdict}", f"--devices={devices}", f"--timeout={self.seconds:g}"]
            options += [f"--steps={steps}"] if steps else []
            program = ["--", *command] if command else []
            # Beyond the program's time: to build the emulator, and to end what the program has left.
            done = await self._run("verify", str(place), *options, *program, seconds=self.seconds + 180)
            if not verdict.is_file():
                raise Refused(_said(done.err))
            known = json.loads(verdict.read_text(encoding="utf-8"))
        content = {name: known[name] for name in results.Verified.model_fields.keys() & known.keys()}
        content.update(failures=known["failures"][:20], cuda_reached=known["cuda_reached"][:50])
        result = results.Verified(**content, output=done.out[-_LONGEST_OUTPUT:])
        said = "\n".join([f"{result.verdict} (exit code {result.exit_code})", *result.reasons])
        return _result(result, f"{said}\n\n{done.err[-_LONGEST_OUTPUT:]}\n{result.output}")

    async def _run(self, *arguments: str, stdin: str = "", seconds: Optional[float] = None) -> Finished:
        async with self._turns:
            return await run_own(arguments, self.workspace, seconds or self.seconds, stdin)

    async def _findings(
        self, place: Path, text: Optional[str], options: Sequence[str]
    ) -> tuple[list[results.Finding], list[str]]:
        """What lint finds in a place or a text, the gravest first, and what went wrong."""
        # The project's own settings may ask for fixes, and lint has a cache: nothing is written here.
        command = ["lint", "--output-format=json", "--no-fix", "--no-cache", "--exit-zero", "--quiet"]
        paths = [str(place)] if text is None else [f"--stdin-filename={place}", "-"]
        done = await self._run(*command, *options, *paths, stdin=text or "")
        if done.code == _TROUBLE and done.out.strip() in ("", "[]"):
            raise Refused(_said(done.err))
        root = place if place.is_dir() else place.parent
        outside = self.workspace if root.is_relative_to(self.workspace) else root
        found = [_finding(item, name_in(outside, item["filename"])) for item in json.loads(done.out)]
        known = [item for item in found if item.file]  # what a link that leads out shows is left out
        known.sort(key=lambda item: -SEVERITIES.index(item.severity))
        return known, _said(done.err).splitlines()

    def _packs(self) -> list[str]:
        return [f"--rules={file}" for file in self.packs]


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except (Refused, UserError, OSError) as error:
        raise ToolError(str(error)) from error


def _known(version: str) -> str:
    """The torch version that is named, as the tables spell it."""
    from migrator.api_support.versions import resolve

    return resolve(version).text


def _configured(place: Path) -> str:
    """The torch version that lint takes where nobody names one."""
    from migrator.lint.config_files import Configuration, asked_folders
    from migrator.lint.options import for_file, torch_version

    folder = place if place.is_dir() else place.parent
    options = Configuration({}, projects=asked_folders([str(place)])).options_for(folder)
    return torch_version(for_file(options, place, {}))


def _version(version: Optional[str]) -> list[str]:
    return [f"--version={version}"] if version else []


def _read(done: Finished) -> Any:
    if not done.out.strip():
        raise Refused(_said(done.err))
    return json.loads(done.out)


def _said(text: str) -> str:
    """What a command said on its standard error, without its name."""
    return "\n".join(line.removeprefix("npumigrate: ") for line in text.strip().splitlines())


def _result(model: BaseModel, text: str) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=model.model_dump(mode="json")
    )


def _cut(text: str, most: int) -> tuple[str, bool]:
    """The whole lines of the first ``most`` characters, and whether that is all."""
    if len(text) <= most:
        return text, True
    return text[: text.rfind("\n", 0, most) + 1], False


def _finding(item: dict[str, Any], name: str) -> results.Finding:
    place, fix = item["location"], item["fix"] or {}
    return results.Finding(
        file=name,
        line=place["row"],
        column=place["column"],
        fix=fix.get("applicability"),
        fix_message=fix.get("message"),
        **{key: item[key] for key in ("cell", "code", "severity", "message", "advice", "api")},
    )


def _lines(found: Sequence[results.Finding], total: int) -> Iterator[str]:
    for item in found:
        cell = f"cell {item.cell}:" if item.cell is not None else ""
        fix = f" [{item.fix} fix: {item.fix_message}]" if item.fix else ""
        advice = f" {item.advice}" if item.advice and item.advice not in item.message else ""
        place = f"{item.file}:{cell}{item.line}:{item.column}"
        yield f"{place}: {item.code} {item.severity}: {item.message}.{advice}{fix}"
    if total > len(found):
        yield f"and {total - len(found)} more"


def _preview_text(result: results.Preview, safe_only: bool, unsafe: int, review: int) -> str:
    count = _number(len(result.files), "file")
    lines = [f"{count} would change for torch {result.torch}; nothing was written"]
    if not result.diff_complete:
        lines.append("The diff is cut: name a smaller folder, or a file.")
    if result.diff:
        lines += ["", result.diff.rstrip("\n")]
    if unsafe:
        what = "Not made, as unsafe" if safe_only else "Unsafe changes: look at them"
        lines += ["", f"{what}", *_lines(result.unsafe, unsafe)]
    if review:
        lines += ["", "Manual review", *_lines(result.review, review)]
    return "\n".join([*lines, *result.troubles])


def _rule_text(rule: dict[str, Any]) -> str:
    lines = [f"{rule['code']} {rule['name']}: {rule['summary']}", f"{rule['severity']}, fix: {rule['fix']}"]
    lines += ["", rule["why"].strip()] if rule["why"] else []
    lines += ["", f"What to do: {rule['advice'].strip()}"] if rule["advice"] else []
    change = next((each for each in rule["examples"] if "after" in each), None)
    if change:
        lines += ["", "Before:", change["before"].rstrip(), "", "After:", change["after"].rstrip()]
    return "\n".join([*lines, *rule["references"]])


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def build(
    workspace: Path, seconds: float, packs: Sequence[str] = (), verify: bool = False
) -> MCPServer[None]:
    """The server for a workspace; ``verify``: it offers to run the user's programs, too."""
    tools = Tools(workspace, seconds, packs)
    server: MCPServer[None] = MCPServer(
        "npumigrate",
        title="npumigrate",
        version=__version__,
        instructions=_INSTRUCTIONS.format(workspace=workspace),
        log_level="WARNING",
    )
    offered: dict[str, Callable[..., Any]] = {
        "Look up an API on NPUs": tools.look_up_api,
        "Find what keeps code from running on NPUs": tools.lint,
        "Explain a rule": tools.explain_rule,
        "Explain an error of NPUs": tools.explain_error,
        "Preview a migration as a diff": tools.preview_migration,
        **({"Run a project on emulated NPUs": tools.verify} if verify else {}),
    }
    for title, tool in offered.items():
        runs = tool == tools.verify  # a program of the user's
        hints = ToolAnnotations(
            read_only_hint=not runs, destructive_hint=runs, idempotent_hint=not runs, open_world_hint=runs
        )
        server.add_tool(tool, title=title, annotations=hints)
    return server


def serve(workspace: Path, seconds: float, packs: Sequence[str], verify: bool) -> None:
    """Serve one client over the standard streams, to its end."""
    os.chdir(workspace)  # where a person would run the commands
    build(workspace, seconds, packs, verify).run("stdio")
