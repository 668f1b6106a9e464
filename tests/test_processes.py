"""Several processes: who they are, what they tell each other, and noise that does not depend on their number."""

import itertools

import pytest
import torch

from process_group import in_processes
from quoin.data import RowNoise
from quoin.train.processes import fraction_of, from_main, gather_rows, num_processes, process_rank, sum_over_processes


def talk(num_rows: int) -> dict:
    rank = process_rank()
    rows = torch.arange(num_rows * 2.0).reshape(num_rows, 2)
    mine = rows[fraction_of(num_rows)]
    return {
        "rank": rank,
        "world": num_processes(),
        "sum": sum_over_processes(torch.tensor([1.0, 10.0**rank])).tolist(),
        "rows": gather_rows(mine).tolist(),
        "count": len(mine),
        "told": from_main({"rank": rank, "words": ["a", None, 0.1]}),
    }


@pytest.mark.parametrize("num_rows", [0, 1, 7])
def test_processes_sum_gather_and_hear_the_main_one(num_rows):
    found = in_processes(3, "test_processes:talk", num_rows)
    assert [each["rank"] for each in found] == [0, 1, 2]
    assert sum(each["count"] for each in found) == num_rows
    for each in found:
        assert each["world"] == 3
        assert each["sum"] == [3.0, 111.0]
        assert each["rows"] == torch.arange(num_rows * 2.0).reshape(num_rows, 2).tolist()
        assert each["told"] == {"rank": 0, "words": ["a", None, 0.1]}


def test_one_process_talks_to_itself():
    assert talk(2)["told"]["rank"] == 0
    assert talk(2)["rows"] == [[0.0, 1.0], [2.0, 3.0]]


@pytest.mark.parametrize("row_shape", [(), (5,), (70_000,), (300, 300)])
@pytest.mark.parametrize("kind", ["normal", "uniform", "bernoulli", "integers"])
def test_row_noise_is_the_rows_own(row_shape, kind):
    """However the batch is cut, each row has its noise; and one draw is not the next."""
    words = {"bernoulli": (0.3,), "integers": (0, 1000)}.get(kind, ())

    def two_draws(start: int, stop: int) -> torch.Tensor:
        noise = RowNoise("test", 3, 5, num_rows=13, start=start, stop=stop)
        return torch.stack([getattr(noise, kind)(*words, *row_shape) for _ in range(2)], dim=1)

    whole = two_draws(0, 13)
    assert whole.shape == (13, 2, *row_shape)
    for cuts in ((0, 13), (0, 6, 13), (0, 1, 2, 7, 7, 13)):
        assert torch.equal(torch.cat([two_draws(*pair) for pair in itertools.pairwise(cuts)]), whole)
    if row_shape:
        assert not torch.equal(whole[:, 0], whole[:, 1])
        assert len({tuple(row.flatten()[:5].tolist()) for row in whole}) > 1
    other = RowNoise("test", 3, 6, num_rows=13)
    assert not torch.equal(
        getattr(other, kind)(*words, *row_shape, 50),
        getattr(RowNoise("test", 3, 5, num_rows=13), kind)(*words, *row_shape, 50),
    )


def test_row_noise_of_a_part_holds_no_other_rows():
    """Blocks have more rows than a micro-batch: it must not keep the rest in memory while its masks are needed."""
    for start, stop in ((0, 1), (5, 7), (12, 13)):
        part = RowNoise("test", num_rows=13, start=start, stop=stop).normal(5)
        assert part.untyped_storage().nbytes() == part.nbytes == (stop - start) * 5 * 4


def test_row_noise_has_its_distribution():
    noise = RowNoise("test", num_rows=1000)
    normal, uniform, chosen = (
        noise.normal(100).double(),
        noise.uniform(100).double(),
        noise.bernoulli(0.3, 100).double(),
    )
    assert abs(float(normal.mean())) < 0.02
    assert abs(float(normal.var()) - 1) < 0.03
    assert abs(float(uniform.mean()) - 0.5) < 0.006
    assert abs(float(uniform.var()) - 1 / 12) < 0.003
    assert abs(float(chosen.mean()) - 0.3) < 0.01
    assert noise.integers(2, 5, 100).unique().tolist() == [2, 3, 4]
