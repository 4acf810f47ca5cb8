"""Turns planned layers into the tensors of Qwen3.5 decoder layers."""

from __future__ import annotations

from collections.abc import Iterator

from qgpu_isa import Token, TokenClass

from qgpu_circuit.layers import CircuitPlan, LayerPlan
from qgpu_circuit.model_shape import CONV_KERNEL, ModelShape
from qgpu_circuit.netlist import ONE, Head, Lin, NetId, lin
from qgpu_circuit.numerics import (
    DECAY_LOG,
    GATE_SCALE,
    GATHER_VALUE,
    KEY_SCALE,
    READ_SCALE,
    VALUE_STEP,
    VALUE_ZERO,
    WRITE_LOGIT,
    Anchor,
    bf16,
    find_anchor,
    gather_gate,
    is_bf16,
)
from qgpu_circuit.signals import Machine
from qgpu_circuit.sparse import SparseTensor

ANCHOR_DIMENSION = 0
SECOND_ONE_DIMENSION = 2
"""A second constant 1, for constants of more bits than one bf16 weight holds."""

ABSENT_GAIN = -1.0
"""Stored norm weight of dimensions that a circuit layer must not see (gain 0)."""


class LayerEmitter:
    """Writes one layer's tensors, named as in transformers' Qwen3_5DecoderLayer."""

    def __init__(self, plan: CircuitPlan, shape: ModelShape, anchor: Anchor) -> None:
        self.plan, self.shape, self.anchor = plan, shape, anchor

    def emit(self, layer: LayerPlan) -> dict[str, SparseTensor]:
        """All tensors of a layer; conv1d is [channels, kernel]."""
        s = self.shape
        keys, values = s.heads * s.rows, s.heads * s.columns
        d, inner = s.hidden_size, s.intermediate_size
        tensors = {
            "input_layernorm.weight": SparseTensor((d,), ABSENT_GAIN),
            "post_attention_layernorm.weight": SparseTensor((d,), ABSENT_GAIN),
            "linear_attn.in_proj_qkv.weight": SparseTensor((2 * keys + values, d)),
            "linear_attn.in_proj_z.weight": SparseTensor((values, d)),
            "linear_attn.in_proj_b.weight": SparseTensor((s.heads, d)),
            "linear_attn.in_proj_a.weight": SparseTensor((s.heads, d)),
            "linear_attn.conv1d.weight": SparseTensor((2 * keys + values, CONV_KERNEL)),
            "linear_attn.dt_bias": SparseTensor((s.heads,)),
            "linear_attn.A_log": SparseTensor((s.heads,), DECAY_LOG),
            "linear_attn.norm.weight": SparseTensor((s.columns,), 1.0),
            "linear_attn.out_proj.weight": SparseTensor((d, values)),
            "mlp.gate_proj.weight": SparseTensor((inner, d)),
            "mlp.up_proj.weight": SparseTensor((inner, d)),
            "mlp.down_proj.weight": SparseTensor((d, inner)),
        }
        for name in ("input_layernorm.weight", "post_attention_layernorm.weight"):
            for i in range(s.base_hidden, d):
                if i != s.base_hidden + ANCHOR_DIMENSION:
                    tensors[name].set((i,), self.anchor.weight)
        for index, head in enumerate(layer.heads):
            self._head(tensors, index, head)
        self._mlp(tensors, layer)
        return tensors

    def _row(self, tensor: SparseTensor, row: int, expression: Lin) -> None:
        for net, weight in expression.terms.items():
            if net == ONE and not is_bf16(weight):
                rest = weight - bf16(weight)
                tensor.set((row, self.shape.base_hidden + SECOND_ONE_DIMENSION), rest)
                weight = bf16(weight)
            tensor.set((row, self.at(net)), weight)

    def at(self, net: NetId) -> int:
        """The hidden dimension of a net."""
        return self.shape.base_hidden + self.plan.dimension[net]

    def _head(self, tensors: dict[str, SparseTensor], index: int, head: Head) -> None:
        s = self.shape
        keys = s.heads * s.rows
        qkv = tensors["linear_attn.in_proj_qkv.weight"]
        conv = tensors["linear_attn.conv1d.weight"]
        queries = (
            [Lin.of(KEY_SCALE)] * head.gather
            if head.gather
            else list(_decoder(head.read_address, s.rows))
        )
        for base, rows in ((0, queries), (keys, list(_decoder(head.write_address, s.rows)))):
            for r, expression in enumerate(rows):
                channel = base + index * s.rows + r
                self._row(qkv, channel, expression)
                conv.set((channel, CONV_KERNEL - 1), 1.0)
        gate, scale = READ_SCALE, READ_SCALE
        if head.gather:
            gate, scale = gather_gate(head.gather, s.columns)
        for c in range(s.columns):
            value = _value(head, c)
            channel = 2 * keys + index * s.columns + c
            if value.terms:
                self._row(qkv, channel, value)
                tap = head.taps[c] if c < len(head.taps) else 0
                conv.set((channel, CONV_KERNEL - 1 - tap), 1.0)
            net = head.outs[c] if c < len(head.outs) else None
            if net is not None:
                column = index * s.columns + c
                self._row(tensors["linear_attn.in_proj_z.weight"], column, head.read_enable * gate)
                tensors["linear_attn.out_proj.weight"].set((self.at(net), column), 1 / scale)
        beta = head.write_enable * (2 * WRITE_LOGIT) - WRITE_LOGIT
        self._row(tensors["linear_attn.in_proj_b.weight"], index, beta)

    def _mlp(self, tensors: dict[str, SparseTensor], layer: LayerPlan) -> None:
        gate, up, down = (tensors[f"mlp.{name}_proj.weight"] for name in ("gate", "up", "down"))
        for row, neuron in enumerate(layer.neurons):
            self._row(gate, row, neuron.gate * GATE_SCALE)
            self._row(up, row, neuron.up * (1 / GATE_SCALE))
            for net, weight in neuron.outs:
                down.set((self.at(net), row), weight)
        for row, net in enumerate(layer.cleared, start=len(layer.neurons)):
            self._row(gate, row, Lin.of(GATE_SCALE))
            self._row(up, row, lin(net) * (1 / GATE_SCALE))
            down.set((self.at(net), row), -1.0)


