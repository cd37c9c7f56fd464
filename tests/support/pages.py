"""Comparing what a page shows with what its code prints."""

import math
import re


def says_the_same(text, other, most=0):
    """Whether two texts have the same words, and the same numbers but for rounding.

    Processors round differently: sums and logarithms differ in the last bit, and where two splits
    are nearly as good, a tree may take the other one. Whole numbers may differ by ``most``.
    """
    number = re.compile(r"(-?\d+(?:\.\d+)?)")
    one, two = (number.split(re.sub(r" +", " ", each)) for each in (text, other))
    return one[::2] == two[::2] and all(map(_is_rounded, one[1::2], two[1::2], [most] * len(one)))


def _is_rounded(one, other, most):
    if "." in one and "." in other:
        return math.isclose(float(one), float(other), rel_tol=0.02, abs_tol=0.002)
    return "." not in one + other and abs(int(one) - int(other)) <= most
