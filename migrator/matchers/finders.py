"""Where the code of each kind of rule is, and of each handler of structural rules.

A file needs few of the handlers, and only those are imported.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, Callable, Literal, NamedTuple

from migrator.matchers.options import Options


class Finder(NamedTuple):
    """A function in a module of this package, and the dataclass beside it that its rules' options are.

    Rules start from the last parts of their ``match``, or from the words that ``words_from`` names. One
    without ``takes_match`` does not look at that. What ``goes_by`` names finds nothing but qualified names
    and members, what goes by packages nothing without an import of one. ``replaces`` says what it does with
    ``replace``. ``other``: it looks at files that are no Python, and only at these. ``asks_project``: the
    options say by ``words_in`` what the project adds to the words; those of others need not be read for that.
    ``settled``: what fixes write has none of it, so it need not be looked for there.
    """

    module: str
    function: str = "find"
    options: str = ""
    words_from: str = ""
    takes_match: bool = True
    goes_by: Literal["", "names", "packages"] = ""
    replaces: Literal["no", "may", "must"] = "no"
    other: bool = False
    asks_project: bool = False
    settled: bool = False

    @property
    def code(self) -> Callable[..., Any]:
        """The function."""
        found: Callable[..., Any] = _imported(self.module, self.function)
        return found

    @property
    def declared(self) -> type[Options]:
        """The dataclass of the options."""
        found: type[Options] = _imported(self.module, self.options) if self.options else Options
        return found


@cache
def _imported(module: str, name: str) -> Any:
    return getattr(import_module(f"migrator.matchers.{module}"), name)


KINDS = {
    "name": Finder("kinds.name", options="NameOptions", goes_by="names", replaces="may"),
    "import": Finder("kinds.library", options="ImportOptions", goes_by="packages"),
    "method": Finder("kinds.method", "find_methods", options="MethodOptions", replaces="must"),
    "attribute": Finder("kinds.method", "find_attributes", replaces="may"),
    "argument": Finder("kinds.argument", options="ArgumentOptions", goes_by="names"),
    "string": Finder("kinds.string", options="StringOptions", replaces="may"),
    "text": Finder("kinds.text", options="TextOptions", replaces="may"),
    "env": Finder("kinds.env", options="EnvOptions", words_from="env_vars", takes_match=False),
    "call": Finder("kinds.call", options="CallOptions", goes_by="names", replaces="may"),
    "pattern": Finder("kinds.pattern", options="PatternOptions", replaces="may"),
    # Of files that are no Python.
    "variable": Finder(
        "kinds.variable", options="VariableOptions", words_from="env_vars", takes_match=False, other=True
    ),
    "value": Finder("kinds.value", options="ValueOptions", other=True),
    "program-option": Finder(
        "kinds.program_option", words_from="program_options", takes_match=False, other=True
    ),
    "key": Finder("kinds.key", options="KeyOptions", other=True),
    "manifest": Finder("kinds.manifest", takes_match=False, other=True),
    "container": Finder("kinds.container", takes_match=False, other=True),
    "command": Finder("kinds.command", options="CommandOptions", other=True),
    "body": Finder("kinds.body", other=True),
    "mpi-line": Finder("kinds.mpi_line", options="LineOptions", takes_match=False, other=True),
    "requirement": Finder("kinds.requirement", options="RequirementOptions", takes_match=False, other=True),
    "image": Finder("kinds.image", options="ImageOptions", takes_match=False, other=True),
}

# Of the rules of kind ``structural``. What has the handler ``none`` is found by another part of npumigrate.
HANDLERS = {
    "none": Finder("", "", takes_match=False),
    "api-verdicts": Finder(
        "structural.api_verdicts", options="VerdictOptions", words_from="torch_apis", takes_match=False
    ),
    "apex-amp": Finder("structural.apex_amp", goes_by="names"),
    "autocast-setters": Finder("structural.autocast_setters", options="SetterOptions"),
    "capability": Finder("structural.capability", "find_calls"),
    "causal-mask": Finder("structural.causal_mask"),
    "checkpoint-load": Finder("structural.checkpoint_load", options="LoadOptions", goes_by="names"),
    "code-text": Finder("structural.code_text", options="CodeOptions", takes_match=False),
    "command-mention": Finder("structural.command_output", "find_mentions"),
    "command-output": Finder("structural.command_output", "find_runs", options="OutputOptions"),
    "cuda-branch": Finder("structural.cuda_branch", options="BranchOptions", takes_match=False),
    "config-text": Finder("structural.config_text", options="ConfigOptions"),
    "cuda-definition": Finder("structural.cuda_definition"),
    "cuda-extension": Finder("structural.cuda_operators", "find_builds"),
    "cuda-library": Finder("structural.cuda_library", options="LibraryOptions"),
    "cuda-operator-use": Finder(
        "structural.cuda_operators", "find_uses", words_from="cuda_operators", takes_match=False
    ),
    "cuda-way": Finder("structural.cuda_way", words_from="cuda_operators", takes_match=False),
    "data-loader": Finder("structural.data_loader", "find_slow"),
    "data-parallel": Finder("structural.data_parallel"),
    "detectron-config": Finder("structural.detectron_config"),
    "device-before-collective": Finder("structural.device_before_collective", options="DeviceOptions"),
    "device-slice": Finder(
        "structural.device_slice",
        options="SliceOptions",
        takes_match=False,
        asks_project=True,
        settled=True,
    ),
    "device-properties": Finder("structural.capability", "find_properties", "PropertyOptions"),
    "driver-library": Finder("structural.driver_library", options="DriverOptions"),
    "dynamic-batches": Finder("structural.dynamic_shapes", "find_batches"),
    "dynamic-calls": Finder("structural.dynamic_shapes", "find_calls"),
    "dynamic-masks": Finder("structural.dynamic_shapes", "find_masks", takes_match=False),
    "dynamic-sizes": Finder("structural.dynamic_shapes", "find_sizes"),
    "equivalent-function": Finder(
        "structural.equivalent_functions", options="FunctionOptions", goes_by="names"
    ),
    "float64-collective": Finder(
        "structural.float64_collective", options="CollectiveOptions", goes_by="names"
    ),
    "float64-handed-over": Finder(
        "structural.float64_collective",
        "find_handed_over",
        options="CollectiveOptions",
        words_from="reducers",
        takes_match=False,
    ),
    "int-device": Finder("structural.int_device", options="IntOptions"),
    "library-default": Finder(
        "structural.library_defaults",
        options="DefaultOptions",
        goes_by="packages",
        takes_match=False,
        asks_project=True,
    ),
    "library-equivalent": Finder(
        "structural.library_equivalents", options="EquivalentOptions", goes_by="names"
    ),
    "moved-value": Finder("structural.moved_value", options="MovedOptions", takes_match=False),
    "library-function": Finder(
        "structural.library_functions", words_from="library_functions", takes_match=False
    ),
    "memory-format": Finder("structural.memory_format", options="FormatOptions", goes_by="names"),
    "replaced-names": Finder("structural.replaced_names"),
    "map-location": Finder("structural.map_location"),
    "npu-code": Finder(
        "structural.npu_code", options="CodeOptions", words_from="npu_names", takes_match=False, settled=True
    ),
    "npu-generator": Finder("structural.npu_generator"),
    "local-rank-option": Finder("structural.local_rank_option", takes_match=False),
    "outside-device": Finder("structural.outside_device"),
    "local-rank-spelling": Finder("structural.local_rank_spelling", takes_match=False),
    "byte-mask": Finder("structural.old_forms", "find_byte_masks", options="MaskOptions", takes_match=False),
    "iterator-next": Finder("structural.old_forms", "find_next", goes_by="names"),
    "legacy-function": Finder("structural.old_forms", "find_legacy_functions", goes_by="names"),
    "real-spectrum": Finder("structural.old_forms", "find_real_spectra"),
    "python-kernel": Finder("structural.cuda_operators", "find_kernels"),
    "release-names": Finder(
        "structural.release_names", options="ReleaseOptions", words_from="torch_names", takes_match=False
    ),
    "late-argument": Finder("structural.release_names", "find_late", "LateOptions"),
    "last-batch": Finder("structural.data_loader", "find_last_batch"),
    "random-sizes": Finder("structural.dynamic_shapes", "find_random_sizes"),
    "started-script": Finder("structural.started_script", options="StartedOptions"),
    "tensor-type-default": Finder("structural.tensor_type_default", options="TypeOptions"),
    "tensor-type-constructors": Finder(
        "structural.tensor_type_default", "find_constructors", words_from="legacy_constructors"
    ),
    "tensor-type-modules": Finder("structural.tensor_type_default", "find_modules", options="TypeOptions"),
    "setup-packages": Finder(
        "kinds.requirement", "find_packages_in_setup", options="RequirementOptions", takes_match=False
    ),
    "setup-requirements": Finder("kinds.requirement", "find_in_setup", takes_match=False),
    "training-settings": Finder("structural.training_step", "find_settings", words_from="training_loops"),
    "weights-only": Finder("structural.weights_only", options="WeightsOptions", goes_by="names"),
    "training-step": Finder("structural.training_step", options="StepOptions", words_from="training_loops"),
}