def _decoder(address: tuple[Lin, ...], rows: int) -> Iterator[Lin]:
    """Per row, an expression that is KEY_SCALE where the address is that row's, else below 0."""
    bits = len(address)
    for r in range(min(rows, 1 << bits)):
        expression = Lin.of(-KEY_SCALE * (bits - 1)) if bits else Lin.of(KEY_SCALE)
        for i, bit in enumerate(address):
            sign = KEY_SCALE if r >> i & 1 else -KEY_SCALE
            expression = expression + bit * (2 * sign) - sign
        yield expression


def _value(head: Head, column: int) -> Lin:
    if column >= len(head.values):
        return Lin() if head.gather else Lin.of(VALUE_ZERO + VALUE_STEP)
    if head.gather:
        return head.values[column] * GATHER_VALUE
    return head.values[column] * VALUE_STEP + VALUE_ZERO


def emit_embedding(m: Machine, plan: CircuitPlan, anchor: Anchor) -> SparseTensor:
    """Rows of the GPU tokens in the embedding: anchor, constant, and the input nets."""
    base = m.shape.base_hidden
    tensor = SparseTensor((m.vocab.size, m.shape.hidden_size))
    inputs = [(base + plan.dimension[net], m.input_values[net]) for net in m.netlist.inputs]
    for token_id, token in tokens(m):
        tensor.set((token_id, base + ANCHOR_DIMENSION), anchor.value)
        tensor.set((token_id, base + plan.dimension[ONE]), 1.0)
        tensor.set((token_id, base + SECOND_ONE_DIMENSION), 1.0)
        for dimension, value in inputs:
            x = value(token)
            if x:
                tensor.set((token_id, dimension), x)
    return tensor


def emit_head(m: Machine, plan: CircuitPlan) -> SparseTensor:
    """Rows of the GPU tokens in the output head: their codes as signs."""
    base, low = m.shape.base_hidden, m.vocab.payload_code_bits
    tensor = SparseTensor((m.vocab.size, m.shape.hidden_size))
    places = [base + plan.dimension[net] for net in m.netlist.outputs]
    for token_id, token in tokens(m):
        code = m.vocab.payload(token) | int(token.cls) << low
        for i, place in enumerate(places):
            tensor.set((token_id, place), 1.0 if code >> i & 1 else -1.0)
    return tensor


def emit_final_norm(m: Machine, plan: CircuitPlan, anchor: Anchor) -> SparseTensor:
    """Weights of the model's last norm on circuit dimensions: only the code passes."""
    tensor = SparseTensor((m.shape.hidden_size,), ABSENT_GAIN)
    for net in m.netlist.outputs:
        tensor.set((m.shape.base_hidden + plan.dimension[net],), anchor.weight)
    return tensor


def tokens(m: Machine) -> Iterator[tuple[int, Token]]:
    """All GPU tokens with their ids."""
    for cls in TokenClass:
        for token_id in m.vocab.range_of(cls):
            yield token_id, m.vocab.decode(token_id)


def emit_tensors(m: Machine, plan: CircuitPlan) -> Iterator[tuple[str, SparseTensor]]:
    """All tensors of the circuit, one at a time, by name."""
    anchor = find_anchor(m.shape.hidden_size)
    emitter = LayerEmitter(plan, m.shape, anchor)
    for i, layer in enumerate(plan.layers):
        for name, tensor in emitter.emit(layer).items():
            yield f"layers.{i}.{name}", tensor
    yield "embed_tokens.weight", emit_embedding(m, plan, anchor)
    yield "lm_head.weight", emit_head(m, plan)
    yield "norm.weight", emit_final_norm(m, plan, anchor)
