"""Kind ``image``: base images of Dockerfiles and images of services that are made for CUDA."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Optional

from migrator.api_support.companions import cann_order, recommended
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import Match, TextContext, found_in_text
from migrator.matchers.packs import Options, Rule
from migrator.other_files.index import Setting, Span


@dataclass(frozen=True)
class ImageOptions(Options):
    """``images``: beginnings of names, each with what it holds: ``torch`` or ``cuda``.

    ``image`` is what is taken instead: ``{cann}`` is CANN's version in lower case, ``{product}`` the chip as
    the tags name it, ``{python}`` a Python of the release. ``products``: the tags' names of the product lines
    of ``--hardware``, that of none under an empty name. ``oldest``: the first CANN that has such images.
    Without an ``image`` the rule's advice says which one to take.
    """

    images: dict[str, str] = field(default_factory=dict)
    image: str = ""
    products: dict[str, str] = field(default_factory=dict)
    oldest: str = ""


_ARG = "CANN_IMAGE"
_PYTHONS = ("3.11", "3.10")  # of which all releases of the images have one


def find(context: TextContext, rules: list[Rule[ImageOptions]]) -> Iterator[Match]:
    """Images that are made for CUDA: a Dockerfile's are replaced, others reported."""
    for setting in context.index.content.settings:
        names_one = setting.kind == "key" and setting.name.rpartition(".")[2] in ("FROM", "image")
        if not setting.value or not (names_one or context.index.type == "dockerfile"):
            continue  # in a Dockerfile an ARG may name one
        # What has another image to offer comes first.
        for rule in sorted(rules, key=lambda each: not each.options.image):
            holds = _holds(setting.value, rule.options)
            if holds is not None and setting.value_span is not None:
                yield _found(context, rule, setting, setting.value_span, holds)
                break


def _holds(image: str, options: ImageOptions) -> Optional[str]:
    """What is in an image, None where it is none of those in question."""
    for name, holds in options.images.items():
        if re.match(rf"(?:docker\.io/)?{re.escape(name)}(?![\w-])", image):
            return holds if name != "pytorch/pytorch" or "cu" in image else None
    return None


def _found(context: TextContext, rule: Rule[ImageOptions], setting: Setting, span: Span, holds: str) -> Match:
    image, version = _image(context, rule.options), context.version.text
    if rule.advice:
        advice = rule.advice
    elif not image:
        advice = _("Use an image with the CANN that matches torch_npu for torch {version}.", version=version)
    else:
        advice = _(
            "Use an image with CANN, such as {image}, with torch and torch_npu installed.", image=image
        )
    edits: list[Edit] = []
    if image and setting.name == "FROM":
        edits = _edits(context, span, image, holds)
    elif image and setting.kind == "variable":
        edits = [Edit(*span, image)]
    return found_in_text(
        context, rule, span, api=str(setting.value), edits=edits, advice="" if edits else advice
    )


def _image(context: TextContext, options: ImageOptions) -> str:
    """The image for the named torch; empty where none is known."""
    release = recommended(context.version.text)
    if release is None:
        return ""
    product = options.products.get(context.hardware)
    python = next((one for one in _PYTHONS if one in release.python), "")
    order, oldest = cann_order(release.cann), cann_order(options.oldest)
    if not (product and python and order and oldest and order >= oldest):
        return ""
    return options.image.format(cann=release.cann.lower(), product=product, python=python)


def _edits(context: TextContext, span: Span, image: str, holds: str) -> list[Edit]:
    """What makes a base image an argument of the build, and installs torch where the image had it."""
    index = context.index
    every = [one for one in index.content.settings if one.name == "FROM" and one.kind == "key"]
    newline = "\r\n" if b"\r\n" in index.data else "\n"
    edits = [Edit(*span, f"${{{_ARG}}}")]
    if not any(one.name == _ARG and one.name_span < every[0].name_span for one in index.content.settings):
        start = index.lines.span(*[index.lines.line_of(every[0].name_span[0])] * 2)[0]
        edits.insert(0, Edit(start, start, f"ARG {_ARG}={image}{newline}"))
    if holds == "torch":
        end = index.lines.content_end(index.lines.line_of(span[1]))
        release = recommended(context.version.text)
        if release is not None:
            vision = f" torchvision=={release.torchvision}" if release.torchvision else ""
            packages = f"torch=={release.torch}{vision} torch_npu=={release.torch_npu}"
            edits.append(Edit(end, end, f"{newline}RUN pip install --no-cache-dir {packages}"))
    return edits
