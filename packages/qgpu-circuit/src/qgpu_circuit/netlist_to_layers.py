"""Assigns ops to layers, then nets to dimensions of the residual stream.

Times alternate: time 2l is the mixer of layer l (heads), 2l + 1 its MLP (neurons). An op reads what
earlier times wrote. Scheduling runs backwards from the output, each op as late as its readers and
the budgets allow, so values live briefly; ops that shrink the set of live values are then moved
forward as far as they can.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from qgpu_circuit.layers import CircuitError, CircuitPlan, LayerPlan
from qgpu_circuit.model_shape import ModelShape
from qgpu_circuit.netlist import ONE, NetId, Netlist, Op, Urgency

CLEARING_SHARE = 0.04
"""Part of a layer's neurons that scheduling leaves for clearing what heads read last. What
neurons read last is counted with them."""

MAX_LAYERS = 128


class Schedule:
    """Times of all ops of a netlist."""

    def __init__(self, netlist: Netlist, shape: ModelShape) -> None:
        self.netlist, self.shape = netlist, shape
        self.ops = netlist.ops
        self.inputs = [op.inputs() for op in self.ops]
        self.outputs = [op.outputs() for op in self.ops]
        self.writers: dict[NetId, list[int]] = defaultdict(list)
        self.readers: dict[NetId, list[int]] = defaultdict(list)
        for i in range(len(self.ops)):
            for net in self.inputs[i]:
                self.readers[net].append(i)
            for net in self.outputs[i]:
                self.writers[net].append(i)
        self.neuron_budget = int(shape.intermediate_size * (1 - CLEARING_SHARE))
        self.cost = [0] * len(self.ops)
        self.time = self._place_backwards()
        self.layers = 1 + max(self.time) // 2
        self.used: dict[int, int] = defaultdict(int)
        for i, t in enumerate(self.time):
            self.used[t] += self.cost[i]
        early = self._with_ancestors(Urgency.EARLY)
        for i, op in enumerate(self.ops):
            if i in early:
                self._advance(i)
            elif op.urgency is Urgency.SOON:
                self._advance(i, after=self._last_reader(_stored(op), but=i))
        for _ in range(3):
            self._advance_shrinking_ops()

    def _heights(self) -> list[int]:
        """Per op, the earliest time at which its inputs allow it (budgets aside)."""
        ready: dict[NetId, int] = {}
        heights = []
        for i, op in enumerate(self.ops):
            after = max((ready.get(net, -1) for net in self.inputs[i]), default=-1)
            height = _next_time(op, after)
            heights.append(height)
            for net in self.outputs[i]:
                ready[net] = max(ready.get(net, -1), height)
        return heights

    def _place_backwards(self) -> list[int]:
        heights = self._heights()
        last = [op.urgency is Urgency.LAST for op in self.ops]
        waiting = [
            len({r for net in self.outputs[i] for r in self.readers[net]})
            for i in range(len(self.ops))
        ]
        free = [i for i, count in enumerate(waiting) if count == 0]
        back: dict[int, int] = {}
        read: set[NetId] = set()
        step = 0
        while len(back) < len(self.ops):
            if step > 2 * MAX_LAYERS:
                raise CircuitError(f"the circuit needs more than {MAX_LAYERS} layers")
            heads = step % 2 == 1
            budget = self.shape.heads if heads else self.neuron_budget
            placed: list[int] = []
            for i in sorted(free, key=lambda i: (not last[i], -heights[i])):
                if (self.ops[i].head is not None) != heads:
                    continue
                ended = self.inputs[i] - read
                cost = 1 if heads else len(self.ops[i].neurons) + len(ended)
                if cost > self.neuron_budget and not heads:
                    raise CircuitError(
                        f"{self.ops[i].name} needs {cost} neurons in one layer; "
                        f"the model has {self.shape.intermediate_size}"
                    )
                if cost <= budget:
                    budget -= cost
                    placed.append(i)
                    read |= ended
                    self.cost[i] = cost
            for i in placed:
                back[i] = step
            taken = set(placed)
            free = [i for i in free if i not in taken]
            for i in placed:
                for writer in {w for net in self.inputs[i] for w in self.writers[net]}:
                    waiting[writer] -= 1
                    if waiting[writer] == 0:
                        free.append(writer)
            step += 1
        end = 2 * ((max(back.values()) // 2) + 1) - 1
        return [end - back[i] for i in range(len(self.ops))]

    def ready(self, net: NetId) -> int:
        """The time after which a net is complete."""
        return max((self.time[w] for w in self.writers[net]), default=-1)

    def _advance_shrinking_ops(self) -> None:
        for i in sorted(range(len(self.ops)), key=lambda i: self.time[i]):
            if self.ops[i].urgency is Urgency.LAST:
                continue
            now = self.time[i]
            ended = [
                net
                for net in self.inputs[i]
                if all(self.time[r] < now for r in self.readers[net] if r != i)
            ]
            begins = sum(
                min(self.time[w] for w in self.writers[net]) == now for net in self.outputs[i]
            )
            if len(ended) > begins:
                self._advance(i, after=self._last_reader(ended, but=i))

    def _with_ancestors(self, urgency: Urgency) -> set[int]:
        """Ops of an urgency and everything they depend on."""
        found: set[int] = set()
        stack = [i for i, op in enumerate(self.ops) if op.urgency is urgency]
        while stack:
            i = stack.pop()
            if i not in found:
                found.add(i)
                stack += [w for net in self.inputs[i] for w in self.writers[net]]
        return found

    def _last_reader(self, nets: Iterable[NetId], but: int) -> int:
        """The last time at which an op other than `but` reads one of the nets."""
        return max(
            (self.time[r] for net in nets for r in self.readers[net] if r != but), default=-1
        )

    def _advance(self, i: int, after: int = -1) -> None:
        """Moves an op to the first time with room for it after its inputs (and `after`)."""
        cost = self.cost[i]
        budget = self.shape.heads if self.ops[i].head else self.neuron_budget
        ready = max(map(self.ready, self.inputs[i]), default=-1)
        earliest = _next_time(self.ops[i], max(ready, after))
        for t in range(earliest, self.time[i], 2):
            if self.used[t] + cost <= budget:
                self.used[self.time[i]] -= cost
                self.used[t] += cost
                self.time[i] = t
                return


def _stored(op: Op) -> set[NetId]:
    """Nets that a head stores."""
    values = op.head.values if op.head is not None else ()
    return {net for value in values for net in value.terms} - {ONE}


def _next_time(op: Op, after: int) -> int:
    """The first time past `after` at which an op of this kind can stand."""
    parity = 0 if op.head is not None else 1
    t = after + 1
    return t if t % 2 == parity else t + 1


def netlist_to_layers(netlist: Netlist, shape: ModelShape) -> CircuitPlan:
    """Plans all layers.

    Raises:
        CircuitError: a layer needs more neurons or dimensions than the shape has.
    """
    schedule = Schedule(netlist, shape)
    layers = [LayerPlan() for _ in range(schedule.layers)]
    for i, op in enumerate(netlist.ops):
        layer = layers[schedule.time[i] // 2]
        if op.head is not None:
            layer.heads.append(op.head)
        else:
            layer.neurons += op.neurons
    return _allocate(schedule, layers)


def _allocate(schedule: Schedule, layers: list[LayerPlan]) -> CircuitPlan:
    """Gives every net a dimension from its first writer to its last reader."""
    netlist, shape = schedule.netlist, schedule.shape
    dimension = _fixed_dimensions(netlist, shape)
    code = {dimension[net] for net in netlist.code}
    births: dict[int, list[NetId]] = defaultdict(list)
    deaths: dict[int, list[NetId]] = defaultdict(list)
    for index in range(1, len(netlist.names)):
        net = NetId(index)
        writers = schedule.writers[net]
        if not writers and net not in netlist.inputs:
            continue
        births[min((schedule.time[w] for w in writers), default=-1)].append(net)
        if net not in netlist.outputs:
            last = max((schedule.time[r] for r in schedule.readers[net]), default=-1)
            deaths[max(last, schedule.ready(net))].append(net)
    taken = {*dimension.values(), *shape.residual.as_dict().values()}
    free = [d for d in reversed(range(shape.hidden_size)) if d not in taken]
    beyond = iter(range(shape.hidden_size, 2**31))
    used = len(shape.residual.as_dict()) - 1
    dead: list[NetId] = []
    live, peak = [], (0, 0)
    for t in range(-1, 2 * len(layers)):
        mlp = t > 0 and t % 2 == 1
        dead += deaths[t - 1] + (deaths.pop(t, []) if mlp else [])
        if mlp:
            layer = layers[t // 2]
            room = shape.intermediate_size - len(layer.neurons)
            cleared, dead = dead[:room], dead[room:]
            layer.cleared = cleared
            free += [dimension[net] for net in cleared if dimension[net] not in code]
            used -= len(cleared)
        used += len(births[t])
        peak = max(peak, (used, t))
        for net in births[t]:
            if net not in dimension:
                dimension[net] = free.pop() if free else next(beyond)
            elif net in netlist.outputs and any(dimension[n] == dimension[net] for n in dead):
                raise CircuitError(f"{netlist.names[net]} is written before its place is free")
        if mlp:
            live.append(used)
    needed, at = peak
    if needed > shape.hidden_size:
        raise CircuitError(
            f"the circuit needs {needed} dimensions of the residual stream in layer {at // 2}; "
            f"there are {shape.hidden_size}"
        )
    if len(layers[-1].neurons) + len(layers[-1].cleared) >= shape.intermediate_size:
        raise CircuitError("no neuron of the last layer is left to set the marks")
    return CircuitPlan(layers, dimension, live)


def _fixed_dimensions(netlist: Netlist, shape: ModelShape) -> dict[NetId, int]:
    """Dimensions of the constant, of what the embedding provides, and of the outputs."""
    residual = shape.residual
    others = [net for net in netlist.inputs if net not in netlist.code]
    dimension = {ONE: residual.one}
    for place, net in enumerate([*netlist.code, *others], start=residual.code):
        dimension[net] = place
    for place, net in enumerate(netlist.outputs, start=residual.code):
        dimension[net] = place
    if max(dimension.values()) >= shape.hidden_size:
        raise CircuitError(
            f"tokens need {max(dimension.values()) + 1 - shape.base_hidden} dimensions behind the "
            f"base's; there are {shape.hidden_size - shape.base_hidden}"
        )
    return dimension
