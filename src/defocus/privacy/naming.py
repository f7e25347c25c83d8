"""What something is, in a word or two, for refusals: events, mechanisms and their classes share names."""

from defocus.privacy.events import Event

__all__ = ["described"]


def described(thing: object) -> str:
    """The kind of ``thing``, told apart from others of the same name. Its value is private and not shown.

    >>> from defocus.privacy.events import Laplace
    >>> described(Laplace), described(Laplace(20)), described(3)
    ('the class Laplace', 'the event privacy.Laplace', 'int')
    """
    name = type(thing).__name__
    if isinstance(thing, type):
        return f"the class {thing.__name__}"
    if isinstance(thing, Event):
        return f"the event privacy.{name}"
    if isinstance(getattr(type(thing), "event", None), property) and callable(getattr(thing, "sample", None)):
        return f"the mechanism {name}"
    return name
