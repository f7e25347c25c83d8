"""Floor 4: a release is a mechanism applied to data, charged to one ledger before it is sampled."""

from defocus.release.guarantee import Promise, promise
from defocus.release.preview import Preview, preview
from defocus.release.release import Release, release

__all__ = ["Preview", "Promise", "Release", "preview", "promise", "release"]
