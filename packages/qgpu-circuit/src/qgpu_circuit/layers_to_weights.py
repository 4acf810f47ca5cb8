"""Turns planned layers into the tensors of Qwen3.5 decoder layers."""

from __future__ import annotations

from collections.abc import Iterator

from qgpu_isa import Token

from qgpu_circuit.layers import CircuitPlan, LayerPlan
from qgpu_circuit.model_shape import CONV_KERNEL, ModelShape
from qgpu_circuit.netlist import ONE, Head, Lin, lin
from qgpu_circuit.numerics import (
    DECAY_LOG,
    GATE_SCALE,
    GATHER_VALUE,
    HEAD_GAIN,
    KEY_SCALE,
    MUTE_GAIN,
    MUTE_WEIGHT,
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

ABSENT_GAIN = -1.0
"""Stored norm weight of dimensions that a circuit layer must not see (gain 0)."""


class LayerEmitter:
    """Writes one layer's tensors, named as in transformers' Qwen3_5DecoderLayer."""

    def __init__(self, plan: CircuitPlan, shape: ModelShape, anchor: Anchor) -> None:
        self.plan, self.shape, self.anchor = plan, shape, anchor
        self.residual = shape.residual

    def emit(self, layer: LayerPlan) -> dict[str, SparseTensor]:
        """All tensors of a layer; conv1d is [channels, kernel]."""
        s = self.shape
        keys, values = s.heads * s.rows, s.value_heads * s.columns
        d, inner = s.hidden_size, s.intermediate_size
        tensors = {
            "input_layernorm.weight": SparseTensor((d,), ABSENT_GAIN),
            "post_attention_layernorm.weight": SparseTensor((d,), ABSENT_GAIN),
            "linear_attn.in_proj_qkv.weight": SparseTensor((2 * keys + values, d)),
            "linear_attn.in_proj_z.weight": SparseTensor((values, d)),
            "linear_attn.in_proj_b.weight": SparseTensor((s.value_heads, d)),
            "linear_attn.in_proj_a.weight": SparseTensor((s.value_heads, d)),
            "linear_attn.conv1d.weight": SparseTensor((2 * keys + values, CONV_KERNEL)),
            "linear_attn.dt_bias": SparseTensor((s.value_heads,)),
            "linear_attn.A_log": SparseTensor((s.value_heads,), DECAY_LOG),
            "linear_attn.norm.weight": SparseTensor((s.columns,), 1.0),
            "linear_attn.out_proj.weight": SparseTensor((d, values)),
            "mlp.gate_proj.weight": SparseTensor((inner, d)),
            "mlp.up_proj.weight": SparseTensor((inner, d)),
            "mlp.down_proj.weight": SparseTensor((d, inner)),
        }
        for name in ("input_layernorm.weight", "post_attention_layernorm.weight"):
            tensors[name].set((self.residual.text_gate,), MUTE_GAIN)
            hidden = {getattr(self.residual, n) for n in ("anchor", "text_head", "gpu_head")}
            for i in range(d):
                if i != self.residual.text_gate and i not in hidden:
                    tensors[name].set((i,), self.anchor.weight)
        for index, head in enumerate(layer.heads):
            self._head(tensors, index, head)
        for value_head in range(s.value_heads):
            mute = (value_head, self.residual.text_gate)
            tensors["linear_attn.in_proj_b.weight"].set(mute, MUTE_WEIGHT)
        self._mlp(tensors, layer)
        if layer is self.plan.layers[-1]:
            self._set_marks(tensors, len(layer.neurons) + len(layer.cleared))
        return tensors

    def _set_marks(self, tensors: dict[str, SparseTensor], row: int) -> None:
        """One neuron of the last layer changes both head marks of a GPU token (see ResidualMap)."""
        self._gate(tensors, row, Lin.of(GATE_SCALE))
        self._row(tensors["mlp.up_proj.weight"], row, Lin.of(1 / GATE_SCALE))
        for mark in (self.residual.text_head, self.residual.gpu_head):
            tensors["mlp.down_proj.weight"].set((mark, row), -1.0)

    def _gate(self, tensors: dict[str, SparseTensor], row: int, gate: Lin) -> None:
        self._row(tensors["mlp.gate_proj.weight"], row, gate)
        tensors["mlp.gate_proj.weight"].set((row, self.residual.text_gate), MUTE_WEIGHT)

    def _row(self, tensor: SparseTensor, row: int, expression: Lin) -> None:
        for net, weight in expression.terms.items():
            if net == ONE and not is_bf16(weight):
                rest = weight - bf16(weight)
                tensor.set((row, self.residual.second_one), rest)
                weight = bf16(weight)
            tensor.set((row, self.plan.dimension[net]), weight)

    def _head(self, tensors: dict[str, SparseTensor], index: int, head: Head) -> None:
        s = self.shape
        keys = s.heads * s.rows
        value_head = index * s.values_per_key
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
            channel = 2 * keys + value_head * s.columns + c
            if value.terms:
                self._row(qkv, channel, value)
                tap = head.taps[c] if c < len(head.taps) else 0
                conv.set((channel, CONV_KERNEL - 1 - tap), 1.0)
            net = head.outs[c] if c < len(head.outs) else None
            if net is not None:
                column = value_head * s.columns + c
                z = tensors["linear_attn.in_proj_z.weight"]
                self._row(z, column, head.read_enable * gate)
                z.set((column, self.residual.text_gate), MUTE_WEIGHT)
                place = (self.plan.dimension[net], column)
                tensors["linear_attn.out_proj.weight"].set(place, 1 / scale)
        beta = head.write_enable * (2 * WRITE_LOGIT) - WRITE_LOGIT
        self._row(tensors["linear_attn.in_proj_b.weight"], value_head, beta)

    def _mlp(self, tensors: dict[str, SparseTensor], layer: LayerPlan) -> None:
        up, down = (tensors[f"mlp.{name}_proj.weight"] for name in ("up", "down"))
        for row, neuron in enumerate(layer.neurons):
            self._gate(tensors, row, neuron.gate * GATE_SCALE)
            self._row(up, row, neuron.up * (1 / GATE_SCALE))
            for net, weight in neuron.outs:
                down.set((self.plan.dimension[net], row), weight)
        for row, net in enumerate(layer.cleared, start=len(layer.neurons)):
            self._gate(tensors, row, Lin.of(GATE_SCALE))
            self._row(up, row, lin(net) * (1 / GATE_SCALE))
            down.set((self.plan.dimension[net], row), -1.0)


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
    """Rows of the GPU tokens, of embedding and output head alike.

    As an embedding: anchor, constants, code, and the other inputs. As a head, only the code and
    `gpu_head` count: the final norm's gain on the other dimensions is 0.
    """
    residual = m.shape.residual
    tensor = SparseTensor((m.vocab.size, m.shape.hidden_size))
    inputs = [(plan.dimension[net], m.input_values[net]) for net in m.netlist.inputs]
    constants = {residual.anchor: anchor.value, residual.gpu_head: 1.0}
    constants |= dict.fromkeys((residual.one, residual.second_one), 1.0)
    for token_id, token in tokens(m):
        for dimension, x in constants.items():
            tensor.set((token_id, dimension), x)
        for dimension, value in inputs:
            x = value(token)
            if x:
                tensor.set((token_id, dimension), x)
    return tensor


def emit_final_norm(m: Machine, anchor: Anchor) -> SparseTensor:
    """Weights of the model's last norm: the code passes, and the marks of the two heads."""
    residual = m.shape.residual
    tensor = SparseTensor((m.shape.hidden_size,), ABSENT_GAIN)
    for i in range(m.vocab.code_bits):
        tensor.set((residual.code + i,), anchor.weight)
    for mark in (residual.text_head, residual.gpu_head):
        tensor.set((mark,), HEAD_GAIN)
    return tensor


def tokens(m: Machine) -> Iterator[tuple[int, Token]]:
    """All GPU tokens with their ids."""
    for cls in m.vocab.classes:
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
    yield "norm.weight", emit_final_norm(m, anchor)
