"""Makes the pictures of the README from real runs.

    python tools/pictures.py migrate     docs/images/migrate.svg: a migration in a terminal
    python tools/pictures.py verify      docs/images/verify.svg: its result on an emulated NPU (the emulator)
    python tools/pictures.py report      docs/images/report.png: its report (needs playwright and Chromium)
    python tools/pictures.py speed       docs/images/speed.svg: what commands take on six projects (minutes)

Those in Chinese are NAME.zh.svg and NAME.zh.png: migrate.zh makes one of them, speed both. The tests make
those of a terminal again and compare their words.
"""

from __future__ import annotations

import html
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the benchmarks
IMAGES = ROOT / "docs" / "images"
MIGRATE = "npumigrate samples/resnet18_cifar -o out -v 2.13"
VERIFY = (
    "npumigrate verify out/resnet18_cifar_msft --compare-cpu -- \\\n"
    "    python train.py --synthetic --steps 2 --batch-size 4 --epochs 1 --workers 0"
)
_WIDTH = 92
_TEXT = re.compile(
    r'<text(?P<before>[^>]*?) x="(?P<x>[\d.]+)"(?P<between>[^>]*?) textLength="(?P<length>[\d.]+)"'
    r"(?P<after>[^>]*)>(?P<text>[^<]*)</text>"
)
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.S)  # rich would load them from elsewhere


def recorded(picture: str, folder: Path) -> str:
    """The SVG of a terminal in which the picture's command was run, in ``folder``; verify.zh: in Chinese."""
    from rich.console import Console
    from rich.text import Text

    screen = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
    name, _, language = picture.partition(".")
    command = {"migrate": MIGRATE, "verify": VERIFY}[name]
    if name == "verify":
        run(MIGRATE, folder)
    output = run(command, folder, language)
    if name == "verify":
        output = _verdict(output).replace(str(folder.resolve()), "~")
    screen.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
    screen.print(Text.from_ansi(output))
    svg = screen.export_svg(title="npumigrate", unique_id=f"npumigrate-{name}")
    return _TEXT.sub(_in_columns, _FONTS.sub("", svg))


def _in_columns(found: re.Match[str]) -> str:
    """A text of such an SVG in parts of narrow and of wide characters, each in its columns.

    rich gives a text as many columns as it has characters; Chinese ones take two.
    """
    from rich.cells import cell_len

    text = html.unescape(found["text"])
    if text.isascii():
        return found[0]
    parts, x = [], float(found["x"])
    column = float(found["length"]) / len(text)
    for part in re.findall(r"[\u2e80-\uffef]+|[^\u2e80-\uffef]+", text):
        length = column * cell_len(part)
        head = f'<text{found["before"]} x="{x:g}"{found["between"]} textLength="{length:g}"{found["after"]}>'
        parts.append(f"{head}{html.escape(part)}</text>")
        x += length
    return "".join(parts)


def _verdict(output: str) -> str:
    """What ``verify`` says at its end, without the program's own words and the processes."""
    lines, shown = ["…\n"], False
    for line in output.splitlines(keepends=True):
        plain = re.sub(r"\x1b\[[\d;]*m", "", line)
        if plain.startswith(("Verdict", "Compared with", "结论", "与 CPU")):
            shown = True
        if plain.startswith(("Processes", "进程")):
            shown = False
        lines += [line] if shown else []
    return "".join(lines)


def words(svg: str) -> list[str]:
    """What can be read in such a picture; numbers, as of seconds, stand as 0."""
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    plain = " ".join(html.unescape(text).replace("\xa0", " ") for text in texts)
    return re.sub(r"\d+(?:\.\d+)?", "0", plain).split()


