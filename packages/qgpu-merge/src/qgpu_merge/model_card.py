"""README.md of a merged checkpoint: what it is, how to use it, where it came from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qgpu_isa.file_hashes import FILES_MANIFEST
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.vocabulary import vocabulary

from qgpu_merge.base_files import CARD, hub_source
from qgpu_merge.merge_plan import MergePlan
from qgpu_merge.merged_tokenizer import TOKENIZER
from qgpu_merge.read_checkpoint import Checkpoint

COPIED_FIELDS = ("license", "license_name", "license_link", "language")
"""Fields of the base's card that hold for the merged model as well."""

TAGS = ["qgpu", "gpu", "cuda", "compiled-weights"]


def card_fields(base: Path) -> dict[str, Any]:
    """The metadata of a base's README.md; empty where there is none that can be read."""
    from huggingface_hub import ModelCard

    try:
        text = (base / CARD).read_text(encoding="utf-8")
        card: Any = ModelCard(text, ignore_metadata_errors=True)
        data = card.data.to_dict()
    except Exception:
        # Cards are written by hand, and the parsers behind have errors of their own.
        return {}
    return {name: data[name] for name in COPIED_FIELDS if data.get(name)}


def write_model_card(folder: Path, base: Checkpoint, plan: MergePlan) -> None:
    """Writes README.md into the folder of a merged checkpoint whose other files are there."""
    from huggingface_hub import ModelCardData

    source = hub_source(base.folder)
    vision = "vision_config" in plan.config
    fields: dict[str, Any] = card_fields(base.folder) | {
        "library_name": "transformers",
        "pipeline_tag": "image-text-to-text" if vision else "text-generation",
        "tags": TAGS,
    }
    if source is not None:
        fields |= {"base_model": source[0], "base_model_relation": "merge"}
    chats = (folder / TOKENIZER).is_file()
    metadata = ModelCardData(**fields).to_yaml()
    text = "\n\n".join(
        [
            f"---\n{metadata}\n---",
            *_introduction(base, plan, source),
            *_use(plan, chats=chats, original=source[0] if source else "ORIGINAL"),
            *_provenance(plan, source),
        ]
    )
    (folder / CARD).write_text(text + "\n", encoding="utf-8")


def _introduction(base: Checkpoint, plan: MergePlan, source: tuple[str, str] | None) -> list[str]:
    section = plan.config["qgpu"]
    machine = MachineConfig(**section["machine"])
    text = plan.config.get("text_config", plan.config)
    name = "a Qwen3.5 checkpoint" if source is None else source[0]
    own = base.shape.axes
    table = [
        ("machine", machine.name),
        ("lanes", machine.lanes),
        ("threads of a CTA", machine.lanes * machine.passes),
        ("registers, predicates", f"{machine.registers}, {machine.predicates}"),
        ("blocks of a program", machine.rom_blocks),
        ("words of global, shared memory", f"{machine.global_words}, {machine.shared_words}"),
        ("layers in front of the base's", section["circuit_layers"]),
        ("layers in all", text["num_hidden_layers"]),
        ("width", f"{text['hidden_size']}, in the base {own['hidden']}"),
        (
            "neurons of a layer",
            f"{text['intermediate_size']}, in the base {own['intermediate']}",
        ),
        ("tokens of the GPU", f"{vocabulary(machine).size}, from {section['token_offset']}"),
        ("tensors", f"{plan.bytes / 1e9:.2f} GB"),
    ]
    rows = [f"| {what} | {value} |" for what, value in table]
    notices = [f"- {notice}" for notice in plan.notices]
    return [
        f"# {name.split('/')[-1]} with a GPU in its weights"
        if source
        else "# Qwen3.5 with a GPU in its weights",
        f"This is {name} and, in the same weights, a SIMT GPU that runs compiled CUDA kernels "
        "token by token, exactly. No weight of the GPU was learned: a compiler (qgpu) made each "
        "one. The model is the standard transformers class.",
        "## What was added",
        "\n".join(["| | |", "|---|---|", *rows]),
        "## What stays",
        "On text the GPU's layers do nothing, and the base's layers compute what they computed, to "
        "rounding (`qgpu-merge check` measures it). The chat template and the other files of the "
        "base are unchanged; its tokenizer has got names for the GPU's tokens, such as "
        "`<|gpu:END|>`, and cuts text as before."
        + ("\n\n" + "\n".join(notices) if notices else ""),
    ]


def _use(plan: MergePlan, *, chats: bool, original: str) -> list[str]:
    chat = (
        "```python\n"
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
        "tokenizer = AutoTokenizer.from_pretrained(PATH)\n"
        'model = AutoModelForCausalLM.from_pretrained(PATH, dtype="bfloat16")\n'
        'messages = [{"role": "user", "content": "Why is the sky blue?"}]\n'
        "inputs = tokenizer.apply_chat_template(\n"
        '    messages, add_generation_prompt=True, return_dict=True, return_tensors="pt"\n'
        ")\n"
        "output = model.generate(**inputs, max_new_tokens=100)\n"
        'print(tokenizer.decode(output[0, inputs["input_ids"].shape[1] :]))\n'
        "```"
    )
    return [
        "## Chat",
        "As with the base:\n\n" + chat
        if chats
        else "The base came without a tokenizer, so there is none here.",
        "## Launch a kernel",
        "```\n"
        "qgpu-run launch kernel.cu --model PATH\n"
        "qgpu-run launch kernel.cu --model PATH --engine sparse --check\n"
        "```",
        "The first decodes with this model as it is. The second reads only the weights that GPU "
        "tokens can reach, computes the same, and compares every token with a reference "
        "interpreter.",
        "## Check and undo",
        "```\n"
        "qgpu-merge inspect PATH --verify\n"
        f"qgpu-merge check {original} PATH\n"
        f"qgpu-merge extract PATH -o {original.split('/')[-1]}\n"
        "```",
        f"`inspect --verify` compares all files with the hashes in `{FILES_MANIFEST}`, `check` "
        "measures that text is treated as the original treats it, and `extract` gives the base "
        "back, bit for bit.",
    ]


def _provenance(plan: MergePlan, source: tuple[str, str] | None) -> list[str]:
    section = plan.config["qgpu"]
    provenance = section["provenance"]
    versions = ", ".join(f"{name} {number}" for name, number in provenance["versions"].items())
    lines = [f"- made with {versions}", f"- circuit `{section['digest']}`"]
    if source is not None:
        lines.append(f"- base {source[0]}, commit `{source[1]}`")
    lines += [
        f"- {name}: SHA-256 `{digest}`" for name, digest in provenance.get("inputs", {}).items()
    ]
    return ["## Provenance", "\n".join(lines)]
