"""The map of parts over layers, and the picture in the documents."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from qgpu_circuit.cli import main
from qgpu_circuit.layer_map import PARTS, UnknownPartError, layer_map, part_of, ranges
from qgpu_circuit.layer_map_to_svg import layer_map_to_svg
from qgpu_circuit.layers import CircuitPlan
from qgpu_circuit.signals import Machine

PICTURE = Path(__file__).parents[3] / "docs" / "images" / "layer_map.svg"


def test_every_head_and_neuron_is_counted_in_its_layer(
    nano: Machine, nano_plan: CircuitPlan
) -> None:
    found = layer_map(nano, nano_plan)
    assert list(found.parts) == list(PARTS)
    assert all(part.layers for part in found.parts.values())
    for i, layer in enumerate(nano_plan.layers):
        assert found.heads(i) == len(layer.heads) <= found.head_budget
        assert found.neurons(i) == len(layer.neurons)
        assert found.neurons(i) + found.clearing[i] <= found.neuron_budget
    assert found.parts["output"].layers[-1] == found.layers - 1
    assert found.parts["fetch"].neurons == {}


@pytest.mark.parametrize(
    ("op", "part"),
    [
        ("A1/rom/A1/code", "fetch"),
        ("receive/dst[3]", "decode"),
        ("X/op/mullo", "decode"),
        ("MEM/b/register[2]", "registers"),
        ("MEM/bank[1]", "memory"),
        ("A1/lane0/adder/carry[3]", "A1"),
        ("branch/predicates/read", "branch"),
        ("live_out/registers/old/read", "live-outs"),
    ],
)
def test_parts_by_name(op: str, part: str) -> None:
    assert part_of(op) == part


def test_a_unit_without_a_part_is_an_error() -> None:
    with pytest.raises(UnknownPartError, match="texture/sample"):
        part_of("texture/sample")


def test_ranges() -> None:
    assert ranges([]) == ""
    assert ranges([0, 2, 3, 4, 9]) == "0, 2-4, 9"


def test_the_picture_is_svg_without_anything_from_elsewhere(
    nano: Machine, nano_plan: CircuitPlan
) -> None:
    picture = layer_map_to_svg(layer_map(nano, nano_plan))
    root = ElementTree.fromstring(picture)
    assert {child.tag.split("}")[1] for child in root.iter()} <= {
        "svg", "title", "desc", "style", "rect", "path", "text", "g"
    }  # fmt: skip
    assert "prefers-color-scheme: dark" in picture
    assert picture.count("http") == 1  # the name space


def test_the_command_prints_and_draws_the_same_map(tmp_path: Path) -> None:
    file = tmp_path / "map.svg"
    drawn = CliRunner().invoke(main, ["map", "--profile", "nano", "-o", str(file), "--json"])
    assert drawn.exit_code == 0
    found = json.loads(drawn.stdout)
    assert found["profile"] == "nano"
    assert list(found["parts"]) == list(PARTS)
    assert "Machine nano" in file.read_text()
    printed = CliRunner().invoke(main, ["map", "--profile", "nano"])
    assert [line.split("  ")[0] for line in printed.stdout.splitlines()[1:]] == list(PARTS)


def test_the_picture_in_the_documents_is_what_the_command_draws(tmp_path: Path) -> None:
    file = tmp_path / "map.svg"
    assert CliRunner().invoke(main, ["map", "-o", str(file)]).exit_code == 0
    assert file.read_text() == PICTURE.read_text(), (
        "stale; run `uv run qgpu-circuit map -o docs/images/layer_map.svg`"
    )
