"""Datasets of a strategy: how batches are divided, loops over them in functions, iterators, several processes."""

from types import SimpleNamespace

import numpy as np
import pytest

import gradtape as tf
from gradtape.distribute.inputs import PerReplicaSpec

D = tf.distribute
Policy = tf.data.experimental.AutoShardPolicy


def parts(strategy, dataset):
    """The parts of all elements, as lists."""
    return [[np.asarray(x).tolist() for x in strategy.experimental_local_results(e)] for e in dataset]


def numbers(n, size, **options):
    return tf.data.Dataset.range(n).batch(size, **options)


# What TensorFlow 2.21 gave with four replicas.
FOUR = {
    4: [[[0], [1], [2], [3]], [[4], [5], [6], [7]], [[8], [9], [10], [11]]],
    5: [[[0, 1], [2, 3], [4], []], [[5, 6], [7, 8], [9], []], [[10], [11], [], []]],
    6: [[[0, 1], [2, 3], [4, 5], []], [[6, 7], [8, 9], [10, 11], []]],
    10: [[[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]], [[10], [11], [], []]],
}


@pytest.mark.parametrize("size", FOUR)
def test_batches_are_cut_as_in_tensorflow(size):
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
    four = D.MirroredStrategy()
    dataset = four.experimental_distribute_dataset(numbers(12, size))
    assert parts(four, dataset) == FOUR[size] == parts(four, dataset)
    assert len(dataset) == len(FOUR[size]) and dataset.cardinality.numpy() == len(FOUR[size])


def test_batches_in_turns(two):
    assert parts(two, two.distribute_datasets_from_function(lambda c: numbers(5, 2))) == [
        [[0, 1], [2, 3]],
        [[4], []],
    ]
    contexts = []

    def make(context):
        contexts.append(str(context))
        return numbers(8, context.get_per_replica_batch_size(4)).shard(
            context.num_input_pipelines, context.input_pipeline_id
        )

    assert parts(two, two.distribute_datasets_from_function(make)) == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    assert contexts == ["tf.distribute.InputContext(input pipeline id 0, total: 1)"]
    with pytest.raises(ValueError, match="not divisible by `num_replicas_in_sync` 2"):
        two.distribute_datasets_from_function(lambda c: numbers(8, c.get_per_replica_batch_size(5)))


def test_structures_and_specs(two):
    ds = tf.data.Dataset.from_tensor_slices({"x": np.zeros((6, 3), "f"), "y": (np.arange(6),)}).batch(4)
    dataset = two.experimental_distribute_dataset(ds)
    element = next(iter(dataset))
    assert [x.shape.as_list() for x in element["x"].values] == [[2, 3], [2, 3]]
    assert isinstance(dataset, D.DistributedDataset) and isinstance(iter(dataset), D.DistributedIterator)
    spec = PerReplicaSpec(*[tf.TensorSpec([None, 3])] * 2)
    assert dataset.element_spec["x"] == spec == iter(dataset).element_spec["x"]
    assert repr(spec).startswith("PerReplicaSpec(TensorSpec(shape=(None, 3)") and spec.is_compatible_with(
        element["x"]
    )
    fixed = two.experimental_distribute_dataset(numbers(9, 3, drop_remainder=True)).element_spec
    assert [s.shape.as_list() for s in fixed.value_specs] == [[2], [1]]


def test_iterators(two):
    it = iter(two.experimental_distribute_dataset(numbers(5, 2)))
    assert parts(two, [next(it), it.get_next()]) == [[[0], [1]], [[2], [3]]]
    last = it.get_next_as_optional()
    assert last.has_value().numpy() and parts(two, [last.get_value()]) == [[[4], []]]
    assert not it.get_next_as_optional().has_value().numpy()
    with pytest.raises(tf.errors.OutOfRangeError):
        it.get_next()
    with pytest.raises(StopIteration):
        next(it)


