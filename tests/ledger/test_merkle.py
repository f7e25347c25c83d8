"""Proofs about Merkle trees hold for every tree of up to seventeen leaves, and for nothing else."""

import hashlib

import pytest

from defocus.ledger.merkle import consistency, consistent, included, inclusion, root

LEAVES = [bytes([i]) * 3 for i in range(17)]


def test_the_roots_are_those_of_the_standard() -> None:
    """Computed by hand from section 2.1.1 of RFC 9162."""

    def leaf(data: bytes) -> bytes:
        return hashlib.sha256(b"\0" + data).digest()

    def node(left: bytes, right: bytes) -> bytes:
        return hashlib.sha256(b"\1" + left + right).digest()

    a, b, c = (leaf(x) for x in LEAVES[:3])
    assert root(LEAVES[:1]) == a
    assert root(LEAVES[:3]) == node(node(a, b), c)
    assert root([]) == hashlib.sha256(b"").digest()


@pytest.mark.parametrize("size", range(1, 18))
def test_every_leaf_has_a_proof_and_no_other_leaf_index_or_size_has_it(size: int) -> None:
    leaves, top = LEAVES[:size], root(LEAVES[:size])
    for index in range(size):
        proof = inclusion(leaves, index)
        assert len(proof) <= (size - 1).bit_length()
        for other in range(-1, size + 2):
            for leaf in range(size):
                assert included(LEAVES[leaf], other, size, proof, top) == (leaf == other == index)
        assert not included(LEAVES[index], index, size, [*proof, top], top)
        assert not proof or not included(LEAVES[index], index, size, proof[:-1], top)
        for place in range(len(proof)):
            wrong = [*proof]
            wrong[place] = bytes(32)
            assert not included(LEAVES[index], index, size, wrong, top)


@pytest.mark.parametrize("size", range(1, 18))
def test_every_tree_is_consistent_with_its_beginnings_and_with_nothing_else(size: int) -> None:
    leaves, top = LEAVES[:size], root(LEAVES[:size])
    for older in range(1, size + 1):
        proof = consistency(leaves, older)
        assert len(proof) <= (size - 1).bit_length() + 1
        assert consistent(older, root(leaves[:older]), size, top, proof)
        for changed in range(older):
            rewritten = [*leaves[:older]]
            rewritten[changed] = b"another"
            assert not consistent(older, root(rewritten), size, top, proof)
        for place in range(len(proof)):
            wrong = [*proof]
            wrong[place] = bytes(32)
            assert not consistent(older, root(leaves[:older]), size, top, wrong)
        assert not consistent(older, root(leaves[:older]), size, top, [*proof, bytes(32)])
        assert not proof or not consistent(older, root(leaves[:older]), size, top, proof[:-1])


def test_no_tree_follows_from_an_empty_or_a_longer_one() -> None:
    assert not consistent(0, root([]), 3, root(LEAVES[:3]), [])
    assert not consistent(4, root(LEAVES[:4]), 3, root(LEAVES[:3]), [])
    assert consistency(LEAVES[:3], 4) == []