def run(command: str, folder: Path, language: str = "") -> str:
    """What a command prints in a terminal with colours, in English by default; the samples are beside it."""
    if not (folder / "samples").exists():
        shutil.copytree(ROOT / "samples", folder / "samples")
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    kept = {
        name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "LC_ALL", "LANGUAGE")
    }
    terminal = {"FORCE_COLOR": "1", "COLUMNS": str(_WIDTH), "LANG": "C.UTF-8", "PATH": programs}
    terminal["NPUMIGRATE_LANG"] = language or "en"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**kept, **terminal},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=900,
    )
    output = done.stdout.decode()
    if done.returncode:
        raise RuntimeError(f"{command}: exit code {done.returncode}\n{output}")
    return output


def chromium() -> str | None:
    """The browser: that of the variable CHROMIUM, or an installed one."""
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    return next(filter(None, (shutil.which(name) for name in names if name)), None)


def photographed(folder: Path, file: Path, language: str = "", width: int = 1200, height: int = 860) -> None:
    """A picture of the upper part of the report of a migration, by a real browser."""
    from playwright.sync_api import sync_playwright

    run("npumigrate samples/resnet50_imagenet -o out -v 2.6 --format html", folder, language)
    page = folder / "out" / "resnet50_imagenet_msft" / "migration_report" / "index.html"
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": width, "height": height})
        tab.goto(page.as_uri())
        tab.screenshot(path=file)
        browser.close()


def measured(runs: int = 1) -> tuple[int, dict[str, float]]:
    """Lines of the benchmarks' projects that mention torch; processor seconds of a parse, and of commands."""
    from benchmarks.projects import PROJECTS, fetch
    from benchmarks.whole_runs import HERE, bare_parse, commands, least, together

    with together([fetch(project) for project in PROJECTS]) as source:
        parse, lines = min(bare_parse(source) for _ in range(runs))
        asked = commands(source)
        taken = {
            name: least(runs, {"here": HERE}, asked[name])["here"].seconds for name in ("lint", "migrate")
        }
    return lines, {"libcst.parse_module": parse} | {
        f"npumigrate {name}": each for name, each in taken.items()
    }


_BARS = {
    "": "{lines:,} lines, six projects: processor seconds, one process",
    ".zh": "{lines:,} 行，六个项目：单进程的处理器时间（秒）",
}


def bars(lines: int, seconds: dict[str, float], title: str = _BARS[""]) -> str:
    """An SVG with a bar for each number of seconds."""
    most = max(seconds.values())
    rows = [f'<text x="16" y="28" class="h">{title.format(lines=lines)}</text>']
    for place, (name, each) in enumerate(seconds.items()):
        y, width = 46 + 30 * place, 400 * each / most
        style = "own" if name.startswith("npumigrate") else "other"
        rows.append(f'<text x="16" y="{y + 14}">{html.escape(name)}</text>')
        rows.append(f'<rect class="{style}" x="180" y="{y}" width="{width:.0f}" height="18" rx="3"/>')
        rows.append(f'<text x="{188 + width:.0f}" y="{y + 14}">{each:.0f} s</text>')
    height = 56 + 30 * len(seconds)
    style = (
        "text{font:14px sans-serif;fill:#1f2328}.h{font-weight:600}.own{fill:#1f6fc4}.other{fill:#9aa4b2}"
        "@media(prefers-color-scheme:dark){text{fill:#e6edf3}}"
    )
    size = f'viewBox="0 0 660 {height}" width="660" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><style>{style}</style>'
    return "\n".join([head, *rows, "</svg>", ""])


def main(pictures: list[str]) -> None:
    """Make the pictures of these names, or all that take no minutes."""
    made = ("migrate", "verify", "report")
    for picture in pictures or [*made, *(f"{name}.zh" for name in made)]:
        name, _, language = picture.partition(".")
        with tempfile.TemporaryDirectory() as folder:
            if name == "report":
                photographed(Path(folder), IMAGES / f"{picture}.png", language)
            elif picture == "speed":
                figures = measured()
                for end, title in _BARS.items():
                    (IMAGES / f"speed{end}.svg").write_text(bars(*figures, title), encoding="utf-8")
            else:
                (IMAGES / f"{picture}.svg").write_text(recorded(picture, Path(folder)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
