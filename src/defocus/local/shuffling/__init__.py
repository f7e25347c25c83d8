"""Shuffled collection: devices, a shuffler that does not know what is said, an analyser that does not know by whom.

>>> from defocus import local
>>> from defocus.local import shuffling
>>> ours, theirs = shuffling.Key.generate(), shuffling.Key.generate()
>>> asked = local.oracle("k-rr", 4, epsilon=2)
>>> described = shuffling.Round(asked.design, users=100, shuffler=ours.public, analyser=theirs.public)
>>> mixer = shuffling.Shuffler(described, ours)
>>> for envelope in described.envelopes(asked.encode([1] * 100)):
...     _ = mixer.accept(envelope)
>>> batch = mixer.release()
>>> len(asked.estimate(shuffling.Analyser(described, theirs).count(batch)))
5
"""

from defocus.local.shuffling.amplification import amplified, local_epsilon, local_event
from defocus.local.shuffling.crowds import Crowds, CrowdServer
from defocus.local.shuffling.envelopes import Key, seal
from defocus.local.shuffling.histograms import HistogramServer, MultiMessageHistogram
from defocus.local.shuffling.rounds import Round, protocol_from_json, protocol_to_json
from defocus.local.shuffling.service import Service, acknowledge, ask, fetch, send, serving
from defocus.local.shuffling.shuffler import Analyser, Opened, Shuffler
from defocus.local.shuffling.sums import MultiMessageSum, SumServer

__all__ = [
    "Analyser",
    "CrowdServer",
    "Crowds",
    "HistogramServer",
    "Key",
    "MultiMessageHistogram",
    "MultiMessageSum",
    "Opened",
    "Round",
    "Service",
    "Shuffler",
    "SumServer",
    "acknowledge",
    "amplified",
    "ask",
    "fetch",
    "local_epsilon",
    "local_event",
    "protocol_from_json",
    "protocol_to_json",
    "seal",
    "send",
    "serving",
]
