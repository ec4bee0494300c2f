"""Strings at the call boundary: programs compute with their numbers in a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import InputError, explain
from .specs import ValueSpec


def numbers_of(spec: ValueSpec, value: object) -> np.ndarray:
    """The places of strings in the labels of an input, i64; -1 for those that are not there.

    An array of i64 has such places already.

    Raises:
        InputError: if it is no array of strings.
    """
    texts = np.asarray(value)
    if texts.dtype == np.int64:
        return texts
    is_text = texts.dtype.kind in "UT"
    if texts.dtype == object:
        is_text = all(isinstance(text, str) for text in texts.flat)
    if not is_text:
        got = type(value).__name__ if texts.dtype == object else texts.dtype
        fact, expected = "wrong dtype", "strings"
        raise InputError(explain(f'input "{spec.name}"', fact, expected=expected, got=got))
    known = {text: number for number, text in enumerate(spec.labels)}
    found = [known.get(text, -1) for text in texts.ravel().tolist()]
    return np.array(found, np.int64).reshape(texts.shape)


def is_of_texts(spec: ValueSpec, out: np.ndarray) -> bool:
    """Whether an array that a caller gives for a result takes strings, and not their numbers."""
    return bool(spec.labels) and out.dtype == object


def labelled(specs: Sequence[ValueSpec], results: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Results with strings in the place of their numbers, where a result is one of strings.

    Raises:
        InputError: if a result is a string of an input that is in no table.
    """
    return [
        _texts(spec, array) if spec.labels else array
        for spec, array in zip(specs, results, strict=True)
    ]


def returned(
    specs: Sequence[ValueSpec], results: Sequence[np.ndarray], given: Sequence[object]
) -> list[object]:
    """The results of a call, labelled, or the arrays that the caller gave for them.

    Those of objects get the strings, others have the numbers already.

    Raises:
        InputError: if a result is a string of an input that is in no table.
    """
    answers = list[object]()
    for spec, array, out in zip(specs, results, given, strict=True):
        if isinstance(out, np.ndarray) and is_of_texts(spec, out):
            out[...] = _texts(spec, array)
        answers += labelled([spec], [array]) if out is None else [out]
    return answers


def unlabelled(specs: Sequence[ValueSpec], results: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The numbers of results that a call returned."""
    return [
        numbers_of(spec, array) if spec.labels else array
        for spec, array in zip(specs, results, strict=True)
    ]


def _texts(spec: ValueSpec, numbers: np.ndarray) -> np.ndarray:
    if numbers.size and (numbers.min() < 0 or numbers.max() >= len(spec.labels)):
        fact = "a string of an input that the model does not know"
        raise InputError(explain(f'output "{spec.name}"', fact))
    return np.array(spec.labels, object)[numbers]
