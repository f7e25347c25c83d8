"""Floor 4: a release is a mechanism applied to data, charged to one ledger before it is sampled."""

from defocus.release.previews import Preview, preview
from defocus.release.promises import Promise, promise
from defocus.release.releasing import release
from defocus.release.results import Release

__all__ = ["Preview", "Promise", "Release", "preview", "promise", "release"]
