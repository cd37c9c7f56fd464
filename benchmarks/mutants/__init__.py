"""Mutation testing: small changes of the code, and whether a test notices each of them.

    python -m benchmarks.mutants                  # a sample of the mutants of every module
    python -m benchmarks.mutants --all            # all mutants: days
    python -m benchmarks.mutants --only codec     # one module
    python -m benchmarks.mutants --fail-under 85  # exit status 1 if a module has a lower share

Cosmic Ray makes the mutants: it shifts numbers, swaps operators and comparisons, negates
conditions, leaves out loops. ``modules.toml`` names the modules, the tests that concern each of
their files, and the mutants that no test can notice, with the reason (they do not count). A mutant
is killed if one of the tests fails, or computes much longer than without it.

The sample is the same for the same code: a mutant is drawn by a hash of its line. So a change of
one line leaves the sample of the others alone, and what has survived stays in it.

Importing scikit-learn and Numba takes longer than most tests. So a process for each group of files
imports them once and forks for each mutant (not on Windows); the child imports the mutated source
and runs the quickest tests, as many as take a few seconds. No file of the checkout is written.
Kernels run as plain Python, unless a group is ``compiled``: then none of its files may hold a
kernel that its tests call. Tests that fail as plain Python are left out.
"""
