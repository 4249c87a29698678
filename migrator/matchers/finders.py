"""Where the code of each kind of rule is, and of each handler of structural rules.

A file needs few of the handlers, and only those are imported.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Callable, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    from migrator.matchers.packs import Options


class Finder(NamedTuple):
    """A function in a module of this package, and what its rules are about.

    Rules start from the last parts of their ``match``, or from the words that ``words_from`` names. One
    without ``takes_match`` does not look at that. What ``goes_by`` names finds nothing but qualified
    names and members, what goes by packages nothing without an import of one, what goes by modules
    nothing but members of these under their usual names: ``np.float``. ``replaces`` says what it does
    with ``replace``. ``other``: it looks at files that are no Python, and only at these.
    ``asks_project``: the options say by ``words_in`` what the project adds to the words; those of others
    need not be read for that. ``settled``: what fixes write has none of it, so it need not be looked for
    there. ``needs_npu``: its fixes need ``import torch_npu``, if neither the rule nor the place says
    otherwise. ``only_imports``: that is all they write, so they are moot where other fixes bring it.
    """

    module: str
    function: str = "find"
    words_from: str = ""
    takes_match: bool = True
    goes_by: Literal["", "names", "packages", "modules"] = ""
    replaces: Literal["no", "may", "must"] = "no"
    other: bool = False
    asks_project: bool = False
    settled: bool = False
    needs_npu: bool = True
    only_imports: bool = False

    @property
    def code(self) -> Callable[..., Any]:
        """The function."""
        return _imported(self.module, self.function)

    @property
    def declared(self) -> type[Options]:
        """The dataclass of the options: that of the rules which the function takes."""
        return _options_of(self.code if self.module else None)


@cache
def _imported(module: str, name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(import_module(f"migrator.matchers.{module}"), name)
    return found


@cache
def _options_of(function: Callable[..., Any] | None) -> type[Options]:
    """``SliceOptions`` of ``find(context, rule: Rule[SliceOptions])``, or of a list of such rules."""
    from migrator.matchers.packs import Options  # which asks this module for finders

    if function is None:
        return Options
    _, rules, *_ = function.__annotations__.values()
    taken = eval(rules, function.__globals__)  # nosec B307: an annotation of our own finders
    while parameters := get_args(taken):
        taken = parameters[-1]
    return taken if issubclass(taken, Options) else Options


KINDS = {
    "name": Finder("kinds.name", goes_by="names", replaces="may"),
    "import": Finder("kinds.library", goes_by="packages"),
    "method": Finder("kinds.method", "find_methods", replaces="must"),
    "attribute": Finder("kinds.method", "find_attributes", replaces="may"),
    "argument": Finder("kinds.argument", goes_by="names"),
    "string": Finder("kinds.string", replaces="may"),
    "text": Finder("kinds.text", replaces="may", needs_npu=False),
    "env": Finder("kinds.env", words_from="env_vars", takes_match=False, needs_npu=False),
    "call": Finder("kinds.call", goes_by="names", replaces="may"),
    "pattern": Finder("kinds.pattern", replaces="may"),
    # Of files that are no Python.
    "variable": Finder("kinds.variable", words_from="env_vars", takes_match=False, other=True),
    "value": Finder("kinds.value", other=True),
    "program-option": Finder(
        "kinds.value", "find_program_options", words_from="program_options", takes_match=False, other=True
    ),
    "key": Finder("kinds.key", other=True),
    "manifest": Finder("kinds.manifest", takes_match=False, other=True),
    "container": Finder("kinds.container", takes_match=False, other=True),
    "command": Finder("kinds.command", other=True),
    "body": Finder("kinds.command", "find_bodies", other=True),
    "mpi-line": Finder("kinds.mpi_line", takes_match=False, other=True),
    "requirement": Finder("kinds.requirement", takes_match=False, other=True),
    "image": Finder("kinds.image", takes_match=False, other=True),
}

# Of the rules of kind ``structural``. What has the handler ``none`` is found by another part of npumigrate.
HANDLERS = {
    "none": Finder("", "", takes_match=False, needs_npu=False),
    "api-verdicts": Finder("structural.api_verdicts", words_from="torch_apis", takes_match=False),
    "apex-amp": Finder("structural.apex_amp", goes_by="names"),
    "autocast-setters": Finder("structural.autocast_setters"),
    "capability": Finder("structural.capability", "find_calls"),
    "causal-mask": Finder("structural.causal_mask"),
    "checkpoint-load": Finder(
        "structural.torch_load", "find_without_place", goes_by="names", needs_npu=False
    ),
    "code-text": Finder("structural.code_text", takes_match=False),
    "command-mention": Finder("structural.command_output", "find_mentions"),
    "command-output": Finder("structural.command_output", "find_runs"),
    "cuda-branch": Finder("structural.cuda_branch", takes_match=False),
    "config-text": Finder("structural.config_text"),
    "cuda-definition": Finder("structural.cuda_definition", needs_npu=False),
    "cuda-extension": Finder("structural.cuda_operators", "find_builds"),
    "cuda-library": Finder("structural.cuda_library"),
    "cuda-operator-use": Finder(
        "structural.cuda_operators", "find_uses", words_from="cuda_operators", takes_match=False
    ),
    "cuda-way": Finder(
        "structural.cuda_branch",
        "find_ways_of_the_cpu",
        words_from="cuda_operators",
        takes_match=False,
        needs_npu=False,
    ),
    "data-loader": Finder("structural.data_loader", "find_slow"),
    "data-parallel": Finder("structural.data_parallel"),
    "detectron-config": Finder("structural.detectron_config"),
    "device-before-collective": Finder("structural.device_before_collective"),
    "device-slice": Finder(
        "structural.device_slice", takes_match=False, asks_project=True, settled=True, needs_npu=False
    ),
    "device-properties": Finder("structural.capability", "find_properties"),
    "driver-library": Finder("structural.driver_library"),
    "dynamic-batches": Finder("structural.dynamic_shapes", "find_batches"),
    "dynamic-calls": Finder("structural.dynamic_shapes", "find_calls"),
    "dynamic-masks": Finder("structural.dynamic_shapes", "find_masks", takes_match=False),
    "dynamic-sizes": Finder("structural.dynamic_shapes", "find_sizes"),
    "equivalent-function": Finder("structural.equivalent_functions", goes_by="names", needs_npu=False),
    "float64-collective": Finder("structural.float64_collective", goes_by="names", needs_npu=False),
    "float64-handed-over": Finder(
        "structural.float64_collective",
        "find_handed_over",
        words_from="reducers",
        takes_match=False,
        needs_npu=False,
    ),
    "fused-optimizer": Finder("structural.fused_optimizer", needs_npu=False),
    "fused-by-default": Finder("structural.fused_optimizer", "find_settings", needs_npu=False),
    "first-number": Finder("structural.old_tensors", "find_first_numbers", needs_npu=False),
    "inverted-mask": Finder("structural.old_tensors", "find_inverted_masks", needs_npu=False),
    "int-device": Finder("structural.int_device"),
    "library-default": Finder(
        "structural.library_defaults", goes_by="packages", takes_match=False, asks_project=True
    ),
    "library-equivalent": Finder("structural.library_equivalents", goes_by="names", needs_npu=False),
    "moved-value": Finder("structural.moved_value", takes_match=False, needs_npu=False),
    "lightning": Finder("structural.lightning", goes_by="names", needs_npu=False),
    "library-function": Finder(
        "structural.library_defaults", "find_functions", words_from="library_functions", takes_match=False
    ),
    "memory-format": Finder("structural.memory_format", goes_by="names", needs_npu=False),
    "replaced-names": Finder("structural.before_torch_2_1", "find_early_imports", needs_npu=False),
    "map-location": Finder("structural.before_torch_2_1", "find_map_locations", needs_npu=False),
    "numpy-name": Finder("structural.numpy_names", goes_by="modules", needs_npu=False),
    "npu-code": Finder(
        "structural.npu_code", words_from="npu_names", takes_match=False, settled=True, needs_npu=False
    ),
    "npu-generator": Finder("structural.before_torch_2_1", "find_generators"),
    "local-rank-option": Finder("structural.local_rank", "find_defaults", takes_match=False),
    "operator-form": Finder(
        "structural.operator_forms", words_from="cuda_operators", takes_match=False, needs_npu=False
    ),
    "optimizer-betas": Finder("structural.optimizer_betas", needs_npu=False),
    "outside-device": Finder("structural.outside_device", needs_npu=False, only_imports=True),
    "local-rank-spelling": Finder("structural.local_rank", "find_spellings", takes_match=False),
    "byte-mask": Finder("structural.old_forms", "find_byte_masks", takes_match=False, needs_npu=False),
    "iterator-next": Finder("structural.old_forms", "find_next", goes_by="names", needs_npu=False),
    "legacy-function": Finder("structural.old_forms", "find_legacy_functions", goes_by="names"),
    "real-spectrum": Finder("structural.old_forms", "find_real_spectra", needs_npu=False),
    "provider-options": Finder("structural.provider_options", needs_npu=False),
    "python-kernel": Finder("structural.cuda_operators", "find_kernels"),
    "release-names": Finder(
        "structural.release_names", words_from="torch_names", takes_match=False, needs_npu=False
    ),
    "late-argument": Finder("structural.release_names", "find_late", needs_npu=False),
    "last-batch": Finder("structural.data_loader", "find_last_batch"),
    "random-sizes": Finder("structural.dynamic_shapes", "find_random_sizes"),
    "started-script": Finder("structural.started_script", needs_npu=False),
    "tensor-type-default": Finder("structural.tensor_type_default"),
    "tensor-type-constructors": Finder(
        "structural.tensor_type_default", "find_constructors", words_from="legacy_constructors"
    ),
    "tensor-type-modules": Finder("structural.tensor_type_default", "find_modules"),
    "scaler-state": Finder("structural.scaler_state", needs_npu=False),
    "setup-packages": Finder("kinds.requirement", "find_packages_in_setup", takes_match=False),
    "setup-requirements": Finder("kinds.requirement", "find_in_setup", takes_match=False),
    "training-settings": Finder("structural.training_step", "find_settings", words_from="training_loops"),
    "weights-only": Finder("structural.torch_load", "find_without_pickle", goes_by="names", needs_npu=False),
    "training-step": Finder("structural.training_step", words_from="training_loops"),
}
