"""The processes of a group, as described by TF_CONFIG, Slurm or mpirun; errors name what is wrong with a description."""

import json
import subprocess
import sys

import pytest

import gradtape as tf
from gradtape.distribute import groups, workers
from gradtape.distribute.cluster import counts_of, hosts_of
from gradtape.distribute.groups_watch import host_and_port

from . import processes

D = tf.distribute
R = D.cluster_resolver
TWO = {"worker": ["a:1", "b:1"]}


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Removes everything that describes a cluster."""
    for name in (
        "TF_CONFIG",
        "OMPI_COMM_WORLD_SIZE",
        "PMI_SIZE",
        "SLURM_PROCID",
        "GRADTAPE_COLLECTIVE_TIMEOUT",
    ):
        monkeypatch.delenv(name, raising=False)


def described(monkeypatch, cluster, task=None, **more):
    config = {"cluster": cluster, **({"task": task} if task is not None else {}), **more}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))


def test_one_process_is_enough(monkeypatch):
    strategy = D.MultiWorkerMirroredStrategy()
    assert strategy.num_replicas_in_sync == 1 and strategy.extended.should_checkpoint
    assert not strategy.extended._in_multi_worker_mode()  # libraries ask for it
    assert not tf.distribute.get_strategy().extended._in_multi_worker_mode()
    described(monkeypatch, {"worker": ["a:1"]}, {"type": "worker", "index": 0})
    assert D.MultiWorkerMirroredStrategy().num_replicas_in_sync == 1
    described(monkeypatch, TWO | {"evaluator": ["c:1"]}, {"type": "evaluator", "index": 0})
    strategy = D.MultiWorkerMirroredStrategy()
    assert strategy.num_replicas_in_sync == 1 and strategy.cluster_resolver.task_type == "evaluator"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", r"TF_CONFIG: it is not JSON .*expected {\"cluster\""),
        ("[1, 2]", "TF_CONFIG: expected"),
        ('{"cluster": ["a:1", "b:1"]}', "TF_CONFIG: expected"),
        ('{"cluster": {"worker": ["a:1"]}, "task": 3}', "TF_CONFIG: expected"),
        (
            '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": "x"}}',
            "must be a number; got 'x'",
        ),
        (
            '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": -1}}',
            "must be a number; got -1",
        ),
    ],
)
def test_an_invalid_tf_config(monkeypatch, text, said):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ValueError, match=said):
        D.MultiWorkerMirroredStrategy()


@pytest.mark.parametrize(
    ("cluster", "task", "said"),
    [
        (TWO, None, "not which of its tasks this process is"),
        (TWO, {"type": "worker"}, "not which of its tasks"),
        (
            TWO,
            {"type": "worker", "index": 2},
            "`task_id` 2 exceeds the maximum id of worker: the cluster has 2",
        ),
        (TWO, {"type": "chief", "index": 0}, "`task_type` 'chief' not found in cluster_spec"),
        (TWO | {"ps": ["c:1"]}, {"type": "worker", "index": 0}, r"jobs \['ps'\].*no parameter servers"),
        ({"chief": ["a:1", "b:1"]}, {"type": "chief", "index": 0}, "at most one chief"),
        ({"worker": ["a", "b:1"]}, {"type": "worker", "index": 0}, "must be host:port; got 'a'"),
        ({"worker": ["a:1", "b:99999"]}, {"type": "worker", "index": 0}, "must be host:port; got 'b:99999'"),
        ({"worker": ["a:1", "a:1"]}, {"type": "worker", "index": 0}, "an address of its own"),
    ],
)
def test_a_cluster_that_cannot_be(monkeypatch, cluster, task, said):
    described(monkeypatch, cluster, task)
    with pytest.raises(ValueError, match=said):
        D.MultiWorkerMirroredStrategy()


def test_the_chief_comes_first():
    spec = tf.train.ClusterSpec({"worker": ["b:1", "c:1"], "chief": ["a:1"], "evaluator": ["d:1"]})
    ranks = {}
    for kind, index in (("chief", 0), ("worker", 0), ("worker", 1)):
        place = workers.Place(R.SimpleClusterResolver(spec, task_type=kind, task_id=index))
        assert place.addresses == ["a:1", "b:1", "c:1"]
        ranks[kind, index] = place.rank
    assert list(ranks.values()) == [0, 1, 2]


def test_slurm(monkeypatch):
    with pytest.raises(RuntimeError, match="SLURM_PROCID is not set.*srun"):
        R.SlurmClusterResolver()
    monkeypatch.setenv("SLURM_PROCID", "3")
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "5")
    monkeypatch.setenv("SLURM_STEP_NODELIST", "n[1-2],gpu07")
    monkeypatch.setenv("SLURM_STEP_TASKS_PER_NODE", "2(x2),1")
    resolver = R.SlurmClusterResolver(port_base=100)
    assert resolver.cluster_spec().as_dict() == {
        "worker": ["n1:100", "n1:101", "n2:100", "n2:101", "gpu07:100"]
    }
    assert resolver.get_task_info() == ("worker", 3) == (resolver.task_type, resolver.task_id)
    assert resolver.master() == "n2:101" and resolver.master("worker", 0) == "n1:100"
    assert workers.started_by_slurm() and workers.Place(resolver).rank == 3
    jobs = R.SlurmClusterResolver(jobs={"chief": 1, "worker": 4}, port_base=100)
    assert jobs.get_task_info() == ("worker", 2)
    assert workers.Place(jobs).rank == 3
    with pytest.raises(ValueError, match="do not fit; expected 5 tasks"):
        R.SlurmClusterResolver(jobs={"worker": 4})


def test_lists_of_slurm():
    assert hosts_of("a,b2,c[01-03,9]x,d") == ["a", "b2", "c01x", "c02x", "c03x", "c9x", "d"]
    assert counts_of("4") == [4] and counts_of("1,2(x2)") == [1, 2, 2]


def test_mpirun_is_noticed(monkeypatch):
    assert not workers.started_by_mpi()
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "1")
    assert not workers.started_by_mpi()
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    assert workers.started_by_mpi()


def test_the_time_limit(monkeypatch):
    assert groups.time_limit(None) == 60 and groups.time_limit(5) == 5
    monkeypatch.setenv("GRADTAPE_COLLECTIVE_TIMEOUT", "7.5")
    assert groups.time_limit(None) == 7.5 and groups.time_limit(5) == 5
    for wrong in ("soon", "-1", "0"):
        monkeypatch.setenv("GRADTAPE_COLLECTIVE_TIMEOUT", wrong)
        with pytest.raises(ValueError, match=f"positive number of seconds; got '{wrong}'"):
            D.MultiWorkerMirroredStrategy()


def test_addresses():
    assert host_and_port("a.b:12") == ("a.b", 12) and host_and_port("[::1]:12") == ("::1", 12)


@pytest.mark.parametrize(
    ("setting", "blocked", "extra"),
    [
        (
            "TF_CONFIG=" + json.dumps({"cluster": TWO, "task": {"type": "worker", "index": 0}}),
            "jax",
            "gradtape[xla]",
        ),
        ("OMPI_COMM_WORLD_SIZE=2", "mpi4py", "gradtape[mpi]"),
    ],
)
def test_an_extra_that_is_missing_is_named(setting, blocked, extra):
    name, _, value = setting.partition("=")
    code = f"import sys; sys.modules[{blocked!r}] = None\nimport gradtape as tf\ntf.distribute.MultiWorkerMirroredStrategy()"
    env = processes.environment(**{name: value})
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ImportError: MultiWorkerMirroredStrategy:")
    assert f'pip install "{extra}"' in done.stderr


def test_neither_jax_nor_mpi_is_imported_before_a_group_is_made():
    code = (
        "import sys, gradtape as tf; tf.distribute.MultiWorkerMirroredStrategy();"
        "print([m for m in ('jax', 'jaxlib', 'mpi4py') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=processes.environment(), capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_worker_0_is_notified_last_of_a_lost_worker():
    """Worker 0 tells the others first: its process may exit as soon as it knows, and they would report it as dead."""
    (only,) = processes.finish(processes.start("lost_order.py", 1))
    assert only.result == {"order": [2, 0], "lost": [[1], [1]]}


@pytest.mark.parametrize(("carrier", "n"), [("jax", 2), ("mpi", 3)])
def test_all_types_and_sizes_travel(carrier, n):
    processes.need(carrier)
    run = processes.run if carrier == "jax" else processes.run_by_mpi
    assert [r["wrong"] for r in run("all_types.py", n)] == [[]] * n
