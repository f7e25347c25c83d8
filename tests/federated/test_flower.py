"""Federated training with Flower's own messages, clients and strategies, in this process."""

import itertools
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import defocus as dp
from defocus.errors import BudgetExceededError, InvalidParameterError, UnfitDataError
from defocus.federated import Identity
from defocus.federated.flower import LedgerAccountant, Loopback, PrivateClient, PrivateTraining
from defocus.federated.messages import Kind
from defocus.federated.training_plan import TrainingPlan
from defocus.mechanisms import Gaussian as Noise
from defocus.mechanisms.noise_shares import NoiseShare
from defocus.privacy import account
from defocus.privacy.events import Gaussian

flwr = pytest.importorskip("flwr.app")
clients = pytest.importorskip("flwr.clientapp")
serverapp = pytest.importorskip("flwr.serverapp")

NUMBER = 8
WHO = [Identity.generate() for _ in range(NUMBER)]
TERMS: dict[str, Any] = {"unit": dp.user("client"), "budget": dp.Budget(1e9, 1e-5), "dataset": "clients"}
FACTS: dict[str, Any] = {"clients": NUMBER, "rounds": 2, "clip": 10.0, "noise_multiplier": 1e-3}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[dp.Ledger]:
    with dp.Ledger.open(tmp_path / "l", **TERMS) as made:
        yield made


def app_of(plan: TrainingPlan, members: Any = None, seen: list[Any] | None = None) -> Any:
    """Clients whose model moves by their number in each entry."""
    app = clients.ClientApp()
    private = PrivateClient(plan, lambda context: WHO[context.node_config["partition-id"]], members)

    @app.train(mods=[private])
    def train(message: Any, context: Any) -> Any:
        if seen is not None:
            seen.append(sorted(message.content))
        held = message.content["arrays"].to_numpy_ndarrays()
        moved = [each + context.node_config["partition-id"] + 1 for each in held]
        made = {"arrays": flwr.ArrayRecord(moved), "metrics": flwr.MetricRecord({"num-examples": 7})}
        return flwr.Message(flwr.RecordDict(made), reply_to=message)

    return app


def trained(plan: TrainingPlan, ledger: dp.Ledger, grid: Any, rounds: int = 1) -> list[np.ndarray]:
    start = flwr.ArrayRecord([np.zeros((2, 2), np.float32), np.ones(1)])
    made = PrivateTraining(plan, ledger).start(grid, start, num_rounds=rounds)
    return list(made.arrays.to_numpy_ndarrays()) if len(made.arrays) else start.to_numpy_ndarrays()


def test_the_model_moves_by_the_mean_of_clipped_changes(ledger: dp.Ledger) -> None:
    """Client i moves by i in each of 5 entries: from 5 on, more than the clip of 10."""
    plan, seen = TrainingPlan(**FACTS, dropouts=1), list[Any]()
    first, second = trained(plan, ledger, Loopback(app_of(plan, {each.public for each in WHO}, seen), NUMBER))
    mean = np.mean([min(i, 10 / 5**0.5) for i in range(1, NUMBER + 1)])
    assert first == pytest.approx(np.full((2, 2), mean), abs=0.02)
    assert second == pytest.approx([1 + mean], abs=0.02)
    assert (first.dtype, first.shape) == (np.dtype(np.float32), (2, 2))
    assert seen == [["arrays", "config"]] * NUMBER
    assert [entry.kind for entry in ledger.entries()].count("charge") == 1


@pytest.mark.parametrize("kind", [0, Kind.KEYS, Kind.SHARES, Kind.MASKED, Kind.CONFIRMED, Kind.REVEALED])
def test_a_client_that_is_lost_at_any_step_voids_nothing_and_two_void_the_round(ledger: dp.Ledger, kind: int) -> None:
    plan = TrainingPlan(**FACTS, dropouts=1)

    def lost(node: int, message: Any) -> bool:
        return node in gone and message.content["defocus"]["kind"] >= kind

    gone = {8}
    moved = trained(plan, ledger, Loopback(app_of(plan), NUMBER, lost))[1][0] - 1
    there = NUMBER if kind > Kind.MASKED else NUMBER - 1
    assert moved == pytest.approx(np.mean([min(i, 10 / 5**0.5) for i in range(1, there + 1)]), abs=0.02)
    gone = {7, 8}
    if kind <= Kind.MASKED:
        assert trained(plan, ledger, Loopback(app_of(plan), NUMBER, lost))[1] == [1]


