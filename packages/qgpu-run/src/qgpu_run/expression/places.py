"""Where the values of a graph lie: parts of an array that is put together lie in that array."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu_run.expression.graph import Call, Gathered, Graph, Node, operands


@dataclass(frozen=True)
class Place:
    """Elements of the array of a node, which may be another node's."""

    owner: Node
    first: int


@dataclass(frozen=True)
class Places:
    """The place of every node, and after which node an array is not needed any more.

    Attributes:
        of: place of each node.
        done: for the index of a node, the owners that no later one reads.
    """

    of: dict[Node, Place]
    done: dict[int, list[Node]]


def find_places(graph: Graph) -> Places:
    """The places of all nodes."""
    of: dict[Node, Place] = {}
    last: dict[Node, int] = {}
    for node in reversed(graph.nodes):
        place = of.setdefault(node, Place(node, 0))
        if isinstance(node, Gathered):
            first = place.first
            for part in node.parts:
                of[part] = Place(place.owner, first)
                first += part.type.size
    for index, node in enumerate(graph.nodes):
        last[of[node].owner] = index
        if isinstance(node, Call):
            for operand in operands(node):
                last[of[operand].owner] = index
    last[of[graph.root].owner] = len(graph.nodes)
    done: dict[int, list[Node]] = {}
    for owner, index in last.items():
        done.setdefault(index, []).append(owner)
    return Places(of, done)
