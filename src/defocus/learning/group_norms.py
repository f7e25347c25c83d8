"""Group norms in the place of batch norms, which mix the examples of a batch."""

import copy
import math
import warnings

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

__all__ = ["ReplacedLayersWarning", "fix"]

_GROUPS = 32
"""At most so many groups, as in the paper."""


class ReplacedLayersWarning(UserWarning):
    """Layers of a model were exchanged for others that keep examples apart."""


def fix(model: nn.Module) -> nn.Module:
    """A copy of a model with a group norm in the place of every batch norm, which is said in a warning.

    The model that is given stays as it is. A group norm has as many groups as divide the channels, at most 32; it takes
    over the scale and the shift, and forgets the running statistics, so that a pretrained model has to be trained
    further. Instance norms that keep running statistics are made to keep none. Give the parameters of the copy to
    the optimizer.

    Reference:
        Wu and He (2018), Group normalization.

    >>> import warnings
    >>> model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     print(type(fix(model)[1]).__name__)
    GroupNorm
    >>> str(said[0].message)
    'GroupNorm is in the place of BatchNorm2d in 1: it normalises each example by itself.'
    """
    fixed = copy.deepcopy(model)
    for name, module in list(fixed.named_modules()):
        instead = _instead(module)
        if instead is None:
            continue
        warnings.warn(
            f"{type(instead).__name__} is in the place of {type(module).__name__} in {name or 'the model'}: it"
            " normalises each example by itself.",
            ReplacedLayersWarning,
            stacklevel=2,
        )
        if not name:
            return instead
        parent, _, last = name.rpartition(".")
        setattr(fixed.get_submodule(parent), last, instead)
    return fixed


def _instead(module: nn.Module) -> nn.Module | None:
    """What a module is exchanged for, if it is."""
    if isinstance(module, nn.modules.instancenorm._InstanceNorm) and module.track_running_stats:  # noqa: SLF001
        found = type(module)(module.num_features, eps=module.eps, affine=module.affine)
    elif isinstance(module, _BatchNorm):
        groups = math.gcd(module.num_features, _GROUPS)
        found = nn.GroupNorm(groups, module.num_features, eps=module.eps, affine=module.affine)
    else:
        return None
    if module.affine:
        found.weight, found.bias = module.weight, module.bias
    return found.train(module.training)
