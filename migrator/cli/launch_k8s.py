"""``npumigrate launch k8s``: manifests for clusters with Ascend NPUs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import typer

from migrator.cli.ending import stop
from migrator.cli.options import ToFile

if TYPE_CHECKING:
    from migrator.launch.k8s.convert import Converted
    from migrator.launch.k8s.description import Description

# The options that say what a new job is, and the fields of its description.
_OPTIONS = {
    "--kind": "kind",
    "--name": "name",
    "--namespace": "namespace",
    "--workers": "workers",
    "--npus": "npus",
    "--cpu": "cpu",
    "--memory": "memory",
    "--queue": "queue",
    "--scheduler": "scheduler",
    "--folder": "folder",
    "--env": "variables",
    "--volume": "volumes",
    "-- COMMAND": "command",
}
# Those that a manifest that is there can have as well.
_ALWAYS = {
    "--image": "image",
    "--hw": "hardware",
    "--platform": "platform",
    "--accelerator-type": "accelerator_type",
    "--resource": "resource",
}


def k8s(
    command: Optional[list[str]] = typer.Argument(
        None, metavar="-- COMMAND …", help="What each pod starts: python SCRIPT …"
    ),
    manifest: Optional[Path] = typer.Option(
        None, "--from", metavar="FILE", help="Convert this manifest for GPUs: PyTorchJobs and Volcano Jobs."
    ),
    job: Optional[Path] = typer.Option(
        None, "--job", metavar="FILE", help="A description of the job in key=value lines; options go first."
    ),
    kind: Optional[str] = typer.Option(None, help="PyTorchJob (the default) or VolcanoJob."),
    name: Optional[str] = typer.Option(None, help="The job's name."),
    namespace: Optional[str] = typer.Option(None, help="The job's namespace."),
    workers: Optional[str] = typer.Option(None, metavar="N", help="All pods of the job (1)."),
    npus: Optional[str] = typer.Option(None, metavar="N", help="The NPUs, and ranks, of each pod (8)."),
    image: Optional[str] = typer.Option(None, help="An image with CANN and torch_npu."),
    cpu: Optional[str] = typer.Option(None, metavar="QUANTITY", help="The CPU cores of each pod."),
    memory: Optional[str] = typer.Option(None, metavar="QUANTITY", help="The memory of each pod."),
    volume: Optional[list[str]] = typer.Option(
        None,
        metavar="SOURCE:PATH[:ro]",
        help="/on/the/node:/path, pvc:CLAIM:/path or nfs:SERVER:/exported:/path; may be repeated.",
    ),
    env: Optional[list[str]] = typer.Option(
        None, metavar="NAME=VALUE", help="A variable of the containers; may be repeated."
    ),
    folder: Optional[str] = typer.Option(None, metavar="PATH", help="Where the command starts in the image."),
    queue: Optional[str] = typer.Option(None, help="Volcano's queue."),
    scheduler: Optional[str] = typer.Option(None, help="The scheduler of the pods, such as volcano."),
    hw: Optional[str] = typer.Option(None, metavar="HW", help="The NPUs: A1, A2 (the default), A3 or 950DT."),
    platform: Optional[str] = typer.Option(
        None, help="mindcluster (the default), or cce: Huawei Cloud CCE and ModelArts Lite."
    ),
    accelerator_type: Optional[str] = typer.Option(
        None, metavar="TYPE", help="Only nodes of this type, such as module-910b-8."
    ),
    resource: Optional[str] = typer.Option(
        None,
        metavar="NAME",
        help="What the cluster calls an NPU, where it is not the platform's name.",
    ),
    output: ToFile = None,
) -> None:
    """Make a manifest for a Kubernetes cluster with Ascend NPUs, or convert one for GPUs.

    The manifest is a Kubeflow PyTorchJob or a Volcano Job. What was assumed,
    changed and left is said on the standard error. Exit status: 0 done; 2 wrong
    use, or something that is not understood.
    """
    from migrator.files.errors import SourceError
    from migrator.files.replacing import replace_file
    from migrator.launch.k8s.cluster import ManifestError

    values = (
        kind,
        name,
        namespace,
        workers,
        npus,
        cpu,
        memory,
        queue,
        scheduler,
        folder,
        env,
        volume,
        command,
    )
    always = (image, hw, platform, accelerator_type, resource)
    given = {option: value for option, value in zip([*_OPTIONS, *_ALWAYS], [*values, *always]) if value}
    try:
        if manifest:
            found = _convert(manifest, given, job)
        else:
            found = _generate(given, job)
        for note in found.notes:
            typer.echo(note, err=True)
        if output:
            replace_file(output, found.text.encode("utf-8"))
        else:
            typer.echo(found.text.encode("utf-8"), nl=False)
    except (ManifestError, SourceError) as error:
        stop(str(error))


def _convert(manifest: Path, given: dict[str, Any], job: Path | None) -> Converted:
    from migrator.launch.k8s.cluster import ManifestError
    from migrator.launch.k8s.convert import convert

    other = "--job" if job else next((option for option in given if option in _OPTIONS), "")
    if other:
        raise ManifestError(f"--from and {other} exclude each other: the manifest says it")
    wish = _described(given, None)
    return convert(_text(manifest), str(manifest), wish.cluster(), wish.image)


def _generate(given: dict[str, Any], job: Path | None) -> Converted:
    from migrator.launch.k8s.cluster import ManifestError
    from migrator.launch.k8s.description import read_job
    from migrator.launch.k8s.generate import generate

    if not given and not job:
        raise ManifestError("which job? --from FILE, --job FILE, or --name, --image and -- COMMAND say it")
    return generate(_described(given, read_job(_text(job), str(job)) if job else None))


def _described(given: dict[str, Any], start: Description | None) -> Description:
    """The description with what the options say; an error names the option."""
    from migrator.launch.k8s.cluster import ManifestError
    from migrator.launch.k8s.description import Description, described

    wish = start or Description()
    for option, value in given.items():
        try:
            wish = described({{**_OPTIONS, **_ALWAYS}[option]: value}, wish)
        except ManifestError as error:
            raise ManifestError(f"{option}: {error}") from None
    return wish


def _text(file: Path) -> str:
    """The text of a file with its newlines as they are."""
    try:
        return file.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        stop(f"{file} cannot be read: {reason}")
