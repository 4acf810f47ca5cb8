"""A merged checkpoint as a GGUF file, by llama.cpp's own converter.

Run in the project's environment, with a source tree of llama.cpp (the source package of
`llama-cpp-python` holds one, in `vendor/llama.cpp`):

    uv run python docs/other_engines/convert_llama_cpp.py LLAMA_CPP MODEL -o MODEL.gguf

For a published base, `convert_hf_to_gguf.py MODEL --no-mtp --outtype bf16` does the same. This
script also converts what the converter refuses: a checkpoint without a tokenizer (ids alone are
used then), and one whose tokenizer it does not know by hash (made for a test; taken as Qwen3.5's).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("llama_cpp", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--dtype", choices=("bf16", "f32"), default="bf16")
    options = parser.parse_args()
    sys.path[:0] = [str(options.llama_cpp), str(options.llama_cpp / "gguf-py")]
    import convert_hf_to_gguf
    from conversion import qwen

    kind: Any = qwen.Qwen3_5TextModel
    if (options.model / "tokenizer.json").is_file():
        known = kind.get_vocab_base_pre

        def name_of_split(self: Any, tokenizer: Any) -> str:
            try:
                return str(known(self, tokenizer))
            except NotImplementedError:
                return "qwen35"

        kind.get_vocab_base_pre = name_of_split
    else:

        def no_vocabulary(self: Any) -> None:
            self._set_vocab_none()
            self.gguf_writer.add_vocab_size(self.hparams["vocab_size"])

        kind.set_vocab = no_vocabulary
    partial = options.output.with_name(f"{options.output.name}.partial")
    names = ["--outfile", str(partial), "--outtype", options.dtype, "--no-mtp"]
    sys.argv = ["convert_hf_to_gguf.py", str(options.model), *names]
    convert_hf_to_gguf.main()
    partial.replace(options.output)


if __name__ == "__main__":
    main()
