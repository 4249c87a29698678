"""Kinds ``container``, ``manifest``, ``image``: containers that are given GPUs, and images made for CUDA.

What a cluster calls its NPUs depends on the product line: where that is named, Kubernetes jobs are converted
as by ``launch k8s --from``; all else of a manifest is reported with what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field

from migrator.api_support.companions import ReleaseSet, cann_order, recommended
from migrator.findings.edits import line_edits
from migrator.findings.finding import Edit
from migrator.language import N_, _
from migrator.launch.containers import Service, run_options, services
from migrator.launch.k8s.cluster import DEFAULT_HARDWARE, ManifestError, cluster, is_gpu, tables
from migrator.launch.k8s.convert import convert, job_kind
from migrator.matchers.context import Match, Said, TextContext, found_in_text
from migrator.matchers.packs import Options, Rule
from migrator.other_files.index import Setting

_EVERY = N_(
    "All GPUs were replaced with the NPU /dev/davinci0: add one line for each further NPU of the machine."
)
_LINES = N_("Add the NPU device files and the driver folders: ")
_RUN_ARGUMENT = re.compile(r"(?:\A|\.)runArgs\.\d+\Z")
_FOREIGN = re.compile(r"nvidia|gpu", re.IGNORECASE)
_RESOURCES = re.compile(r"\bresources\.(?:limits|requests)\.")
_NODES = re.compile(r"\b(?:nodeSelector\.|tolerations\.\d+\.key\Z|matchExpressions\.\d+\.key\Z)")
_ARG = "CANN_IMAGE"
_PYTHONS = ("3.11", "3.10")  # of which all releases of the images have one


def find(context: TextContext, rules: list[Rule]) -> Iterator[Match]:
    """The services of Docker Compose, and the arguments of a devcontainer.json, that ask for GPUs."""
    if context.index.type == "yaml":
        for service in services(context.index.data.decode("utf-8")):
            yield _of_service(context, rules[0], service)
    elif context.index.type == "json":
        yield from _of_run_arguments(context, rules[0])


def _of_service(context: TextContext, rule: Rule, service: Service) -> Match:
    lines, name = context.index.lines, service.name
    first = lines.span(service.line, service.line)[0]
    place = first + len(lines.data[first:]) - len(lines.data[first:].lstrip())
    about: Said = {"api": name, "message": _("the service {name} uses GPUs", name=name)}
    if service.text is None:
        files = ", ".join(option.partition("=")[2] for option in run_options([0]))
        about["advice"] = f"{service.reason}. {_(_LINES)}{files}."
    else:
        about["advice"] = _(_EVERY) if service.every else ""
        about["edits"] = line_edits(lines.data, service.text.encode("utf-8"))
    return found_in_text(context, rule, (place, lines.content_end(service.line)), **about)


def _of_run_arguments(context: TextContext, rule: Rule) -> Iterator[Match]:
    """``--gpus all`` and ``--runtime nvidia`` in the runArgs of a devcontainer.json: the first of them."""
    arguments = [item for item in context.index.content.settings if _RUN_ARGUMENT.search(item.name)]
    texts = [item.value or "" for item in arguments]
    for item, text, following in zip(arguments, texts, [*texts[1:], ""]):
        name, sign, value = text.partition("=")
        value = value if sign else following
        if (name == "--gpus" and value) or (name == "--runtime" and value == "nvidia"):
            advice = f"{_(_LINES)}{' '.join(run_options([0]))}."
            about: Said = {"api": text, "message": _("the container uses GPUs"), "advice": advice}
            yield found_in_text(context, rule, item.value_span or item.name_span, **about)
            return


def find_manifests(context: TextContext, rules: list[Rule]) -> Iterator[Match]:
    """The places of Kubernetes manifests that ask for GPUs; of jobs that can be converted the first one."""
    document: dict[str, str | None] = {}
    is_job = were_jobs = False
    for setting in context.index.content.settings:
        if setting.name in ("apiVersion", "kind"):
            if setting.name in document:
                document, is_job = {}, False
            document[setting.name] = setting.value
        elif setting.kind == "key" and document.get("apiVersion") and not is_job:
            what = _requested(context, setting)
            is_job = bool(what and job_kind(document))
            if what and not (is_job and were_jobs):  # all jobs of a file are converted together
                were_jobs = were_jobs or is_job
                about: Said = {"api": what, "safety": "unsafe"}
                about["edits"], about["advice"] = _converted(context, is_job)
                kind = document.get("kind") or "manifest"
                about["message"] = _("this {kind} requests {what}", kind=kind, what=what)
                yield found_in_text(context, rules[0], setting.name_span, **about)


def _requested(context: TextContext, setting: Setting) -> str:
    """What of GPUs is at a place; empty for nothing."""
    key = context.index.text_of(setting.name_span)
    if _RESOURCES.search(setting.name) and is_gpu(key):
        return key
    if setting.name.endswith(".runtimeClassName") and setting.value == "nvidia":
        return _("the runtime class nvidia")
    if _NODES.search(setting.name):
        texts = (key, setting.value) if ".nodeSelector." in f".{setting.name}" else (setting.value,)
        return next((text for text in texts if text and _FOREIGN.search(text)), "")
    return ""


def _converted(context: TextContext, is_job: bool) -> tuple[list[Edit], str]:
    """The edits that convert the jobs of a file, and the advice; what is no job gets only that."""
    if not is_job:
        hardware = context.hardware or DEFAULT_HARDWARE
        platforms = ((name, entry["hw"].get(hardware)) for name, entry in tables()["platforms"].items())
        names = _(" or ").join(f"{known['resource']} ({name})" for name, known in platforms if known)
        said = N_(
            "Name the cluster's NPU resource, such as {names} on {hardware}, and select nodes that have it."
        )
        return [], _(said, names=names, hardware=hardware)
    index, hardware, edits, problem = context.index, context.hardware, list[Edit](), ""
    by_hardware = bool(hardware) and index.type == "yaml"
    if by_hardware:
        try:
            new = convert(index.data.decode("utf-8"), index.name, cluster(hardware=hardware)).text
            edits = line_edits(index.data, new.encode("utf-8"))
        except ManifestError as error:
            problem = f"{error}. "
    command = f"npumigrate launch k8s --from {index.name} --hw {hardware or 'HW'}"
    if edits:
        said = N_("Converted for {about}. For another cluster: {command} --platform PLATFORM.")
        return edits, _(said, about=cluster(hardware=hardware).about, command=command)
    if by_hardware and not problem:
        return [], _("Left unchanged: decide whether the job needs it.")
    said = N_(
        "{problem}Convert it: {command} --platform PLATFORM (docs/launch.md) translates resource "
        "names, labels and node selectors."
    )
    return [], _(said, command=command, problem=problem)


class ImageOptions(Options):
    """``images``: beginnings of names, ``*`` for anything, each with what it holds: ``torch`` or ``cuda``.

    ``image`` is what is taken instead: ``{cann}`` is CANN's version in lower case, ``{product}`` the chip as
    the tags name it, ``{python}`` a Python of the release. ``products``: the tags' names of the product lines
    of ``--hardware``, that of none under an empty name. ``oldest``: the first CANN that has such images.
    Without an ``image`` the rule's advice says which one to take.
    """

    images: dict[str, str] = field(default_factory=dict)
    image: str = ""
    products: dict[str, str] = field(default_factory=dict)
    oldest: str = ""


def find_images(context: TextContext, rules: list[Rule[ImageOptions]]) -> Iterator[Match]:
    """Images that are made for CUDA: a Dockerfile's are replaced, others reported."""
    for setting in context.index.content.settings:
        names_one = setting.kind == "key" and setting.name.rpartition(".")[2] in ("FROM", "image")
        if not setting.value or not (names_one or context.index.type == "dockerfile"):
            continue  # in a Dockerfile an ARG may name one
        # What has another image to offer comes first.
        for rule in sorted(rules, key=lambda each: not each.options.image):
            holds = _holds(setting.value, rule.options)
            if holds is not None and setting.value_span is not None:
                yield _of_image(context, rule, setting, setting.value_span, holds)
                break


