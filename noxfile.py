# /// script
# requires-python = ">=3.11"
# dependencies = ["nox[uv]>=2025.5"]
# ///
"""The sessions: the same tests and benchmarks under every install of JAX.

Plain ``nox`` runs the CPU tests and the CPU benchmarks, and ends with a table of what they found.
What follows ``--`` goes to pytest. Two settings come from the environment:

JITCOUNT_JAX    the JAX release to install (``0.7.2``); by default the newest that pip finds
JITCOUNT_CUDA   the CUDA release of the gpu sessions, 12 (default) or 13

and one session needs a third: JITCOUNT_JAX_TESTS, the folder of a checkout of JAX, for jax-tests.

Tags say when a session runs besides the tests: `change` with every change (`.ci/run` and the
workflow read it), `more` with every change but in the workflow only, `weekly` there once a week.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import nox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Environment = Mapping[str, str | None]

nox.needs_version = ">=2025.5"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = True

ROOT = Path(__file__).parent
RESULTS = ROOT / "results"
VERSIONS = RESULTS / "versions"
MODES = RESULTS / "modes"
MUSEUM = RESULTS / "museum"
DIST = ROOT / "dist"
PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")


# --- The backends -------------------------------------------------------------------------------


def has_cpu() -> bool:
    """Return True: every machine has a CPU."""
    return True


def has_nvidia_gpu() -> bool:
    """Whether the driver lists an NVIDIA GPU; its tool also works in a container and under WSL."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return False
    try:
        listed = subprocess.run(  # noqa: S603
            [tool, "-L"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return listed.returncode == 0 and "GPU 0" in listed.stdout


# Google's network cards have the same vendor id: the device id tells them from a TPU.
GOOGLE = "0x1ae0"
TPU_DEVICES = frozenset(
    {"0x0027", "0x0056", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076", "0x007c", "0x0083"}
)


def has_tpu(pci_devices: Path = Path("/sys/bus/pci/devices")) -> bool:
    """Whether a TPU is on the PCI bus; libtpu looks for it in the same way."""
    return any(
        vendor.read_text().strip() == GOOGLE
        and vendor.with_name("device").read_text().strip() in TPU_DEVICES
        for vendor in pci_devices.glob("*/vendor")
    )


@dataclass(frozen=True)
class Backend:
    """Everything that the sessions need to know about one backend."""

    name: str
    """The backend's name in ``tests-gpu``, and the platform that JAX reports."""

    device: str
    """The device in words, for messages: ``an NVIDIA GPU``."""

    extra: str
    """The extra of JAX that brings the backend: ``[cuda12]``."""

    jax_platforms: str
    """The value of ``JAX_PLATFORMS`` that selects the backend."""

    compiler: str
    """The extra of jitcount that brings the backend's compiler without its device."""

    target: str
    """The target for which ``aot-*`` has that compiler compile the suite."""

    is_present: Callable[[], bool]
    """Whether this machine has the device."""


def backends(cuda: str) -> dict[str, Backend]:
    """Return all backends by name, for a CUDA release."""
    table = (
        Backend("cpu", "the CPU", "", "cpu", "", "", has_cpu),
        Backend(
            "gpu",
            "an NVIDIA GPU",
            f"[cuda{cuda}]",
            "cuda",
            f"cuda{cuda}",
            "cuda:h100",
            has_nvidia_gpu,
        ),
        Backend("tpu", "a TPU", "[tpu]", "tpu", "tpu", "tpu:v5e", has_tpu),
    )
    return {backend.name: backend for backend in table}


JAX = os.environ.get("JITCOUNT_JAX", "")
CUDA = os.environ.get("JITCOUNT_CUDA", "12")
BACKENDS = backends(CUDA)
CPU = BACKENDS["cpu"]
ACCELERATORS = tuple(backend for backend in BACKENDS.values() if backend.target)


# --- What sessions install and run --------------------------------------------------------------


def requirement(backend: Backend, release: str) -> str:
    """Return the requirement of JAX for a backend; an empty release stands for the newest."""
    return f"jax{backend.extra}=={release}" if release else f"jax{backend.extra}"


def group(name: str) -> list[str]:
    """Return the requirements of a dependency group in pyproject.toml."""
    return list(nox.project.dependency_groups(PROJECT, name))


def environment(backend: Backend = CPU) -> dict[str, str | None]:
    """Return the environment of a run: one backend, and no compile out of an older cache.

    Many tests start a process that imports JAX. That takes one second instead of three where
    Python may keep its bytecode, which some machines forbid.
    """
    return {
        "JAX_PLATFORMS": backend.jax_platforms,
        "JAX_COMPILATION_CACHE_DIR": None,
        "PYTHONDONTWRITEBYTECODE": None,
    }


def require_device(session: nox.Session, backend: Backend) -> None:
    """Fail before anything is downloaded if this machine does not have the device."""
    if not backend.is_present():
        kind = session.name.partition("-")[0]
        session.error(
            f"{session.name} needs {backend.device}, and this machine has none: nothing was "
            f"installed or run. {kind}-cpu needs no device"
        )
    if backend.compiler and backend.compiler not in PROJECT["project"]["optional-dependencies"]:
        session.error(f"JITCOUNT_CUDA is {CUDA!r}; it can be 12 or 13")


def install(session: nox.Session, *more: str, release: str = JAX) -> None:
    """Install JAX for the CPU, jitcount and further requirements."""
    session.install(requirement(CPU, release), "-e", ".", *more)


def install_tests(session: nox.Session, *more: str, backend: Backend = CPU) -> None:
    """Install jitcount and the test tools, then make sure that JAX has the backend."""
    session.install(requirement(backend, JAX), "-e", ".", *group("test"), *more)
    session.run("python", "-m", "tools.backend", backend.name, env=environment(backend))


def install_compilers(session: nox.Session, *backends: Backend) -> None:
    """Install jitcount, the test tools and compilers without their devices, by default all."""
    extras = ",".join(backend.compiler for backend in backends or ACCELERATORS)
    session.install(requirement(CPU, JAX), "-e", f".[{extras}]", *group("test"))


# Two workers, for tests on the CPU; an accelerator belongs to one process at a time.
PARALLEL = ("-n2", "--dist=worksteal")


def run_pytest(session: nox.Session, *arguments: str, **settings: str) -> None:
    """Run pytest on the CPU, with settings of the environment."""
    session.run("pytest", *arguments, *session.posargs, env=environment() | settings)


def run_suite(
    session: nox.Session, ledger: Path, *arguments: str, env: Environment | None = None
) -> None:
    """Run the suite's cases, and keep their ledger; fails if a result or a count is wrong."""
    command = ("jitcount", "suite", "--ledger", str(ledger), *arguments)
    session.run(*command, env=environment() if env is None else env)


def run_benchmarks(
    session: nox.Session, name: str, files: Iterable[str], *arguments: str, backend: Backend = CPU
) -> None:
    """Run benchmarks, keep their figures as JSON, end with a table; fails if a limit is broken."""
    RESULTS.mkdir(exist_ok=True)
    figures, env = RESULTS / f"bench-{name}.json", environment(backend)
    tests = (f"benchmarks/test_{file}.py" for file in files)
    keep = ("--quiet", f"--benchmark-json={figures}")
    session.run("pytest", *tests, *keep, *arguments, *session.posargs, env=env)
    session.run("python", "benchmarks/summary.py", str(figures), env=env)


# --- Tests and benchmarks of a backend ----------------------------------------------------------


def add_tests(backend: Backend) -> None:
    """Add the session ``tests-<backend>``."""

    def tests(session: nox.Session) -> None:
        require_device(session, backend)
        install_tests(session, backend=backend)
        workers = PARALLEL if backend is CPU else ()
        # Tests that take long have a session of their own: these are done in three minutes.
        chosen = session.posargs or ("-m", "not thorough")
        session.run("pytest", *workers, *chosen, env=environment(backend))
        if not session.posargs:
            ledger = RESULTS / f"{backend.name}.json"
            run_suite(session, ledger, env=environment(backend))

    tests.__doc__ = f"Test results and compile counts on {backend.device}."
    nox.session(name=f"tests-{backend.name}", default=backend is CPU)(tests)


def add_benchmarks(backend: Backend) -> None:
    """Add the session ``bench-<backend>``: the benchmarks that make sense on every backend."""

    def bench(session: nox.Session) -> None:
        require_device(session, backend)
        install_tests(session, backend=backend)
        columns = "--benchmark-columns=min,median,iqr,rounds"
        files = ("calls", "ratios", "compare")
        run_benchmarks(session, backend.name, files, columns, backend=backend)

    bench.__doc__ = f"Time cold, retraced and cached calls on {backend.device}."
    tags = ["more"] if backend is CPU else []
    nox.session(name=f"bench-{backend.name}", default=backend is CPU, tags=tags)(bench)


SHARDED = ("sharded-*", "op-sharded-*", "transformer-sharded")


def add_aot(backend: Backend) -> None:
    """Add the session ``aot-<backend>``: its real compiler, on a machine without the device."""

    def aot(session: nox.Session) -> None:
        install_compilers(session, backend)
        rooms = ("tests/_targets", "tests/_emulate", "tests/tools/test_jax_tests.py")
        pages = ("tests/test_pages.py", "tests/test_examples.py")
        run_pytest(session, *rooms, *pages, "-m", "aot", "-n2")
        if not session.posargs:
            # What the compiler made is run here, and its results are checked. Sharded cases need
            # as many devices as they have shards.
            as_if, eight = ("--as-if", backend.target), environment() | {"JAX_NUM_CPU_DEVICES": "8"}
            ledger = RESULTS / f"as-if-{backend.name}-sharded.json"
            run_suite(session, ledger, *as_if, "--", *SHARDED, env=eight)
            run_suite(session, RESULTS / f"as-if-{backend.name}.json", *as_if)

    aot.__doc__ = f"Compile the suite for {backend.device} with its real compiler, and compute it."
    nox.session(name=f"aot-{backend.name}", default=False, tags=["change"])(aot)


for _backend in BACKENDS.values():
    add_tests(_backend)
    add_benchmarks(_backend)
for _backend in ACCELERATORS:
    add_aot(_backend)


@nox.session(default=False, tags=["more"])
def emulated(session: nox.Session) -> None:
    """Compute the suite as a TPU and a GPU would, and compare with the CPU's own results."""
    install_compilers(session)
    # Some pages need both compilers.
    session.run("pytest", "tests/test_pages.py", "-m", "aot", env=environment())
    ledgers = {backend: RESULTS / f"as-if-{backend.name}.json" for backend in (CPU, *ACCELERATORS)}
    for backend, ledger in ledgers.items():
        run_suite(session, ledger, *(("--as-if", backend.target) if backend.target else ()))
    session.run("jitcount", "compare", *map(str, ledgers.values()))


# --- More tests ---------------------------------------------------------------------------------


@nox.session(default=False, tags=["change"])
def libraries(session: nox.Session) -> None:
    """Test causes through equinox, flax, haiku, numpyro, optax and jaxtyping, on the CPU."""
    install_tests(session, *group("libraries"))
    run_pytest(session, "tests/libraries")


@nox.session(default=False, tags=["more"])
def field(session: nox.Session) -> None:
    """Run small real programs with and without jitcount, and check each recompile's cause."""
    install_tests(session, *group("libraries"))
    run_pytest(session, "tests/field", "-n2")


@nox.session(default=False, tags=["change"])
def thorough(session: nox.Session) -> None:
    """Run the tests that take long, on the CPU: random programs, every fault, many processes."""
    install_tests(session)
    run_pytest(session, "-m", "thorough", *PARALLEL)


@nox.session(default=False, python="3.11", venv_backend="uv", tags=["weekly"])
def lowest(session: nox.Session) -> None:
    """Run the tests with the lowest versions that pyproject.toml declares, on the oldest Python."""
    session.install("--resolution", "lowest-direct", "-e", ".", *group("test"))
    run_pytest(session, *PARALLEL)


@nox.session(default=False, tags=["weekly"])
def attack(session: nox.Session) -> None:
    """Damage files, interrupt and end runs, end blocks in any order: nothing is lost, all holds."""
    install_tests(session)
    run_pytest(session, "tests/attack", *PARALLEL, JITCOUNT_ATTACK="full")


@nox.session(name="attack-as-if", default=False, tags=["weekly"])
def attack_as_if(session: nox.Session) -> None:
    """Run random programs as if on a TPU and a GPU, exactly: the results must be the CPU's."""
    install_compilers(session)
    tests = "tests/_emulate/test_random_programs.py"
    run_pytest(session, tests, *PARALLEL, JITCOUNT_ATTACK="full")


# The release whose own tests are run as if on a TPU and a GPU, with a Python that has it.
JAX_OF_TESTS = "0.10.2"


@nox.session(name="jax-tests", default=False, python="3.11", tags=["weekly"])
def jax_tests(session: nox.Session) -> None:
    """Run JAX's own tests as if on a TPU and a GPU, exactly: they must end as on the CPU."""
    if not os.environ.get("JITCOUNT_JAX_TESTS"):
        release = f"--branch jax-v{JAX_OF_TESTS} https://github.com/jax-ml/jax"
        session.error(
            "JITCOUNT_JAX_TESTS is not set: nothing was installed or run. It names the folder of a "
            f"checkout of JAX with its tests; `git clone --depth 1 {release} ../jax` makes one"
        )
    extras = ",".join(backend.compiler for backend in ACCELERATORS)
    requirements = (*group("test"), *group("jax-tests"))
    session.install(requirement(CPU, JAX_OF_TESTS), "-e", f".[{extras}]", *requirements)
    shutil.rmtree(RESULTS / "jax-tests", ignore_errors=True)
    session.run("python", "-m", "tools.jax_tests", *session.posargs, env=environment())


def core_tests(page: str) -> list[str]:
    """Return the tests of the rooms that the table in `docs/architecture.md` marks as core."""
    rooms = re.findall(r"^\| `src/jitcount/(\w+)(/|\.py)` .*\| core \|$", page, re.MULTILINE)
    return [f"tests/{room}" if end == "/" else f"tests/test{room}.py" for room, end in rooms]


@nox.session(default=False)
def core(session: nox.Session) -> None:
    """Test what must hold on every system: what is seen, explained and kept of a compile."""
    install_tests(session)
    run_pytest(session, *core_tests((ROOT / "docs" / "architecture.md").read_text("utf-8")))


@nox.session(default=False, tags=["weekly"])
def coverage(session: nox.Session) -> None:
    """Run the tests on the CPU, and report which lines and branches they reach."""
    install_tests(session, *group("coverage"))
    arguments = session.posargs or PARALLEL
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", *arguments, env=environment())
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "report")
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        table = session.run("coverage", "report", "--format=markdown", silent=True)
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(f"## Coverage\n\n{table}\n")


# --- More benchmarks ----------------------------------------------------------------------------


@nox.session(name="bench-overheads", default=False, tags=["weekly"])
def bench_overheads(session: nox.Session) -> None:
    """Compare compiles with jitcount, and with its neighbours, to bare ones, on the CPU."""
    install_tests(session, *group("neighbours"))
    run_benchmarks(session, "overheads", ["overheads"])


@nox.session(name="bench-plugin", default=False, tags=["weekly"])
def bench_plugin(session: nox.Session) -> None:
    """Time whole runs of pytest with and without the plugin, on the CPU."""
    install_tests(session)
    run_benchmarks(session, "plugin", ["plugin"])


@nox.session(name="bench-buckets", default=False, tags=["weekly"])
def bench_buckets(session: nox.Session) -> None:
    """Measure padding to a few sizes beside padding by hand and none, and print bucket rules."""
    install_tests(session)
    run_benchmarks(session, "buckets", ["buckets"])
    session.run("python", "benchmarks/bucket_rules.py", env=environment())


@nox.session(name="bench-targets", default=False, tags=["weekly"])
def bench_targets(session: nox.Session) -> None:
    """Time record(targets=...) beside the bare compiles for a TPU and a GPU, without them."""
    install_compilers(session)
    run_benchmarks(session, "targets", ["targets"])


@nox.session(name="bench-profile", default=False, tags=["weekly"])
def bench_profile(session: nox.Session) -> None:
    """Time compiles without the lines that a profile blames, and with and without a profile."""
    install_compilers(session)
    session.run("python", "benchmarks/profile_costs.py", env=environment())
    for target in ("", *(backend.target for backend in reversed(ACCELERATORS))):
        where = ("--target", target) if target else ()
        # A GPU's compiler says too little about its fusions: its table is shown, and not judged.
        codes = [0, 1] if target.startswith("cuda") else [0]
        command = ("python", "benchmarks/attribution.py", *where, *session.posargs)
        session.run(*command, env=environment(), success_codes=codes)


@nox.session(name="bench-as-if", default=False, tags=["weekly"])
def bench_as_if(session: nox.Session) -> None:
    """Time cached and first calls inside of as_if, beside the same calls outside."""
    install_compilers(session)
    run_benchmarks(session, "as_if", ["as_if"])


# --- Releases of JAX side by side ---------------------------------------------------------------

# Each release with a Python that has it.
RELEASES = {
    "0.7.2": "3.11",
    "0.8.3": "3.11",
    "0.9.2": "3.11",
    "0.10.2": "3.11",
    "0.11.0": "3.12",
    "0.12.0.1": "3.12",
}


def add_suite(release: str, python: str) -> None:
    """Add the session ``suite-<release>``."""

    def suite_of_release(session: nox.Session) -> None:
        install(session, release=release)
        run_suite(session, VERSIONS / f"{release}.json")

    suite_of_release.__doc__ = f"Run the suite's cases under JAX {release}."
    nox.session(name=f"suite-{release}", python=python, default=False)(suite_of_release)


def score_file(release: str) -> Path:
    """Return the file that keeps the score of a release."""
    return RESULTS / f"score-{release}.json"


def add_score(release: str, python: str) -> None:
    """Add the session ``score-<release>``."""

    def score_of_release(session: nox.Session) -> None:
        install(session, release=release)
        RESULTS.mkdir(exist_ok=True)
        env = environment() | {"JAX_NUM_CPU_DEVICES": "2"}
        command = ("python", "-m", "tools.score", "--json", str(score_file(release)))
        session.run(*command, env=env)

    score_of_release.__doc__ = f"Count how often the cause is right under JAX {release}."
    nox.session(name=f"score-{release}", python=python, default=False)(score_of_release)


for _release, _python in RELEASES.items():
    add_suite(_release, _python)
for _release, _python in RELEASES.items():
    add_score(_release, _python)


@nox.session(default=False, venv_backend="none", tags=["weekly"])
def versions(session: nox.Session) -> None:
    """Run the suite under each JAX release, then compare: each bit, count and compile time."""
    shutil.rmtree(VERSIONS, ignore_errors=True)
    # Notified, not required: where an interpreter is missing, that session fails and says so, and
    # the others are still compared.
    for release, python in RELEASES.items():
        session.notify(f"suite-{release}-{python}")
    session.notify("versions-table")


@nox.session(name="versions-table", default=False)
def versions_table(session: nox.Session) -> None:
    """Compare the ledgers that the session versions has left."""
    session.install("-e", ".")
    paths = {release: VERSIONS / f"{release}.json" for release in RELEASES}
    found = [str(path) for path in paths.values() if path.exists()]
    missing = [release for release, path in paths.items() if not path.exists()]
    if len(found) > 1:
        session.run("jitcount", "compare", *found)
    if missing:
        session.error(f"no ledger of JAX {', '.join(missing)}: its session above says why")


@nox.session(
    default=False, tags=["weekly"], requires=[f"score-{r}-{p}" for r, p in RELEASES.items()]
)
def score(session: nox.Session) -> None:
    """Show how often the cause is right, jitcount's and JAX's own, on each release."""
    session.install("-e", ".")
    files = [str(score_file(release)) for release in RELEASES]
    session.run("python", "-m", "tools.score", "--join", *files)


@nox.session(default=False, venv_backend="none", tags=["weekly"])
def museum(session: nox.Session) -> None:
    """Run what was ever compiled wrongly under every JAX release, and show where it is wrong."""
    shutil.rmtree(MUSEUM, ignore_errors=True)
    MUSEUM.mkdir(parents=True)
    listed = (ROOT / "tools" / "museum.py").read_text("utf-8").partition("RELEASES = (")[2]
    releases = re.findall(r'"([\d.]+)"', listed.partition("\n)")[0])
    env = environment() | {"JAX_NUM_CPU_DEVICES": "2"}
    run = ("uv", "run", "--quiet", "--isolated", "--no-project", "--with-editable", ".")
    ledgers = {release: MUSEUM / f"{release}.json" for release in releases}
    for release, ledger in ledgers.items():
        python = "3.11" if int(release.split(".")[1]) < 11 else "3.12"
        jax = ("--python", python, "--with", f"jax=={release}", "--with", f"jaxlib=={release}")
        command = ("python", "-m", "tools.museum", "--ledger", str(ledger))
        session.run(*run, *jax, *command, env=env, external=True)
    shown = ("python", "-m", "tools.museum", *map(str, ledgers.values()))
    session.run(*run, *shown, env=env, external=True)


# --- More ways to run the suite -----------------------------------------------------------------


@nox.session(default=False, tags=["weekly"])
def faults(session: nox.Session) -> None:
    """Put known faults under the suite's cases, and show which of them the suite notices."""
    install(session)
    env = environment() | {"JAX_NUM_CPU_DEVICES": "2"}
    session.run("python", "-m", "tools.faults", *session.posargs, env=env)


@nox.session(default=False, tags=["weekly"])
def drawn(session: nox.Session) -> None:
    """Draw 300 faults of single operations at random: at least 99 % must be noticed."""
    install(session)
    session.run("python", "-m", "tools.faults.drawn", *session.posargs, env=environment())


# The ways to run the same cases on one machine: arguments of the suite, and environment.
WAYS: dict[str, tuple[tuple[str, ...], dict[str, str | None]]] = {
    "1-device": ((), {"JAX_NUM_CPU_DEVICES": "1"}),
    "2-devices": ((), {"JAX_NUM_CPU_DEVICES": "2"}),
    "8-devices": ((), {"JAX_NUM_CPU_DEVICES": "8"}),
    "2-processes": (("--processes", "2"), {"JAX_NUM_CPU_DEVICES": "1"}),
    "x64": ((), {"JAX_ENABLE_X64": "1"}),
    "eager": ((), {"JAX_DISABLE_JIT": "1"}),
}


@nox.session(default=False, tags=["more"])
def modes(session: nox.Session) -> None:
    """Run the suite on one machine in six ways (devices, processes, x64, eager), then compare."""
    install(session)
    shutil.rmtree(MODES, ignore_errors=True)
    for way, (arguments, settings) in WAYS.items():
        run_suite(session, MODES / f"{way}.json", *arguments, env=environment() | settings)
    session.run("jitcount", "compare", *(str(MODES / f"{way}.json") for way in WAYS))


@nox.session(default=False, tags=["weekly"])
def seeds(session: nox.Session) -> None:
    """Run the suite with other data 200 times, or N times after --: no false alarm may come."""
    install(session)
    arguments = session.posargs or ["200"]
    session.run("python", "-m", "tools.seeds", *arguments, env=environment())


@nox.session(default=False, tags=["weekly"])
def tolerances(session: nox.Session) -> None:
    """Try derived tolerances with other data 200 times, and with every fault of a backend."""
    install(session)
    env = environment() | {"JAX_NUM_CPU_DEVICES": "2"}
    session.run("python", "-m", "tools.tolerances.seeds", *(session.posargs or ["200"]), env=env)
    session.run("python", "-m", "tools.tolerances.faults", env=env)


@nox.session(default=False, tags=["weekly"])
def hunt(session: nox.Session) -> None:
    """Hunt for programs that JAX compiles wrongly: an hour, or MINUTES and a SEED after --."""
    install(session, *group("hunt"))
    session.run("python", "-m", "tools.hunt", *session.posargs, env=environment())


@nox.session(default=False)
def compare(session: nox.Session) -> None:
    """Compare the ledgers in results/, or those that are named after --."""
    session.install("-e", ".")
    names = [f"{kind}{backend}" for kind in ("", "as-if-") for backend in BACKENDS]
    left = [path for name in names if (path := RESULTS / f"{name}.json").exists()]
    left += sorted([*VERSIONS.glob("*.json"), *MODES.glob("*.json")])
    session.run("jitcount", "compare", *(session.posargs or map(str, left)))


# --- Checks of the code, the pages and the package ----------------------------------------------


@nox.session(default=False, tags=["change"])
def docs(session: nox.Session) -> None:
    """Build the pages, strictly: a link or an anchor that leads nowhere fails."""
    session.install(*group("docs"))
    quiet = {"NO_MKDOCS_2_WARNING": "1"}  # the theme announces its successor at every build
    session.run("mkdocs", *(session.posargs or ("build",)), env=quiet)


@nox.session(default=False, tags=["change"])
def package(session: nox.Session) -> None:
    """Build wheel and sdist, check their contents and metadata, and use the wheel."""
    session.install(*group("package"))
    shutil.rmtree(DIST, ignore_errors=True)
    session.run("validate-pyproject", "pyproject.toml")
    session.run("pyproject-build", "--installer=uv", f"--outdir={DIST}")
    built = sorted(map(str, DIST.iterdir()))
    session.run("twine", "check", "--strict", *built)
    session.run("check-wheel-contents", str(DIST))
    session.install(*(path for path in built if path.endswith(".whl")))
    session.run("jitcount", "run", "--max", "4", "examples/train.py")


@nox.session(default=False, tags=["more"])
def workflows(session: nox.Session) -> None:
    """Check the workflows with actionlint, which its package downloads."""
    session.install(*group("workflows"))
    session.run("actionlint")


@nox.session(default=False, tags=["change"])
def lint(session: nox.Session) -> None:
    """Check style and formatting, and the workflows' security."""
    session.install(*group("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("zizmor", "--offline", "--quiet", "--pedantic", ".github")


@nox.session(default=False, tags=["change"])
def types(session: nox.Session) -> None:
    """Check types, strictly."""
    install(session, *group("types"))
    session.run("mypy", *session.posargs)


if __name__ == "__main__":
    nox.main()
