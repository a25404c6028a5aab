"""Programs as compilers write them: HLO text, MLIR text, and the source lines that they carry.

=============  ====================================================================================
`scanner`      splits HLO text into tables, computations and instructions; quick enough for profiles
`parser`       reads all of an HLO module, with shapes and attributes, for emulation
`mlir`         reads the MLIR text of a lowered program: which stack each operation comes from
`locations`    finds the user's line in a stack, in HLO's source tables, and in name stacks
=============  ====================================================================================
"""
