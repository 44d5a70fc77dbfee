"""The Ray engine: calls over the machines of a cluster. It survives the loss of workers and of nodes.

A worker builds the plan from the sweep's own arguments, once a process, and runs the same calls as the local engine.
Where it sees the store's directory it writes its chunks there and returns no arrays; elsewhere the chunks come back
as arrays. Ray repeats a call whose process or machine was lost; an error in Python comes back as text and is not
repeated.
"""

import contextlib
import functools
import hashlib
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from jaxbandits.protocol import Adversary, Environment
from jaxbandits.sweeps.arguments import is_rebuilt
from jaxbandits.sweeps.compilation.executables import HERE
from jaxbandits.sweeps.compilation.settings import in_force, of_this_thread, use_settings
from jaxbandits.sweeps.engines.calls import Call, Machine, default_memory, weight
from jaxbandits.sweeps.engines.local import EngineRun, Failed, Orders, error_and_traceback
from jaxbandits.sweeps.engines.one_call import Outcome, Progress, keep_outcome, play_call, resume_arguments
from jaxbandits.sweeps.engines.remaining import Remaining
from jaxbandits.sweeps.identity import identify_cells
from jaxbandits.sweeps.identity import versions as installed_versions
from jaxbandits.sweeps.plan import Plan, plan
from jaxbandits.sweeps.storage.dataset_file import CHUNKS
from jaxbandits.sweeps.storage.store import Store
from jaxbandits.version import __version__

MAX_RETRIES = 10  # of a call whose worker or node is lost


class Ray:
    """An engine over the Ray cluster this process is connected to, or can find, or else starts on this machine."""

    def __init__(self, given: dict[str, Any], devices: Any, memory: int | None) -> None:
        try:
            import ray
        except ImportError:
            raise ValueError("engine = 'ray': Ray is not installed: pip install 'jaxbandits[ray]'") from None
        if devices is not None:
            why = "Ray deals them out, one GPU or one core a call"
            raise ValueError(f"devices cannot be given with engine = 'ray': {why}")
        if not ray.is_initialized():
            # Ray forks before it starts its own programs, and JAX warns of forks
            with _own_sigterm(), warnings.catch_warnings():
                warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
                ray.init(log_to_driver=False, include_dashboard=False)
        self.gpus, self.cores = (int(ray.cluster_resources().get(kind, 0)) for kind in ("GPU", "CPU"))
        # one GPU a call where the cluster has any, else one core
        needs = {"num_gpus": 1, "num_cpus": 1} if self.gpus else {"num_cpus": 1}
        remote: Any = ray.remote
        self.remote = remote(max_retries=MAX_RETRIES, retry_exceptions=False, **needs)
        self.arguments = _pickle_with_modules({key: part_to_send(x) for key, x in given.items()})
        platform, share = ray.get(self.remote(_describe_worker).remote())
        self.versions = [__version__, *installed_versions(platform)]
        self.replaced = of_this_thread()
        self.machine = Machine([], self.gpus or max(self.cores, 1), platform, memory or share)

    def run(self, plan: Plan, remaining: Remaining, machine: Machine, orders: Orders) -> None:
        """As `Local.run`."""
        RayRun(self, plan, remaining, machine, orders).play()


def part_to_send(x: Any) -> Any:
    """The factory of a part that it builds again; what was changed is sent as it is, which pickle refuses in words."""
    return x.remake if isinstance(x, Environment | Adversary) and is_rebuilt(x) else x


class RayRun(EngineRun[object]):
    """A run on a cluster, whose calls are known by Ray's references to their results."""

    def __init__(self, engine: Ray, plan: Plan, remaining: Remaining, machine: Machine, orders: Orders) -> None:
        import ray

        super().__init__(plan, remaining, machine, orders)
        self.ray, self.unit = ray, "GPU" if engine.gpus else "CPU"
        digest = hashlib.sha256(engine.arguments + in_force().encode()).hexdigest()
        store = orders.store
        place = None if store is None else (str(store.home.parent.resolve()), store.token, store.block)
        told = digest, engine.versions, engine.replaced, place
        self.begin = functools.partial(engine.remote(_call).remote, ray.put(engine.arguments), *told)

    def slots(self) -> int:
        return int(self.ray.cluster_resources().get(self.unit, 1))

    def submit(self) -> None:
        call = self.remaining.take()
        self.pending[self.begin(self.plan.groups[call.group].parts.traced, call)] = [call]

    def wait(self) -> list[object]:
        return self.ray.wait(list(self.pending), num_returns=1, timeout=5.0)[0]

    def result(self, ticket: Any) -> Outcome | Failed:
        try:
            outcome, error = self.ray.get(ticket)
        except self.ray.exceptions.RayError as lost:  # its workers died again and again
            error = error_and_traceback(lost)
        return Failed(RuntimeError(f"a call failed on the cluster:\n{error[1]}"), error) if error else outcome

    def keep(self, call: Call, outcome: Outcome) -> None:
        self.orders.sink(call, outcome)
        self.orders.report(Progress(call, weight(call, self.plan)))

    def interrupt(self) -> None:
        under_way = list(self.pending)
        for reference in self.ray.wait(under_way, num_returns=len(under_way), timeout=0)[0] if under_way else ():
            self.end(reference)

    def stop(self) -> None:
        for reference in self.pending:
            self.ray.cancel(reference, force=False)


