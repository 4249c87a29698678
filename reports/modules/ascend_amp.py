"""Made by npumigrate: apex.amp on NPUs, by torch's autocast and GradScaler.

apex's own build needs CUDA. The functions are those of apex.amp, for the levels O0, O1 and O2; O2 computes as
O1 does, with weights in float32. A state that apex.amp saved can be loaded.
"""

# npumigrate: skip-file

import functools
import types
from collections import OrderedDict
from contextlib import contextmanager

import torch
import torch_npu

# Files that do not find the same one have copies of this module in a result: they share their state.
_amp_state = vars(torch_npu).setdefault(
    "_ascend_amp", types.SimpleNamespace(loss_scalers=[], scalers=[], unscaled={}, stepped=set())
)
_scalers = _amp_state.scalers  # one for each loss
_unscaled = _amp_state.unscaled  # by id(optimizer): the scaler that unscaled its gradients, until its step
_stepped = _amp_state.stepped  # the scalers of which an optimizer has stepped


def initialize(
    models,
    optimizers=None,
    enabled=True,
    opt_level="O1",
    cast_model_type=None,
    patch_torch_functions=None,
    keep_batchnorm_fp32=None,
    master_weights=None,
    loss_scale=None,
    cast_model_outputs=None,
    num_losses=1,
    verbosity=1,
    min_loss_scale=None,
    max_loss_scale=2.0**24,
):
    """Switch on mixed precision for all that follows, and give back the models and optimizers."""
    if opt_level not in ("O0", "O1", "O2") or cast_model_outputs is not None:
        raise ValueError("on NPUs amp.initialize takes O0, O1 and O2, and no cast_model_outputs")
    enabled = enabled and opt_level != "O0"
    is_dynamic = loss_scale in (None, "dynamic")
    scale = 2.0**16 if is_dynamic else float(loss_scale)
    make = functools.partial(torch.npu.amp.GradScaler, init_scale=scale, dynamic=is_dynamic, enabled=enabled)
    _scalers[:] = [make() for _ in range(num_losses)]
    _amp_state.loss_scalers = [_LossScaler(scaler) for scaler in _scalers]
    if enabled:
        for optimizer in _listed(optimizers):
            _skip_on_overflow(optimizer)
        # It is never left: each operator from here on chooses its precision, as with apex.
        torch.autocast("npu", dtype=torch.float16, cache_enabled=False).__enter__()
    return models if optimizers is None else (models, optimizers)


@contextmanager
def scale_loss(loss, optimizers, loss_id=0, model=None, delay_unscale=False, delay_overflow_check=False):
    """Give the scaled loss; behind the block the gradients are unscaled."""
    if not _scalers:
        raise RuntimeError("amp.scale_loss needs amp.initialize before it")
    scaler = _scalers[loss_id]
    if not scaler.is_enabled():
        yield loss
        return
    _begin(scaler, _listed(optimizers))
    with torch.autocast("npu", enabled=False):
        yield scaler.scale(loss.float())
    for optimizer in [] if delay_unscale else _listed(optimizers):
        scaler.unscale_(optimizer)
        _unscaled[id(optimizer)] = scaler


def master_params(optimizer):
    """All parameters of an optimizer, one after the other."""
    for group in optimizer.param_groups:
        yield from group["params"]


def state_dict(destination=None):
    """The scales, as apex.amp saves them."""
    saved = OrderedDict() if destination is None else destination
    for number, scaler in enumerate(_scalers):
        state = {"loss_scale": scaler.get_scale(), "unskipped": scaler._get_growth_tracker()}
        saved[f"loss_scaler{number}"] = state
    return saved


def load_state_dict(state_dict):
    """Take scales that this module or apex.amp has saved."""
    for scaler, state in zip(_scalers, state_dict.values()):
        if scaler.is_enabled():
            known = {"scale": state["loss_scale"], "_growth_tracker": state["unskipped"]}
            scaler.load_state_dict({**scaler.state_dict(), **known})


def disable_casts():
    """A context in which operators take what they are given."""
    return torch.autocast("npu", enabled=False)


def float_function(function):
    """The function, computed in float32."""
    return _cast_for(function, torch.float32)


def half_function(function):
    """The function, computed in float16."""
    return _cast_for(function, torch.float16)


def promote_function(function):
    """The function: autocast promotes what it is given."""
    return function


def register_float_function(module, name):
    """Make a module's function compute in float32."""
    setattr(module, name, float_function(getattr(module, name)))


def register_half_function(module, name):
    """Make a module's function compute in float16."""
    setattr(module, name, half_function(getattr(module, name)))


def register_promote_function(module, name):
    """Nothing to do: autocast promotes what a function is given."""


class _LossScaler:
    """What programs ask and set of a scale of apex, ``amp._amp_state.loss_scalers[0]``."""

    def __init__(self, scaler):
        self._scaler = scaler

    @property
    def _loss_scale(self):
        return self._scaler.get_scale()

    @_loss_scale.setter
    def _loss_scale(self, value):
        if self._scaler._scale is None:  # before the first loss
            self._scaler._init_scale = float(value)
        else:
            self._scaler._scale.fill_(value)

    def loss_scale(self):
        return self._loss_scale


def _listed(optimizers):
    if optimizers is None:
        return []
    return list(optimizers) if isinstance(optimizers, (list, tuple)) else [optimizers]


def _begin(scaler, optimizers):
    """Before a backward pass: gradients of an earlier one that no step has used are scaled again."""
    earlier = [each for each in optimizers if _unscaled.pop(id(each), None) is not None]
    if scaler in _stepped and scaler not in _unscaled.values():
        _stepped.discard(scaler)
        scaler.update()
    for optimizer in optimizers:
        for each in _scalers:
            each._per_optimizer_states.pop(id(optimizer), None)
    for optimizer in earlier:
        for parameter in master_params(optimizer):
            if parameter.grad is not None:
                parameter.grad.mul_(scaler.get_scale())


def _skip_on_overflow(optimizer):
    """Make a step go by the scaler that has unscaled its gradients: it leaves it out after an overflow."""
    plain = optimizer.step

    @functools.wraps(plain)
    def step(self, *args, **kwargs):
        scaler = _unscaled.pop(id(self), None)
        if scaler is None or args or kwargs:  # GradScaler takes no closure
            return plain(*args, **kwargs)
        outer, self.step = self.step, plain
        try:
            return scaler.step(self)
        finally:
            self.step = outer
            _stepped.add(scaler)

    optimizer.step = types.MethodType(step, optimizer)


def _cast_for(function, dtype):
    def cast(value):
        is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.to(dtype) if is_float else value

    @functools.wraps(function)
    def call(*args, **kwargs):
        if not any(scaler.is_enabled() for scaler in _scalers):
            return function(*args, **kwargs)
        with disable_casts():
            return function(*map(cast, args), **{name: cast(value) for name, value in kwargs.items()})

    return call
