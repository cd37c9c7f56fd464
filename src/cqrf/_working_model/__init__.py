"""The working model: a ridge Cox model that is fitted before the forest.

Modules, in the order in which data flow: :mod:`design` turns the bins of the features into
standardised columns; :mod:`cox` maximises the penalised partial likelihood; :mod:`ridge` chooses
the penalty by cross-validation; :mod:`adaptive` adds powers of the features and leaves columns out;
:mod:`fit` gives every row a cross-fitted linear predictor; :mod:`transform` holds the result and
maps times to the scale on which residual trees are grown.
"""
