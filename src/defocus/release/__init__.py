"""Floor 5: a release is a mechanism applied to data, charged to one ledger before it is sampled."""

from defocus.answers.explanation import Promise, promise
from defocus.answers.preview import Preview
from defocus.release.preview import preview
from defocus.release.release import Release, release

__all__ = ["Preview", "Promise", "Release", "preview", "promise", "release"]