def test_checkpoints_keep_where_an_iterator_is(two, tmp_path):
    dataset = two.experimental_distribute_dataset(numbers(8, 2))
    it = iter(dataset)
    next(it)
    path = tf.train.Checkpoint(it=it).save(str(tmp_path / "c"))
    again = iter(dataset)
    tf.train.Checkpoint(it=again).restore(path)
    assert parts(two, [next(again)]) == [[[2], [3]]]


@pytest.mark.parametrize("n", [8, 7, 5])
@pytest.mark.parametrize("argument", [True, False])
def test_loops_in_functions(two, n, argument):
    data = two.experimental_distribute_dataset(numbers(n, 4))
    traces = []

    def epoch(data):
        total, steps = tf.constant(0, tf.int64), 0
        for x in data:
            traces.append(1)
            total += two.reduce("SUM", two.run(tf.reduce_sum, args=(x,)), axis=None)
            steps += 1
            if total > 1000:
                break
        return total, steps

    f = tf.function(epoch) if argument else tf.function(lambda: epoch(data))
    for _ in range(2):
        total, steps = f(data) if argument else f()
        assert (total.numpy(), int(steps)) == (n * (n - 1) // 2, 2)
    assert len(traces) <= 2  # one for each size of a batch


def test_loops_over_batches_in_turns(two):
    data = two.distribute_datasets_from_function(lambda c: numbers(7, 2))

    @tf.function
    def epoch():
        total = tf.constant(0, tf.int64)
        for x in data:
            total += two.reduce("SUM", two.run(tf.reduce_sum, args=(x,)), axis=None)
        return total

    assert epoch().numpy() == 21 == epoch().numpy()


def test_next_in_functions(two):
    it = iter(two.experimental_distribute_dataset(numbers(12, 4)))
    step = tf.function(lambda it: two.reduce("SUM", next(it), axis=0))
    assert [step(it).numpy() for _ in range(3)] == [6, 22, 38]
    with pytest.raises(tf.errors.OutOfRangeError):
        step(it)


def test_elements_that_are_no_batches(two):
    with pytest.raises(
        ValueError, match=r"an element is not a batch that can be split.*got shapes \[\[\]\].*dataset.batch"
    ):
        list(two.experimental_distribute_dataset(tf.data.Dataset.range(3)))
    with pytest.raises(ValueError, match=r"the same number of rows; got shapes \[\[2\], \[3\]\]"):
        list(two.experimental_distribute_dataset(tf.data.Dataset.from_tensors(([1, 2], [1, 2, 3]))))
    with pytest.raises(TypeError, match="expected a tf.data.Dataset; got list"):
        two.experimental_distribute_dataset([1, 2])
    with pytest.raises(TypeError, match="distributed already"):
        two.experimental_distribute_dataset(two.experimental_distribute_dataset(numbers(4, 2)))
    with pytest.raises(ValueError, match="must return a tf.data.Dataset; got int"):
        two.distribute_datasets_from_function(lambda c: 3)


# ---- several processes: the share of each ----------------------------------------------------------------------


def of_process(rank, size, replicas):
    """The strategy of process `rank` of `size`, without exchanges."""
    group = SimpleNamespace(rank=rank, size=size)
    return D.Strategy(devices=[f"/device:CPU:{i}" for i in range(replicas)], group=group)


def with_policy(dataset, policy):
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = policy
    return dataset.with_options(options)


def test_processes_share_batches():
    def taken(policy, replicas):
        out = []
        for rank in range(2):
            strategy = of_process(rank, 2, replicas)
            out.append(
                parts(strategy, strategy.experimental_distribute_dataset(with_policy(numbers(14, 8), policy)))
            )
        return out

    # As golden/multi_worker.json has it: 4 and 4 of 8, then 3 and 3 of 6.
    shared = [[[[0, 1, 2, 3]], [[8, 9, 10]]], [[[4, 5, 6, 7]], [[11, 12, 13]]]]
    assert taken(Policy.DATA, 1) == taken(Policy.AUTO, 1) == shared
    assert taken(Policy.DATA, 2) == [
        [[[0, 1], [2, 3]], [[8, 9], [10, 11]]],
        [[[4, 5], [6, 7]], [[12, 13], []]],
    ]
    # All data in each process, in parts of the size that a replica gets of a full batch.
    everything = [[[0, 1, 2, 3]], [[4, 5, 6, 7]], [[8, 9, 10, 11]], [[12, 13]]]
    assert taken(Policy.OFF, 1) == [everything, everything]
    assert taken(Policy.OFF, 2)[0] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]], [[12, 13], []]]
    with pytest.raises(
        tf.errors.UnimplementedError, match="HINT is not there; expected AUTO, DATA, FILE or OFF"
    ):
        taken(Policy.HINT, 1)
    with pytest.raises(
        tf.errors.NotFoundError, match="FILE needs a dataset that is read from at least as many files as.*2"
    ):
        taken(Policy.FILE, 1)