@pytest.mark.parametrize("trusted", [False, True])
def test_the_clip_follows_the_changes_of_those_who_brought_one(ledger: dp.Ledger, trusted: bool) -> None:
    """Changes have norms 1, 2, 3, 4 and 5; of eight clients two fail, and one is gone, wherever its change would be."""
    plan = TrainingPlan(**(FACTS | {"rounds": 60}), dropouts=1, trusted=trusted, quantile=0.5)
    app = clients.ClientApp()

    @app.train(mods=[PrivateClient(plan, lambda context: WHO[context.node_id - 1], None)])
    def train(message: Any, context: Any) -> Any:
        held = message.content["arrays"].to_numpy_ndarrays()
        size = {6: np.nan, 8: 1e6}.get(context.node_id, context.node_id)
        if context.node_id == 7:
            raise UnfitDataError("Row 17 is odd.", fix="look at it.")
        moved = flwr.ArrayRecord([held[0] + size, held[1]])
        return flwr.Message(flwr.RecordDict({"arrays": moved}), reply_to=message)

    grid = Loopback(app, NUMBER, lambda node, _: node == 8)
    strategy = PrivateTraining(plan, ledger)
    assert strategy.clip == 10
    start = flwr.ArrayRecord([np.zeros(1), np.zeros(1)])
    moved = strategy.start(grid, start, num_rounds=60).arrays.to_numpy_ndarrays()
    assert 2.7 < strategy.clip < 3.3
    assert [each.shape for each in moved] == [(1,), (1,)]


@pytest.mark.parametrize("clip", [float("nan"), float("inf"), 0.0, -1.0, 1e-200, 1e200, 5.0, "1"])
def test_a_clip_that_was_not_agreed_on_is_refused(ledger: dp.Ledger, clip: Any) -> None:
    plan, seen = TrainingPlan(**FACTS, quantile=None if clip == 5.0 else 0.5), list[Any]()

    def lie(said: Any) -> None:
        if "clip" in said:
            said["clip"] = clip

    assert trained(plan, ledger, Lying(app_of(plan, seen=seen), lie))[1] == [1]
    assert seen == []


