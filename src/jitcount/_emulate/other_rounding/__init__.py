"""Programs of this machine whose operations are moved within their rounding.

`program` rewrites a program: `elementwise` has the
operations on each number, `sums` all that adds up, `algebra` decompositions and transforms, and
`chance` says where each number goes. `formats` knows the digits of floats, `inexact` which arrays
need no look at theirs, and `costs` keeps it cheap.
"""
