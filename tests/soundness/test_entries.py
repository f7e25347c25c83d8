"""No public callable is forgotten: each has a driver, or says why it needs none."""

from tests.soundness.entries import DRIVEN, PUBLIC, commands, entries, private

COMMANDS = {
    "query": "test_commands", "preview": "test_commands", "init": "test_commands", "check": "test_commands",
    "graph": "test_commands", "train": "test_commands", "synthesise": "test_commands",
    "budget": "the ledger only", "history": "the ledger only",
    "export": "what was released", "report": "what was released", "ledger show": "the ledger only",
    "ledger verify": "the ledger only",
    "ledger declare": "the ledger only", "units": "the ledger only", "ledger head": "the ledger only",
    "ledger bundle": "what was released", "verify": "what was released", "witness": "the ledger only",
    "serve": "test_tables: what a server releases is asked of the same tables", "backup": "copies files",
    "restore": "copies files",
    "site init": "makes a key", "federation init": "public facts", "federation budget": "ledgers only",
    "site serve": "tests/federated: what a site answers is asked of the same tables",
    "federation preview": "public facts of sites", "federation ask": "tests/federated: the same questions",
    "account": "public facts", "calibrate": "public facts", "advise": "public facts", "choose": "public facts",
    "choose-budget": "public facts",
    "audit mechanism": "synthetic neighbours", "audit history": "the ledger only",
    "audit membership": "attacks a function of the user's, for whoever holds the rows",
    "audit canaries": "attacks a function of the user's, with canaries of its own",
    "audit reconstruction": "attacks a function of the user's, with bits of its own",
    "audit scores": "scores of canaries, which are nobody's rows",
    "estimate": "randomised reports", "shuffler": "sealed reports",
    "predict": "applies what was released to the caller's own rows",
}  # fmt: skip
"""Every command, and where it is driven or why not."""


def test_every_public_callable_has_a_driver_or_a_reason() -> None:
    found = {name: private(each) for name, each in entries()}
    forgotten = {name: wanted for name, wanted in found.items() if wanted and name not in DRIVEN and name not in PUBLIC}
    assert not forgotten, "\n".join(
        ["These take something that may be private, and nobody drives them:"]
        + [f"  {name}({', '.join(wanted)})" for name, wanted in forgotten.items()]
    )


def test_every_command_has_a_driver_or_a_reason() -> None:
    assert {name for name, _ in commands()} == set(COMMANDS)


def test_nothing_is_named_that_is_not_there() -> None:
    known = {name for name, _ in entries()}
    families = ("mechanisms.", "learning.")
    gone = [name for name in (*DRIVEN, *PUBLIC) if name not in known and not name.startswith(families)]
    assert not gone


def test_nothing_has_both_a_driver_and_a_reason() -> None:
    assert not set(DRIVEN) & set(PUBLIC)