def _holds(image: str, options: ImageOptions) -> str | None:
    """What is in an image, None where it is none of those in question."""
    for name, holds in options.images.items():
        begins = re.escape(name).replace(r"\*", ".*")
        if re.match(rf"(?:docker\.io/)?{begins}(?![\w-])", image):
            return holds if name != "pytorch/pytorch" or "cu" in image else None
    return None


def _of_image(
    context: TextContext, rule: Rule[ImageOptions], setting: Setting, span: tuple[int, int], holds: str
) -> Match:
    options, release, version = rule.options, recommended(context.version.text), context.version.text
    image, edits = "", list[Edit]()
    if release is not None:
        product = options.products.get(context.hardware)
        python = next((one for one in _PYTHONS if one in release.python), "")
        order, oldest = cann_order(release.cann), cann_order(options.oldest)
        if options.image and product and python and order and oldest and order >= oldest:
            image = options.image.format(cann=release.cann.lower(), product=product, python=python)
            if setting.name == "FROM":
                edits = _of_base(context, span, image, release if holds == "torch" else None)
            elif setting.kind == "variable":
                edits = [Edit(*span, image)]
    said = N_("Use an image with the CANN that matches torch_npu for torch {version}.")
    if image:
        said = N_("Use an image with CANN, such as {image}, with torch and torch_npu installed.")
    advice = "" if edits else rule.advice or _(said, image=image, version=version)
    return found_in_text(context, rule, span, api=str(setting.value), edits=edits, advice=advice)


def _of_base(
    context: TextContext, span: tuple[int, int], image: str, installed: ReleaseSet | None
) -> list[Edit]:
    """What makes a base image an argument of the build, and installs the torch of a release."""
    lines, settings = context.index.lines, context.index.content.settings
    first = next(one for one in settings if one.name == "FROM" and one.kind == "key")
    newline = "\r\n" if b"\r\n" in lines.data else "\n"
    edits = [Edit(*span, f"${{{_ARG}}}")]
    if not any(one.name == _ARG and one.name_span < first.name_span for one in settings):
        start = lines.span(*[lines.line_of(first.name_span[0])] * 2)[0]
        edits.insert(0, Edit(start, start, f"ARG {_ARG}={image}{newline}"))
    if installed is not None:
        end = lines.content_end(lines.line_of(span[1]))
        vision = f" torchvision=={installed.torchvision}" if installed.torchvision else ""
        packages = f"torch=={installed.torch}{vision} torch_npu=={installed.torch_npu}"
        edits.append(Edit(end, end, f"{newline}RUN pip install --no-cache-dir {packages}"))
    return edits
