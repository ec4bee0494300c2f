"""`KeptRows`: rows that all tiles need, after those of one tile."""

from __future__ import annotations

import numpy as np

from stepwell.distributed.storage.buffers import KeptRows


def test_tiles_put_their_rows_before_those_that_stay() -> None:
    kept = KeptRows((3000, 5), np.dtype(np.float32), 4000)
    kept.rows[...] = np.arange(3000)[:, None]
    for count in (4000, 10, 0, 2500):
        array = kept.behind(count)
        assert array.shape == (count + 3000, 5)
        assert kept.size(count) == array.nbytes
        array[:count] = -1
        np.testing.assert_array_equal(array[count:, 4], np.arange(3000))


def test_rows_without_elements() -> None:
    assert KeptRows((3, 0), np.dtype(np.float32), 2).behind(2).shape == (5, 0)
    assert KeptRows((0, 2), np.dtype(np.float32), 0).behind(0).shape == (0, 2)