@pytest.mark.parametrize("seed", range(4))
def test_whoever_drops_out_in_whichever_rounds_enough_shares_of_noise_are_in_every_sum(
    ledger: dp.Ledger, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Each client is gone from some step on, in rounds of its own. A sum is of so many vectors with a share each."""
    plan = TrainingPlan(**(FACTS | {"rounds": 12, "noise_multiplier": 1.0}), dropouts=2, quantile=0.5)
    random, strategy = np.random.default_rng(seed), PrivateTraining(plan, ledger)
    steps = random.choice([0, 1, 3, 5, 7, 9, *[99] * 24], (12, NUMBER))
    sent, sums, sample, decoded = list[Any](), list[Any](), NoiseShare.sample, TrainingPlan.decoded

    def noted(self: NoiseShare, value: Any, bits: Any = None) -> Any:
        sent.append(sample(self, value, bits))
        assert (self.honest, self.mechanism) == (
            8 - 2 - 1,
            Noise(sigma=plan.radius, sensitivity=plan.radius, dimension=4),
        )
        assert np.abs(sent[-1] - value).any()
        return sent[-1]

    def opened(self: TrainingPlan, total: Any, parties: int, clip: float) -> Any:
        sums.append((total, parties))
        return decoded(self, total, parties, clip)

    monkeypatch.setattr(NoiseShare, "sample", noted)
    monkeypatch.setattr(TrainingPlan, "decoded", opened)

    def lost(node: int, message: Any) -> bool:
        return bool(message.content["defocus"]["kind"] >= steps[strategy.rounds - 1, node - 1])

    grid, held, counts = Loopback(app_of(plan), NUMBER, lost), flwr.ArrayRecord([np.zeros(3)]), list[int]()
    for turn in range(12):
        sent.clear()
        sums.clear()
        asked = strategy.configure_train(turn + 1, held, flwr.ConfigRecord(), grid)
        strategy.aggregate_train(turn + 1, list(grid.send_and_receive(asked)))
        for total, parties in sums:
            assert parties >= plan.clients - plan.dropouts == plan.honest + 1
            which = itertools.combinations(sent, parties)
            assert any(not ((sum(each) - total) % 2**32).any() for each in which)
            counts.append(parties)
    assert len(set(counts)) > 1


def test_a_trusted_server_asks_by_chance_and_refuses_what_is_too_long(ledger: dp.Ledger) -> None:
    plan = TrainingPlan(**FACTS, trusted=True)
    moved = trained(plan, ledger, Loopback(app_of(plan), NUMBER))[1][0] - 1
    assert moved == pytest.approx(np.mean([min(i, 10 / 5**0.5) for i in range(1, NUMBER + 1)]), abs=0.02)

    def long(message: Any, context: Any) -> Any:
        body = np.full(5, plan.radius if context.node_id == 1 else 0, "<i8").tobytes()
        return flwr.Message(flwr.RecordDict({"defocus": flwr.ConfigRecord({"body": body})}), reply_to=message)

    assert trained(plan, ledger, Loopback(long, NUMBER))[1][0] == pytest.approx(1, abs=0.02)
    some, seen = TrainingPlan(**(FACTS | {"rounds": 60}), trusted=True, sampling=0.25), list[Any]()
    trained(some, ledger, Loopback(app_of(some, seen=seen), NUMBER), 60)
    assert 60 < len(seen) < 190  # 120 on average, with a standard deviation of 9.5


def test_no_round_is_begun_that_was_not_paid_for_and_a_client_counts_too(ledger: dp.Ledger, tmp_path: Path) -> None:
    plan, seen = TrainingPlan(**FACTS), list[Any]()
    grid = Loopback(app_of(plan, seen=seen), NUMBER)
    trained(plan, ledger, grid, 5)
    assert len(seen) == 2 * NUMBER
    trained(plan, ledger, grid, 5)  # paid for again, but the clients agreed to two rounds
    assert len(seen) == 2 * NUMBER
    with (
        dp.Ledger.open(
            tmp_path / "small", unit=dp.user("client"), budget=dp.Budget(1, 1e-5), dataset="clients"
        ) as small,
        pytest.raises(BudgetExceededError),
    ):
        trained(plan, small, Loopback(app_of(plan, seen=seen), NUMBER))
    assert len(seen) == 2 * NUMBER


@pytest.mark.parametrize("change", [{"noise_multiplier": 5e-4}, {"clip": 20.0}, {"rounds": 3}, {"trusted": True}])
def test_clients_refuse_other_terms_and_strangers(ledger: dp.Ledger, change: dict[str, Any]) -> None:
    plan, seen = TrainingPlan(**FACTS), list[Any]()
    trained(TrainingPlan(**(FACTS | change)), ledger, Loopback(app_of(plan, seen=seen), NUMBER))
    trained(plan, ledger, Loopback(app_of(plan, {each.public for each in WHO[1:]}, seen), NUMBER))
    assert seen == []


def test_what_a_client_sends_is_no_more_than_its_masked_vector_and_no_step_is_taken_twice(ledger: dp.Ledger) -> None:
    plan = TrainingPlan(**FACTS)
    said: list[Any] = []

    class Watched:
        def __init__(self) -> None:
            self.inner = Loopback(app_of(plan), NUMBER)
            self.get_node_ids = self.inner.get_node_ids

        def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> Any:
            for message in messages:
                if message.content["defocus"]["kind"] == Kind.REVEALED:  # the server asks for other shares as well
                    node = message.metadata.dst_node_id
                    again = flwr.Message(message.content, dst_node_id=node, message_type="train")
                    first, second = self.inner.send_and_receive([message, again])
                    assert (first.has_error(), second.has_error()) == (False, True)
                    yield first
                    continue
                for reply in self.inner.send_and_receive([message], timeout=timeout):
                    said.append((sorted(reply.content), sorted(reply.content["defocus"])))
                    yield reply

    trained(plan, ledger, Watched())
    assert set(map(str, said)) == {"(['defocus'], ['body'])"}


def test_a_client_that_fails_is_not_told_from_others(ledger: dp.Ledger) -> None:
    plan, app = TrainingPlan(**FACTS), clients.ClientApp()

    @app.train(mods=[PrivateClient(plan, lambda context: WHO[context.node_config["partition-id"]], None)])
    def train(message: Any, context: Any) -> Any:
        if context.node_id == 1:
            return flwr.Message(flwr.Error(code=0, reason="row 17 is odd"), reply_to=message)
        if context.node_id == 2:
            raise UnfitDataError("Row 17 is odd.", fix="look at it.")
        if context.node_id == 3:
            return flwr.Message(flwr.RecordDict(), reply_to=message)
        return flwr.Message(message.content, reply_to=message)

    assert trained(plan, ledger, Loopback(app, NUMBER))[1][0] == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(
    "unit",
    [
        dp.user("client", replace=True),
        dp.rows(),
        dp.rows(per_person=2),
        dp.edge(),
        dp.user("a", period="month", of="b"),
    ],
)
def test_a_ledger_of_which_a_client_is_no_unit_is_refused(tmp_path: Path, unit: Any) -> None:
    config = serverapp.PrivacyConfig(
        target_delta=1e-5,
        population_size=NUMBER,
        neighboring_relation=serverapp.NeighboringRelation.ADD_OR_REMOVE_ONE,
        sampling_method=serverapp.SamplingMethod.NO_AMPLIFICATION,
        max_epsilon=5.0,
    )
    with dp.Ledger.open(tmp_path / "l", **{**TERMS, "unit": unit}) as book:
        for made in (lambda: PrivateTraining(TrainingPlan(**FACTS), book), lambda: LedgerAccountant(book, config)):
            with pytest.raises(InvalidParameterError, match="persons who come or go"):
                made()


def test_a_trusted_server_asks_nobody_where_there_are_more_clients_than_planned(ledger: dp.Ledger) -> None:
    plan = TrainingPlan(**{**FACTS, "clients": NUMBER - 1}, trusted=True)
    assert trained(plan, ledger, Loopback(app_of(plan), NUMBER))[1][0] == 1


def test_two_clients_with_one_key_are_one(ledger: dp.Ledger) -> None:
    plan, app = TrainingPlan(**FACTS, dropouts=1), clients.ClientApp()
    twins = [WHO[0], *WHO[:-1]]

    @app.train(mods=[PrivateClient(plan, lambda context: twins[context.node_config["partition-id"]], None)])
    def train(message: Any, _: Any) -> Any:
        held = message.content["arrays"].to_numpy_ndarrays()
        made = {"arrays": flwr.ArrayRecord([each + 1 for each in held])}
        return flwr.Message(flwr.RecordDict(made), reply_to=message)

    assert trained(plan, ledger, Loopback(app, NUMBER))[1][0] == pytest.approx(2, abs=0.02)


@pytest.mark.parametrize("body", ["another's", b"", bytes(64), bytes(128), b"\xff" * 128])
def test_a_client_that_takes_the_key_of_another_is_left_out_and_the_other_is_not(ledger: dp.Ledger, body: Any) -> None:
    class Lying(Loopback):  # type: ignore[misc]  # it is final, but for this
        def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> Any:
            for reply in super().send_and_receive(messages, timeout=timeout):
                said = reply.content["defocus"] if not reply.has_error() else {"body": b""}
                if reply.metadata.src_node_id == 1 and len(said["body"]) == 128:
                    said["body"] = WHO[7].public + said["body"][32:] if isinstance(body, str) else body
                yield reply

    moved = trained(plan := TrainingPlan(**FACTS, dropouts=1), ledger, Lying(app_of(plan), NUMBER))[1][0] - 1
    assert moved == pytest.approx(np.mean([min(i, 10 / 5**0.5) for i in range(2, NUMBER + 1)]), abs=0.02)


def test_flowers_own_strategy_charges_our_ledger_before_each_round(tmp_path: Path) -> None:
    config = serverapp.PrivacyConfig(
        target_delta=1e-5,
        population_size=NUMBER,
        neighboring_relation=serverapp.NeighboringRelation.ADD_OR_REMOVE_ONE,
        sampling_method=serverapp.SamplingMethod.NO_AMPLIFICATION,
        max_epsilon=5.0,
    )
    app = clients.ClientApp()
    charged: list[int] = []
    strategies = serverapp.strategy
    with dp.Ledger.open(
        tmp_path / "l", unit=dp.user("client"), budget=dp.Budget(10, 1e-5), dataset="clients"
    ) as ledger:
        accountant = LedgerAccountant(ledger, config)

        @app.train(mods=[clients.mod.fixedclipping_mod])
        def train(message: Any, context: Any) -> Any:  # noqa: ARG001
            charged.append(sum(entry.kind == "charge" for entry in ledger.entries()))
            arrays = flwr.ArrayRecord([each + 1 for each in message.content["arrays"].to_numpy_ndarrays()])
            made = {"arrays": arrays, "metrics": flwr.MetricRecord({"num-examples": 1})}
            return flwr.Message(flwr.RecordDict(made), reply_to=message)

        inner = strategies.FedAvg(fraction_evaluate=0.0, min_available_nodes=NUMBER, min_train_nodes=NUMBER)
        private = strategies.DifferentialPrivacyClientSideFixedClipping(inner, 2.0, 1.0, NUMBER, accountant=accountant)
        with pytest.raises(Exception, match="max_epsilon"):
            private.start(Loopback(app, NUMBER), flwr.ArrayRecord([np.zeros(3)]), num_rounds=9)
        rounds = accountant.num_releases
        assert charged == [i // NUMBER + 1 for i in range(NUMBER * rounds)]
        assert rounds == sum(entry.kind == "charge" for entry in ledger.entries()) > 2
        assert accountant.get_epsilon(1e-5) <= 5 < account((rounds + 1) * Gaussian(2.0)).epsilon(1e-5)
        assert private.privacy_spent().epsilon == accountant.get_epsilon(1e-5)
        assert accountant.get_delta(accountant.get_epsilon(1e-5)) <= 1.01e-5
        with pytest.raises(InvalidParameterError, match="is its ledger"):
            accountant.load_state_dict(accountant.state_dict())


class Lying:
    """A server that changes what it says, or says it again."""

    def __init__(self, app: Any, change: Any) -> None:
        self.inner, self.change = Loopback(app, NUMBER), change
        self.get_node_ids = self.inner.get_node_ids

    def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> Any:
        said = list(messages)
        for message in said:
            self.change(message.content["defocus"])
        return self.inner.send_and_receive(said, timeout=timeout)


def test_a_round_is_not_begun_under_the_name_of_an_earlier_one(ledger: dp.Ledger) -> None:
    """Else what was signed then, of other survivors, would be heard now, and some would open what others do not."""
    plan, seen, first = TrainingPlan(**FACTS), list[Any](), dict[int, Any]()

    class Again(Loopback):  # type: ignore[misc]  # it is final, but for this
        def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> Any:
            for reply in super().send_and_receive(messages, timeout=timeout):
                hello = not reply.has_error() and len(reply.content["defocus"]["body"]) == 128
                yield first.setdefault(reply.metadata.src_node_id, reply) if hello else reply

    trained(plan, ledger, Again(app_of(plan, seen=seen), NUMBER), 2)
    assert len(seen) == NUMBER


def test_a_beginning_that_is_refused_moves_no_client_into_another_sum(
    ledger: dp.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a server would show survivors with signatures of earlier rounds: to some these, to others those."""

    class InOrder:
        words = staticmethod(np.arange)  # a server gives each client the same number in all rounds, if it likes

    monkeypatch.setattr("defocus.federated.flower.system", InOrder)
    plan, told, heard = TrainingPlan(**FACTS), list[Any](), list[bool]()

    class Switching(Loopback):  # type: ignore[misc]  # it is final, but for this
        def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> Any:
            for message in messages:
                said, node = dict(message.content["defocus"]), message.metadata.dst_node_id
                if node == 1 and said["kind"] == Kind.KEYS:
                    told.append(said)
                if node == 1 and len(told) == 2 and said["kind"] == Kind.CONFIRMED:
                    earlier = {**said, "body": said["body"][:1] + sessions[0] + said["body"][33:]}
                    for lie in (told[0], earlier):
                        content = flwr.RecordDict({"defocus": flwr.ConfigRecord(lie)})
                        again = flwr.Message(content, dst_node_id=1, message_type="train")
                        heard.extend(not reply.has_error() for reply in super().send_and_receive([again]))
                if node == 1 and said["kind"] == Kind.SHARES:
                    sessions.append(said["body"][1:33])
                yield from super().send_and_receive([message], timeout=timeout)

    sessions = list[bytes]()
    trained(plan, ledger, Switching(app_of(plan), NUMBER), 2)
    assert (len(told), len(sessions)) == (2, 2)
    assert heard == [False, False]


@pytest.mark.parametrize("name", ["nonces", "parties", "length"])
def test_a_beginning_that_names_others_or_another_length_is_refused(ledger: dp.Ledger, name: str) -> None:
    plan, seen = TrainingPlan(**FACTS, dropouts=1), list[Any]()

    def fewer(said: Any) -> None:
        if said["kind"] == Kind.KEYS:
            said[name] = said[name] + 1 if name == "length" else said[name][:-32]

    assert trained(plan, ledger, Lying(app_of(plan, seen=seen), fewer))[1] == [1]
    assert seen == []


def test_as_a_mod_of_the_whole_app_nothing_else_is_answered(ledger: dp.Ledger) -> None:
    plan = TrainingPlan(**FACTS)
    asked: list[str] = []
    app = clients.ClientApp(mods=[PrivateClient(plan, lambda at: WHO[at.node_config["partition-id"]], None)])

    @app.train()
    def train(message: Any, context: Any) -> Any:  # noqa: ARG001
        asked.append("train")
        return flwr.Message(flwr.RecordDict({"arrays": message.content["arrays"]}), reply_to=message)

    @app.evaluate()
    def evaluate(message: Any, context: Any) -> Any:  # noqa: ARG001
        asked.append("evaluate")
        return flwr.Message(flwr.RecordDict({"metrics": flwr.MetricRecord({"loss": 17.0})}), reply_to=message)

    grid, empty = Loopback(app, NUMBER), flwr.ConfigRecord({"plan": plan.digest, "kind": int(Kind.MASKED)})
    for content in (flwr.RecordDict(), flwr.RecordDict({"defocus": empty})):
        message = flwr.Message(content, dst_node_id=1, message_type="evaluate")
        assert [reply.has_error() for reply in grid.send_and_receive([message])] == [True]
    assert asked == []
    trained(plan, ledger, grid)
    assert asked == ["train"] * NUMBER


def test_a_client_with_a_ledger_of_its_own_stops_a_second_series(ledger: dp.Ledger, tmp_path: Path) -> None:
    plan, seen = TrainingPlan(**(FACTS | {"noise_multiplier": 4.0, "clients": 1}), trusted=True), list[Any]()
    terms = {**TERMS, "budget": dp.Budget(1.2 * account(plan.event(5)).epsilon(1e-5), 1e-5)}
    with dp.Ledger.open(tmp_path / "own", **terms) as own:
        app = clients.ClientApp(mods=[PrivateClient(plan, WHO[0], None, own)])

        @app.train()
        def train(message: Any, context: Any) -> Any:  # noqa: ARG001
            seen.append(sum(entry.kind == "charge" for entry in own.entries()))
            return flwr.Message(flwr.RecordDict({"arrays": message.content["arrays"]}), reply_to=message)

        for _ in range(2):  # the second time by a server that begins anew
            trained(plan, ledger, Loopback(app, 1), 2)
    assert seen == [1, 1]


def test_a_budget_that_is_just_enough_is_enough_and_the_record_says_which_noise_counts(tmp_path: Path) -> None:
    plan = TrainingPlan(**(FACTS | {"noise_multiplier": 4.0}), dropouts=1)
    budget = dp.Budget(1.001 * account(plan.event(5)).epsilon(1e-5), 1e-5)
    with dp.Ledger.open(tmp_path / "tight", **{**TERMS, "budget": budget}) as tight:
        trained(plan, tight, Loopback(app_of(plan), NUMBER), 2)
        said = [entry for entry in tight.entries() if entry.kind == "charge"]
        assert len(said) == 1
        assert "6 of 8 shares are counted on" in str(said[0])
        with pytest.raises(BudgetExceededError):
            trained(plan, tight, Loopback(app_of(plan), NUMBER), 2)


def test_another_model_than_was_paid_for_is_refused(ledger: dp.Ledger) -> None:
    plan = TrainingPlan(**FACTS)
    strategy, grid = PrivateTraining(plan, ledger), Loopback(app_of(plan), NUMBER)
    strategy.configure_train(1, flwr.ArrayRecord([np.zeros(3)]), flwr.ConfigRecord(), grid)
    with pytest.raises(InvalidParameterError, match="would bring 4 numbers, and 3 were paid for"):
        strategy.configure_train(2, flwr.ArrayRecord([np.zeros(4)]), flwr.ConfigRecord(), grid)


def test_the_example_finds_about_the_mean_and_says_what_it_cost(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "flower_app.py"))["main"]()
    mean, spent = capsys.readouterr().out.splitlines()[-2:]
    found = [float(each) for each in mean.partition("[")[2].partition("]")[0].split()]
    assert np.abs(np.array(found) - 2).max() < 4  # six standard deviations of the last rounds
    assert "of epsilon" in spent