@contextlib.contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keep the process's handler of SIGTERM, which Ray replaces by its own."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        # the default is Ray's to replace, and only the main thread may set a handler
        if callable(before) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def _describe_worker() -> tuple[str, int]:
    """The platform of a worker of this cluster, and the memory of its calls."""
    platform = jax.default_backend()
    return platform, default_memory(platform)


def _pickle_with_modules(x: object) -> bytes:
    """Pickle x together with users' own modules: a node need not have their files."""
    from ray import cloudpickle

    own = [m for m in {_module_to_send(f) for f in _functions(x)} if m in sys.modules]
    for name in own:
        cloudpickle.register_pickle_by_value(sys.modules[name])
    try:
        return cloudpickle.dumps(x)
    finally:
        for name in own:
            cloudpickle.unregister_pickle_by_value(sys.modules[name])


def _functions(x: object) -> Iterator[Any]:
    """The functions in a tree of arguments, also those inside partials."""
    if isinstance(x, functools.partial):
        yield from _functions([x.func, *x.args, *x.keywords.values()])
    elif isinstance(x, dict):
        yield from _functions(list(x.values()))
    elif isinstance(x, list | tuple):
        for item in x:
            yield from _functions(item)
    elif callable(x):
        yield x


def _module_to_send(function: Any) -> str:
    """The module of a function, where it must be sent along; an empty string for libraries, which every node has."""
    name = getattr(function, "__module__", None) or ""
    path = getattr(sys.modules.get(name), "__file__", None) or ""
    everywhere = name.partition(".")[0] in ("jaxbandits", "__main__") or "site-packages" in path or not path
    return "" if everywhere else name


# docs/decisions.md#ray
@functools.lru_cache(maxsize=4)
def _plan_of_arguments(digest: str, arguments: bytes) -> Plan:
    """The plan of packed arguments; the digest, of them and of settings, is what the cache of plans knows them by."""
    from ray import cloudpickle

    return identify_cells(plan(**cloudpickle.loads(arguments)), jax.default_backend(), stored=False)[0]


@functools.cache
def _store(directory: str, token: str, block: int) -> Store | None:
    """The store of that token, if this machine sees it."""
    try:
        home = Path(directory)
        return Store(home, block) if (home / CHUNKS / "token").read_text() == token else None
    except OSError:
        return None


def _call(
    arguments: bytes, digest: str, versions: list[Any], replaced: dict[str, Any], place: Any, traced: str, call: Call
) -> tuple[Outcome | None, tuple[str, str] | None]:
    """Run one call on a worker: the outcome, and an error as (reason, traceback) or None.

    The outcome has no arrays where they are in the store. replaced: settings of JAX that the driver's thread replaced.
    place: directory, token and block of the store, or None. traced: what a user's part computes there.
    """
    try:
        with use_settings(replaced):
            here = [__version__, *installed_versions(jax.default_backend())]
            if here != versions:
                remedy = "install the same on all nodes, and give all the same settings of JAX and XLA_FLAGS"
                raise RuntimeError(f"a node of the cluster has {here}, the driver {versions}: {remedy}")
            laid_out = _plan_of_arguments(digest, arguments)
            computed = laid_out.groups[call.group].parts.traced
            if computed != traced and not computed.startswith(HERE) and not traced.startswith(HERE):
                label = laid_out.cells[call.cells[0]].label
                what = f"{label!r} computes something else on a node, as it reads what differs there"
                raise RuntimeError(f"{what}: give all nodes the same files")
            store = None if place is None else _store(*place)
            resumed = {} if store is None else resume_arguments(store, call)
            outcome = play_call(call, laid_out, jax.local_devices()[0], **resumed)
            if store is None:
                return outcome, None
            keep_outcome(store, call, outcome)
            return outcome._replace(regret=None, pulls=None, diagnostics={}), None
    except Exception as error:
        return None, error_and_traceback(error)
