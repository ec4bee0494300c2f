"""The weight store and its file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from stepwell.core.errors import ImportModelError, StepwellError
from stepwell.core.ir.weights import WeightStore


def test_names_are_unique_and_fit_the_text() -> None:
    store = WeightStore()
    array = np.zeros(3)
    assert store.add("fc/w 0", array) == "fc_w_0"
    assert store.add("other", array) == "fc_w_0", "the same array is stored once"
    assert store.add("fc_w_0", np.ones(3)) == "fc_w_0_1"
    assert store.add("0", np.ones(2)) == "w_0"
    assert store.add("", np.ones(1)) == "weight"
    assert list(store) == ["fc_w_0", "fc_w_0_1", "w_0", "weight"]


def test_a_copy_is_independent() -> None:
    store = WeightStore()
    store.add("a", np.zeros(1))
    other = store.copy()
    other.add("b", np.zeros(1))
    assert len(store) == 1
    assert len(other) == 2


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    store = WeightStore()
    store.add("dense", np.arange(6, dtype=np.float32).reshape(2, 3).T)
    store.add("flags", np.array([True, False]))
    store.add("sparse", csr_array(np.eye(4, 5, dtype=np.float64)))
    store.save(tmp_path / "m.safetensors")
    loaded = WeightStore.load(tmp_path / "m.safetensors")
    assert sorted(loaded) == sorted(store)
    np.testing.assert_array_equal(loaded["dense"], store["dense"])
    assert loaded["flags"].dtype == np.bool_
    matrix = loaded["sparse"]
    assert isinstance(matrix, csr_array)
    np.testing.assert_array_equal(matrix.toarray(), np.eye(4, 5))


def test_a_part_of_a_matrix_and_an_array_of_one_name(tmp_path: Path) -> None:
    store = WeightStore()
    store.add("a", csr_array(np.eye(2)))
    store.add("a.values", np.zeros(2))
    message = r'^weights: matrix "a" and array "a\.values" have the same name in a file$'
    with pytest.raises(StepwellError, match=message):
        store.save(tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"\xff" * 40)
    with pytest.raises(ImportModelError, match="weights: cannot read"):
        WeightStore.load(tmp_path / "bad")
    with pytest.raises(ImportModelError, match="weights: cannot read"):
        WeightStore.load(tmp_path / "missing")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indices": np.array([0, 9], np.int32)}, "indices"),
        ({"indptr": np.array([0, 2, 1], np.int32)}, "indptr|index pointer"),
        ({"values": np.array([1.0])}, "values|data|indices"),
        ({"indptr": None}, "one of its three arrays is missing"),
    ],
)
def test_a_matrix_that_is_inconsistent(
    tmp_path: Path, change: dict[str, np.ndarray | None], message: str
) -> None:
    from safetensors.numpy import save_file

    parts = {
        "indptr": np.array([0, 1, 2], np.int32),
        "indices": np.array([0, 1], np.int32),
        "values": np.array([1.0, 2.0]),
        **change,
    }
    arrays = {f"a.{name}": array for name, array in parts.items() if array is not None}
    save_file(arrays, tmp_path / "m.safetensors", {"a": "[2, 2]"})
    with pytest.raises(ImportModelError, match=f'weights: CSR matrix "a": .*({message})'):
        WeightStore.load(tmp_path / "m.safetensors")
