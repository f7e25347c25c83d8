"""Flower's SecAgg+ by its own functions: what each client computes, for ``python with_flower.py PARTIES ENTRIES``.

All clients go through the first two stages. Masks take longest, so two clients mask a vector and the others are like
them; the server's work is that of two survivors times their number.
"""

import importlib
import json
import sys
import time

import numpy as np
from flwr.app import ConfigRecord
from flwr.common import ndarrays_to_parameters
from flwr.common.secure_aggregation.crypto.shamir import combine_shares, create_shares
from flwr.common.secure_aggregation.ndarrays_arithmetic import parameters_subtraction
from flwr.common.secure_aggregation.secaggplus_constants import Key
from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen

MEASURED = 2
mod = vars(importlib.import_module("flwr.client.mod.secure_aggregation.secaggplus_mod"))
"""The module, of which a function has the name; its stages are functions of its own."""


def main(parties: int, entries: int) -> None:
    states = [mod["SecAggPlusState"]() for _ in range(parties)]
    facts = {
        Key.SAMPLE_NUMBER: parties,
        Key.SHARE_NUMBER: parties,
        Key.THRESHOLD: parties - parties // 10 - 1,
        Key.CLIPPING_RANGE: 8.0,
        Key.TARGET_RANGE: 1 << 22,
        Key.MOD_RANGE: 1 << 32,
        Key.MAX_WEIGHT: 1000.0,
    }
    start = time.process_time()
    for number, state in enumerate(states):
        state.nid = number + 1
    keys = {str(state.nid): list(mod["_setup"](state, ConfigRecord(facts)).values()) for state in states}
    dealt = {state.nid: mod["_share_keys"](state, ConfigRecord(keys)) for state in states}
    sharing = (time.process_time() - start) / parties
    vector = ndarrays_to_parameters([np.linspace(-1, 1, entries)])
    start, sent = time.process_time(), 0
    for state in states[:MEASURED]:
        inbox = [
            (source, said[Key.CIPHERTEXT_LIST][said[Key.DESTINATION_LIST].index(state.nid)])
            for source, said in dealt.items()
            if source != state.nid
        ]
        sources, texts = (list(each) for each in zip(*inbox, strict=True))
        given = ConfigRecord({Key.CIPHERTEXT_LIST: texts, Key.SOURCE_LIST: sources})
        masked = mod["_collect_masked_vectors"](state, given, 1, vector)
        sent = sum(len(each) for each in masked[Key.MASKED_PARAMETERS])
    masking = (time.process_time() - start) / MEASURED
    shares = create_shares(states[0].rd_seed, facts[Key.THRESHOLD], parties)
    start = time.process_time()
    total = [np.zeros(entries, np.int64)]
    for _ in range(MEASURED):
        combine_shares(shares[: facts[Key.THRESHOLD]])
        total = parameters_subtraction(total, pseudo_rand_gen(states[0].rd_seed, 1 << 32, [(entries,)]))
    unmasking = (time.process_time() - start) / MEASURED * parties
    said = dealt[1]
    sent += sum(map(len, said[Key.CIPHERTEXT_LIST])) + sum(map(len, keys["1"]))
    print(json.dumps({"party": sharing + masking, "coordinator": unmasking, "bytes": sent}))


main(int(sys.argv[1]), int(sys.argv[2]))
