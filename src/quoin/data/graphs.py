"""Graphs whose nodes have classes, of which a few are known: to learn from those and from who is joined to whom."""

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.data.dataset import Dataset
from quoin.data.prepared import PreparedData, TabularInfo
from quoin.data.scaling import StandardScaler
from quoin.data.seeds import keyed_generator
from quoin.display import shown
from quoin.errors import UserError

__all__ = ["LabeledGraph", "load_karate_club"]


@shown
@dataclass(frozen=True, eq=False)
class LabeledGraph:
    """Nodes 0 to v - 1, each of a class; every edge is listed in both its directions."""

    name: str
    edges: Int[Tensor, "2 edges"]  # sources above targets
    edge_weights: Float[Tensor, "edges"]
    labels: Int[Tensor, "nodes"]
    class_names: tuple[str, ...]
    seed_nodes: tuple[int, ...]  # a node of each class, in their order, that stands for it: the first to be labelled
    node_name: str = "node"
    label_name: str = "class"

    @property
    def num_nodes(self) -> int:
        return len(self.labels)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the content: a resumed run sees that its graph changed."""
        digest = hashlib.sha256(repr((self.class_names, tuple(self.edges.shape), self.num_nodes)).encode())
        for tensor in (self.edges, self.edge_weights, self.labels):
            digest.update(tensor.contiguous().numpy().data)
        return digest.hexdigest()

    def labeled_nodes(self, per_class: int, seed: int) -> Int[Tensor, "labeled"]:
        """So many nodes of each class, ascending: its leader, and others sampled by the seed."""
        smallest = int(self.labels.bincount().min())
        if not 1 <= per_class < smallest:
            raise UserError(
                f"expected 1 to {smallest - 1} labelled nodes of each class of {self.name}, got {per_class}; leave "
                "some unlabelled"
            )
        order = torch.randperm(self.num_nodes, generator=keyed_generator("labelled", seed))
        order = torch.cat([torch.tensor(self.seed_nodes), order[~torch.isin(order, torch.tensor(self.seed_nodes))]])
        chosen = [order[self.labels[order] == number][:per_class] for number in range(len(self.class_names))]
        return torch.cat(chosen).sort().values

    def prepared(
        self, labeled: Sequence[int] | Int[Tensor, "labeled"], device: torch.device | str = "cpu"
    ) -> PreparedData:
        """Rows for a supervised task: the number of a node and its class; `labeled` ones train and all others are the
        test.

        The numbers are names, not quantities, so their scale is the identity. There is no node to spare for validation.
        """
        numbers = torch.arange(self.num_nodes, dtype=torch.float32)[:, None]
        rows = Dataset(self.name, numbers, self.labels, (self.node_name,), self.class_names, (self.label_name,))
        data_info = TabularInfo(
            source=self.name,
            num_rows=self.num_nodes,
            feature_names=rows.feature_names,
            feature_shape=(1,),
            target_names=(self.label_name,),
            class_names=self.class_names,
            fingerprint=self.fingerprint,
        )
        known = torch.zeros(self.num_nodes, dtype=torch.bool)
        known[torch.as_tensor(labeled)] = True

        def take(chosen: Tensor) -> Dataset:
            taken = rows.take(chosen.nonzero()[:, 0])
            return dataclasses.replace(taken, features=taken.features.to(device), targets=taken.targets.to(device))

        nothing = torch.zeros_like(known)
        scale = StandardScaler(torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64))
        return PreparedData(data_info, take(known), take(nothing), take(~known), scale, None)


def load_karate_club() -> LabeledGraph:
    """Zachary's karate club: 34 members, 78 friendships, and the faction each went with when the club split.

    Node 0 is the instructor, Mr. Hi, and node 33 the officer: the heads of the two. An edge's weight counts in how many
    places its two members met outside the club.

    >>> club = load_karate_club()
    >>> club.num_nodes, club.edges.shape[1] // 2, club.labels.bincount().tolist()
    (34, 78, [17, 17])
    """
    import networkx  # slow to import, so only when needed

    graph = networkx.karate_club_graph()
    names = ("Mr. Hi", "Officer")
    labels = torch.tensor([names.index(graph.nodes[node]["club"]) for node in sorted(graph)])
    pairs = torch.tensor(sorted(graph.edges)).T
    weights = torch.tensor([float(graph.edges[edge].get("weight", 1)) for edge in sorted(graph.edges)])
    return LabeledGraph(
        "karate-club",
        torch.cat([pairs, pairs.flip(0)], dim=1),
        weights.repeat(2),
        labels,
        names,
        (0, 33),
        "member",
        "faction",
    )