class Processes:
    """Processes that run one after the other, with predetermined messages."""

    def __init__(self, rank, sizes):
        self.rank, self.size, self._sizes = rank, len(sizes), sizes

    def all_gather(self, tensors):
        return [[tf.constant([n], x.dtype) for n in self._sizes] for x in tensors]


@pytest.fixture
def files(tmp_path):
    for i, count in enumerate((3, 4, 2)):
        (tmp_path / f"{i}.txt").write_text("".join(f"{10 * i + j}\n" for j in range(count)))
    return sorted(str(p) for p in tmp_path.glob("*.txt"))


@pytest.mark.parametrize("how", ["names", "dataset", "interleave", "flat_map"])
@pytest.mark.parametrize("policy", [Policy.FILE, Policy.AUTO])
def test_processes_share_files(files, how, policy):
    lines = tf.data.TextLineDataset
    dataset = {
        "names": lambda: lines(files),
        "dataset": lambda: lines(tf.data.Dataset.from_tensor_slices(files)),
        "interleave": lambda: tf.data.Dataset.from_tensor_slices(files).interleave(lines, cycle_length=1),
        "flat_map": lambda: tf.data.Dataset.list_files(files, shuffle=False).flat_map(lines),
    }[how]()
    batches = with_policy(dataset.batch(4), policy)

    def taken(rank):
        strategy = D.Strategy(devices=["/device:CPU:0"], group=Processes(rank, [3, 2]))
        return [
            [int(x) for x in batch.numpy()] for batch in strategy.experimental_distribute_dataset(batches)
        ]

    # Files 0 and 2, and file 1, in parts of two lines. Process 1 continues without rows until process 0 is done.
    assert taken(0) == [[0, 1], [2, 20], [21]]
    assert taken(1) == [[10, 11], [12, 13], []]


def test_processes_end_together():
    def taken(rank, replicas, n):
        strategy = D.Strategy(
            devices=[f"/device:CPU:{i}" for i in range(replicas)], group=Processes(rank, [1, 3])
        )
        return parts(strategy, strategy.distribute_datasets_from_function(lambda c: numbers(n, 2)))

    assert taken(0, 1, 2) == [[[0, 1]], [[]], [[]]] and taken(1, 1, 6) == [[[0, 1]], [[2, 3]], [[4, 5]]]
    assert taken(0, 2, 3) == [[[0, 1], [2]], [[], []], [[], []]]
    assert taken(0, 1, 0) == [[[]], [[]], [[]]]  # none at all


def test_each_process_knows_its_number():
    context = of_process(1, 3, 2)._input_context()
    assert (context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync) == (3, 1, 6)
    values = of_process(1, 3, 2).experimental_distribute_values_from_function(
        lambda c: c.replica_id_in_sync_group
    )
    assert values.values == (2, 3)
