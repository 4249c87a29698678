"""``npumigrate launch k8s``: manifests for clusters with Ascend NPUs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import typer

from migrator.cli.ending import note, stopping_at
from migrator.cli.launch_files import give, text_of
from migrator.cli.next_commands import say_next, shell_word

if TYPE_CHECKING:
    from migrator.launch.k8s.description import Description
    from migrator.launch.target import Launch


def k8s(
    context: typer.Context,
    command: Optional[list[str]] = None,
    manifest: Optional[Path] = None,
    job: Optional[Path] = None,
    kind: Optional[str] = None,
    name: Optional[str] = None,
    namespace: Optional[str] = None,
    workers: Optional[str] = None,
    npus: Optional[str] = None,
    image: Optional[str] = None,
    cpu: Optional[str] = None,
    memory: Optional[str] = None,
    volumes: Optional[list[str]] = None,
    variables: Optional[list[str]] = None,
    folder: Optional[str] = None,
    queue: Optional[str] = None,
    scheduler: Optional[str] = None,
    hardware: Optional[str] = None,
    platform: Optional[str] = None,
    accelerator_type: Optional[str] = None,
    resource: Optional[str] = None,
    output: Optional[Path] = None,
) -> None:
    """Make a manifest for a Kubernetes cluster with Ascend NPUs, or convert one for GPUs.

    The manifest is a Kubeflow PyTorchJob or a Volcano Job. What was assumed,
    changed and left is said on the standard error. Exit status: 0 done; 2 usage
    error, or something that is not understood.
    """
    from migrator.files.errors import harmless
    from migrator.launch.k8s.cluster import ManifestError
    from migrator.launch.k8s.description import FIELDS

    given = {name: context.params[name] for name in FIELDS if context.params[name]}
    with stopping_at(ManifestError):
        found = _convert(manifest, given, job) if manifest else _generate(given, job)
    for line in found.notes:
        note(harmless(line))
    give(found.text, output)
    if output:
        say_next(f"kubectl apply -f {shell_word(str(output))}")


def _convert(manifest: Path, given: dict[str, Any], job: Path | None) -> Launch:
    from migrator.launch.k8s.cluster import ManifestError
    from migrator.launch.k8s.convert import convert
    from migrator.launch.k8s.description import FIELDS

    of_new_jobs = (FIELDS[name].option for name in given if not FIELDS[name].of_manifest)
    other = "--job" if job else next(of_new_jobs, "")
    if other:
        raise ManifestError("--from and {other} exclude each other: the manifest decides", other=other)
    wanted = _described(given, None)
    return convert(text_of(manifest, "utf-8"), str(manifest), wanted.cluster(), wanted.image)


def _generate(given: dict[str, Any], job: Path | None) -> Launch:
    from migrator.launch.k8s.cluster import ManifestError
    from migrator.launch.k8s.description import read_job
    from migrator.launch.k8s.generate import generate

    if not given and not job:
        raise ManifestError("no job given: use --from FILE, --job FILE, or --name, --image and -- COMMAND")
    return generate(_described(given, read_job(text_of(job, "utf-8"), str(job)) if job else None))


def _described(given: dict[str, Any], start: Description | None) -> Description:
    """The description with what the options say; an error names the option."""
    from migrator.launch.k8s.cluster import ManifestError
    from migrator.launch.k8s.description import FIELDS, Description, described

    wanted = start or Description()
    for name, value in given.items():
        try:
            wanted = described({name: value}, wanted)
        except ManifestError as error:
            raise ManifestError(f"{FIELDS[name].option}: {error}") from None
    return wanted
