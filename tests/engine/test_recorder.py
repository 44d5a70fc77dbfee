"""What a lane writes down of its windows at checkpoints."""

import numpy as np
from uncompiled import uncompiled

from jaxbandits import recorder


def test_a_whole_window_writes_the_checkpoints_that_it_reaches_and_no_other():
    """Play k costs k. Two windows of five plays, of which the first uses four."""
    times = np.array([2, 3, 7, 9], np.int32)
    write = uncompiled(lambda *given: recorder.write_window(*given, times, True, False))
    record, row = recorder.Record((), (np.float32(0),) * 2, (), (np.zeros(4, np.float32),) * 2), np.int32(0)
    for before, used, sums in ((0, 4, [3, 6, 0, 0]), (4, 5, [3, 6, 28, 45])):
        t = before + np.arange(1, 6, dtype=np.int32)
        window = recorder.Window(
            t=t, play=t <= before + used, used=np.int32(used), action=(), reward=(), message=(), released=(), arm=None,
            regret=t.astype(np.float32),
        )  # fmt: skip
        record, row = write(record, window, np.int32(before), row)
        assert np.add(*record.regret_at).tolist() == sums and row == np.count_nonzero(sums)
    assert sum(record.regret) == 45
