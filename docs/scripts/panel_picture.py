"""Makes docs/images/panel.svg: a launch on the default model, stopped where a block has results."""

from __future__ import annotations

import sys
from pathlib import Path

from qgpu_run.cli import main

ROOT = Path(__file__).resolve().parents[2]
KERNEL = ROOT / "kernels" / "scan" / "block_scan.cu"
PICTURE = ROOT / "docs" / "images" / "panel.svg"
AT = 330

if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    arguments = ["watch", str(KERNEL), "--engine", "sparse", "--at", str(AT)]
    sys.exit(main([*arguments, "--screenshot", str(PICTURE), "--size", "150x46"]))
