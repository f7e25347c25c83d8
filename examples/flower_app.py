"""A Flower app that two lines make private: ten clients find a mean together, and nobody sees any client's model.

Run it with ``python examples/flower_app.py`` where ``pip install 'defocus[federated]'`` put Flower. All clients run in
this process, by ``Loopback``; with Flower's SuperLink and SuperNodes the same app runs on ten machines.
"""

from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message, RecordDict
from flwr.clientapp import ClientApp

import defocus as dp
from defocus.federated import Identity
from defocus.federated.flower import Loopback, PrivateClient, PrivateTraining
from defocus.federated.training_plan import TrainingPlan

CLIENTS = 10
PLAN = TrainingPlan(clients=CLIENTS, rounds=8, clip=1.0, noise_multiplier=4, dropouts=1)
KEYS = [Identity.generate() for _ in range(CLIENTS)]  # each is made at its client, and stays there
MEMBERS = {key.public for key in KEYS}
ROWS = [np.random.default_rng(i).normal(2, 1, (500, 3)) for i in range(CLIENTS)]

app = ClientApp(mods=[PrivateClient(PLAN, lambda at: KEYS[at.node_config["partition-id"]], MEMBERS)])  # was ClientApp()


@app.train()
def train(message: Message, context: Any) -> Message:
    """Half of the way to the mean of a client's own rows."""
    held = message.content["arrays"].to_numpy_ndarrays()[0]
    moved = held + (ROWS[context.node_config["partition-id"]].mean(axis=0) - held) / 2
    return Message(RecordDict({"arrays": ArrayRecord([moved])}), reply_to=message)


def main() -> None:
    """Eight rounds."""
    people = {"unit": dp.user("client"), "budget": dp.Budget(4, 1e-5), "dataset": "clients"}
    with TemporaryDirectory() as home, dp.Ledger.open(f"{home}/clients.ledger", **people) as ledger:
        strategy = PrivateTraining(PLAN, ledger)  # was FedAvg()
        made = strategy.start(Loopback(app, CLIENTS), ArrayRecord([np.zeros(3)]), num_rounds=PLAN.rounds)
        print("mean:", made.arrays.to_numpy_ndarrays()[0].round(1), "of", np.mean(ROWS, axis=(0, 1)).round(1))
        print(ledger.words())


if __name__ == "__main__":
    main()
