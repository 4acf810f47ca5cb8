"""Programs that several test modules run."""

from __future__ import annotations

COUNT = """\
.machine nano
.program count
block 0:
  A0  add   ctaid, #7 -> r1
  branch 1
block 1:
  A0  lea2  ctaid, #64
  MEM st    r1
  X   mullo r1, tid -> r2
  branch exit
"""
"""Word 16 + CTA becomes the CTA's number and 7."""
