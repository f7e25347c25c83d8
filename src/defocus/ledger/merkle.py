r"""Merkle trees over the entries of a ledger: short proofs that an entry is in it, and that it only grew.

The tree over n leaves splits them at the largest power of two below n. A leaf is hashed behind a zero byte and a node
behind a one, so that neither can be taken for the other.

Guarantee:
    While SHA-256 has no collisions, :func:`included` is true for one leaf at each index of one root only, and
    :func:`consistent` is true only if the leaves under the older root are the first ones under the newer.

Error:
    A proof has at most ⌈log₂ n⌉ + 1 hashes. Making one reads all leaves.

Reference:
    Laurie, Messeri, Stradling (2021), Certificate Transparency 2.0, RFC 9162, section 2.1.
"""

import hashlib
from collections.abc import Sequence

__all__ = ["consistency", "consistent", "included", "inclusion", "root"]


def root(leaves: Sequence[bytes]) -> bytes:
    """The hash that vouches for all leaves in their order.

    >>> root([]).hex()[:8], root([b"a"]) == root([b"b"])
    ('e3b0c442', False)
    """
    return _root([_leaf(leaf) for leaf in leaves])


def inclusion(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The hashes beside the way from the leaf at ``index`` up to the root.

    >>> leaves = [b"a", b"b", b"c"]
    >>> [included(leaf, 2, 3, inclusion(leaves, 2), root(leaves)) for leaf in leaves]
    [False, False, True]
    """
    return _beside([_leaf(leaf) for leaf in leaves], index)


def included(leaf: bytes, index: int, size: int, proof: Sequence[bytes], top: bytes) -> bool:
    """Whether the proof shows that ``leaf`` stands at ``index`` among the ``size`` leaves under the root ``top``."""
    if not 0 <= index < size:
        return False
    place, last, node = index, size - 1, _leaf(leaf)
    for hash_ in proof:
        if last == 0:
            return False
        if place & 1 or place == last:
            node = _node(hash_, node)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            node = _node(node, hash_)
        place, last = place >> 1, last >> 1
    return last == 0 and node == top


def consistency(leaves: Sequence[bytes], size: int) -> list[bytes]:
    """The hashes that connect the root of the first ``size`` leaves with that of all of them."""
    hashes = [_leaf(leaf) for leaf in leaves]
    return _connecting(hashes, size, known=True) if 0 < size < len(hashes) else []


def consistent(size: int, top: bytes, newer_size: int, newer_top: bytes, proof: Sequence[bytes]) -> bool:
    """Whether the proof shows that the ``size`` leaves under ``top`` are the first of those under ``newer_top``.

    >>> leaves = [b"a", b"b", b"c"]
    >>> consistent(2, root(leaves[:2]), 3, root(leaves), consistency(leaves, 2))
    True
    >>> consistent(2, root([b"a", b"x"]), 3, root(leaves), consistency(leaves, 2))
    False
    """
    if not 0 < size <= newer_size:
        return False
    if size == newer_size:
        return not proof and top == newer_top
    hashes = [top, *proof] if size & (size - 1) == 0 else list(proof)
    if not hashes:
        return False
    place, last = size - 1, newer_size - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    older = newer = hashes[0]
    for hash_ in hashes[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            older, newer = _node(hash_, older), _node(hash_, newer)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            newer = _node(newer, hash_)
        place, last = place >> 1, last >> 1
    return last == 0 and older == top and newer == newer_top


def _leaf(leaf: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + leaf).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def _half(count: int) -> int:
    """The largest power of two below ``count``."""
    return 1 << (count - 1).bit_length() - 1


def _root(hashes: Sequence[bytes]) -> bytes:
    if len(hashes) < 2:
        return hashes[0] if hashes else hashlib.sha256(b"").digest()
    half = _half(len(hashes))
    return _node(_root(hashes[:half]), _root(hashes[half:]))


def _beside(hashes: Sequence[bytes], index: int) -> list[bytes]:
    if len(hashes) < 2:
        return []
    half = _half(len(hashes))
    if index < half:
        return [*_beside(hashes[:half], index), _root(hashes[half:])]
    return [*_beside(hashes[half:], index - half), _root(hashes[:half])]


def _connecting(hashes: Sequence[bytes], size: int, *, known: bool) -> list[bytes]:
    """The proof for a subtree; ``known`` while its root is that of the older tree, which needs no proof."""
    if size == len(hashes):
        return [] if known else [_root(hashes)]
    half = _half(len(hashes))
    if size <= half:
        return [*_connecting(hashes[:half], size, known=known), _root(hashes[half:])]
    return [*_connecting(hashes[half:], size - half, known=False), _root(hashes[:half])]
