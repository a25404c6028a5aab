"""Programs as compilers write them: HLO text, MLIR text, and the source lines that they carry."""
