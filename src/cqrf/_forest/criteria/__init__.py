"""Splitting criteria: what each writes on the rows of a node before it is split.

A criterion gives every row of a node a few *labels*, centred so that they sum to zero over the
node. The gain of a split is the squared length of the labels' sum on one side (see
:mod:`cqrf._forest.splitting`), whatever the labels stand for. A criterion is therefore a record of
its parameters and a kernel that writes labels; splitter, grower and forest know none of them.

The record is a NamedTuple class with

- a first field ``n_labels``, the number of labels per row;
- ``from_levels(levels)``, which builds it;
- ``scaled_to(largest_time)``, which returns it adapted to the largest absolute time.

The kernel has the signature ``label(criterion, rows, here, work)``, names included: ``rows`` is a
:class:`~cqrf._forest.spec.Rows`, ``here`` the (n,) uint32 indices of the node's rows in it, in time
order, ``work`` a :class:`~cqrf._forest.workspace.LabelWork`. It writes, for each row, the weight
and then weight times each label to ``work.labels[i]``; and to ``work.direction[1:]`` the factors
that combine the labels to the one number by which the levels of a category are ordered. It returns
(whether the node can be split, total weight of its rows).

A criterion may have a variant for rows with several causes of an event, a record with
``from_causes(levels, place)`` instead of ``from_levels`` and a kernel of its own. Others split such
rows as if all events were alike.

To add a criterion, write one file and add one line to CRITERIA.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from numba import config
from numba.extending import overload

from cqrf._forest.criteria import censored_quantile, quantile
from cqrf._forest.criteria.cause_logrank import CauseLogrank, label_cause_logrank
from cqrf._forest.criteria.cause_quantile import CauseQuantile, label_cause_quantile
from cqrf._forest.criteria.censored_quantile import CensoredQuantile, label_censored_quantile
from cqrf._forest.criteria.effect import Effect, label_effect
from cqrf._forest.criteria.interval_quantile import IntervalQuantile, label_interval_quantile
from cqrf._forest.criteria.logrank import Logrank, label_logrank
from cqrf._forest.criteria.quantile import Quantile, label_quantile
from cqrf._forest.criteria.variance import Variance, label_variance
from cqrf._runtime.compiling import OPTIONS


class Criterion(NamedTuple):
    """An entry of the registry: the record's class and the kernel that writes its labels.

    ``default_levels`` are the levels it splits at unless ``split_quantiles`` gives others; empty
    for a criterion that uses none. ``of_causes`` is the class for rows with several causes.
    """

    parameters: Any
    label: Callable[..., Any]
    default_levels: tuple[float, ...] = ()
    of_causes: Any = None


CRITERIA = {
    "censored_quantile": Criterion(
        CensoredQuantile, label_censored_quantile, censored_quantile.DEFAULT_LEVELS, CauseQuantile
    ),
    "quantile": Criterion(Quantile, label_quantile, quantile.DEFAULT_LEVELS),
    "variance": Criterion(Variance, label_variance),
    "logrank": Criterion(Logrank, label_logrank, of_causes=CauseLogrank),
}
# Criteria that are not chosen by name: of other forests, of rows with several causes, of
# interval-censored rows.
INTERNAL = {
    "effect": Criterion(Effect, label_effect),
    "cause_quantile": Criterion(CauseQuantile, label_cause_quantile),
    "cause_logrank": Criterion(CauseLogrank, label_cause_logrank),
    "interval_quantile": Criterion(IntervalQuantile, label_interval_quantile),
}


def find_kernel(parameters: type) -> Callable[..., Any]:
    """The kernel of the criterion with this class of parameters."""
    return next(
        entry.label
        for entry in (*CRITERIA.values(), *INTERNAL.values())
        if entry.parameters is parameters
    )


def label_node(criterion: Any, rows: Any, here: Any, work: Any) -> tuple[bool, float]:
    """Write the labels of a node by the kernel of the criterion; see the module's docstring."""
    return find_kernel(type(criterion))(criterion, rows, here, work)


if not config.DISABLE_JIT:

    @overload(label_node, jit_options=OPTIONS)
    def _label_node(criterion, rows, here, work):
        """The compiler chooses the kernel by the type of the criterion's record."""
        kernel: Any = find_kernel(criterion.instance_class)
        return kernel.py_func
