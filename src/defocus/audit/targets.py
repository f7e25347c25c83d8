"""The targets that have a name, so that anyone can audit them from a terminal."""

from collections.abc import Mapping
from types import MappingProxyType

from defocus.audit.broken import broken
from defocus.audit.findings import Finding
from defocus.audit.lower_bounds import search
from defocus.audit.own_mechanisms import honest
from defocus.audit.target import Target
from defocus.errors import UnknownTargetError
from defocus.noise import Bits

__all__ = ["attack", "targets"]


def targets(bits: Bits | None = None) -> Mapping[str, Target]:
    """Every mechanism of the project, and under ``broken/`` those with a fault an audit must find.

    ``bits`` is the source they draw from, the system's by default.

    >>> print(targets()["broken/half-noise"].about)
    Half the Laplace noise that epsilon 1 needs.
    """
    return MappingProxyType({target.name: target for target in (*honest(bits), *broken(bits))})


def attack(
    name: str,
    trials: int | None = None,
    confidence: float = 0.999,
    *,
    seconds: float | None = None,
    bits: Bits | None = None,
) -> Finding:
    """Search the pairs of the target called ``name`` for a violation of its claim.

    >>> attack("broken/truncated-noise", trials=20_000).verdict
    'violation'
    """
    by_name = targets(bits)
    if name not in by_name:
        raise UnknownTargetError(name, by_name)
    target = by_name[name]
    return search(
        target.mechanism,
        target.pairs,
        target.trials if trials is None else trials,
        confidence,
        delta=target.delta,
        claimed=target.epsilon,
        seconds=seconds,
    )
