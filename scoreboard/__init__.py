"""The scoreboard: all CPU cases of `onnx.backend.test` through compiled code, as a table.

Holds: the ONNX back end over artifacts, the process that runs cases and cannot import the reference room, the process
that compiles for it, the board that hands out cases and survives crashes, the page in `docs/coverage.md`.
Takes nothing but the onnx package → prints a table and `scoreboard: R right, U refused, W wrong, C crashed of N`.
Must not change what a case expects, nor skip any.
"""
