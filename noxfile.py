# /// script
# requires-python = ">=3.11"
# dependencies = ["nox[uv]>=2025.5"]
# ///
"""The sessions: the same tests and benchmarks under every install of JAX.

Plain ``nox`` runs the CPU tests and the CPU benchmarks, and closes with a table of what they found.
What follows ``--`` goes to pytest. Two settings come from the environment:

JITCOUNT_JAX    the JAX release to install (``0.7.2``); by default the newest that pip finds
JITCOUNT_CUDA   the CUDA release of the gpu sessions, 12 (default) or 13

Tags say when a session runs, beside the tests: `change` with every change (`.ci/run` and the
workflow read it), `more` in the workflow only, `weekly` there once a week.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import nox

if TYPE_CHECKING:
    from collections.abc import Callable

nox.needs_version = ">=2025.5"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = True

ROOT = Path(__file__).parent
RESULTS = ROOT / "results"
VERSIONS = RESULTS / "versions"
MODES = RESULTS / "modes"
DIST = ROOT / "dist"
PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")


# --- The backends -------------------------------------------------------------------------------


def has_cpu() -> bool:
    """A CPU is always there."""
    return True


def has_nvidia_gpu() -> bool:
    """Ask the driver's own tool; it comes with every driver, also in a container or under WSL."""
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


# A Google network card has the same vendor: the device tells a TPU.
GOOGLE = "0x1ae0"
TPU_DEVICES = frozenset(
    {"0x0027", "0x0056", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076", "0x007c", "0x0083"}
)


def has_tpu(pci_devices: Path = Path("/sys/bus/pci/devices")) -> bool:
    """Look for a TPU on the PCI bus, as libtpu does."""
    return any(
        vendor.read_text().strip() == GOOGLE
        and vendor.with_name("device").read_text().strip() in TPU_DEVICES
        for vendor in pci_devices.glob("*/vendor")
    )


@dataclass(frozen=True)
class Backend:
    """All that the sessions need to know of one backend."""

    name: str
    """As in ``tests-gpu``; also the platform that JAX reports."""

    device: str
    """For people."""

    extra: str
    """What ``jax[...]`` is installed with."""

    jax_platforms: str
    """The value of ``JAX_PLATFORMS``."""

    compiler: str
    """What ``jitcount[...]`` is installed with to have the compiler alone."""

    target: str
    """For which that compiler compiles the suite."""

    is_present: Callable[[], bool]


def backends(cuda: str) -> dict[str, Backend]:
    """The table of backends, for a CUDA release."""
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


def requirement(backend: Backend, release: str) -> str:
    """JAX for a backend, in a release; an empty one stands for the newest."""
    return f"jax{backend.extra}=={release}" if release else f"jax{backend.extra}"


def require_device(session: nox.Session, backend: Backend) -> None:
    """Fail at once, before anything is downloaded, where the device is not there."""
    if not backend.is_present():
        kind = session.name.partition("-")[0]
        session.error(
            f"{session.name} needs {backend.device}, and this machine has none: nothing was "
            f"installed or run. {kind}-cpu needs no device"
        )
    if backend.compiler and backend.compiler not in PROJECT["project"]["optional-dependencies"]:
        session.error(f"JITCOUNT_CUDA is {CUDA!r}; it can be 12 or 13")


def install(session: nox.Session, backend: Backend, *more: str) -> None:
    """Install jitcount and the test tools, then make sure that JAX has the backend."""
    session.install(requirement(backend, JAX), "-e", ".", *group("test"), *more)
    session.run("python", "-m", "tools.backend", backend.name, env=environment(backend))


def environment(backend: Backend) -> dict[str, str | None]:
    """The environment of a run: one backend, and no compile served from another day's cache.

    Many tests start a process that imports JAX: a second instead of three where Python may keep
    its bytecode, which some machines forbid.
    """
    return {
        "JAX_PLATFORMS": backend.jax_platforms,
        "JAX_COMPILATION_CACHE_DIR": None,
        "PYTHONDONTWRITEBYTECODE": None,
    }


def group(name: str) -> list[str]:
    """The requirements of a dependency group in pyproject.toml."""
    return list(nox.project.dependency_groups(PROJECT, name))


# --- The sessions -------------------------------------------------------------------------------


# What looks closely takes long, and has a session of its own: the tests are done in three minutes.
QUICK = ("-m", "not thorough")


def run_tests(session: nox.Session, backend: Backend) -> None:
    """Run the tests on a backend, then the suite's cases, and keep their ledger."""
    require_device(session, backend)
    install(session, backend)
    # Two workers for the CPU; an accelerator is one process's at a time.
    workers = ("-n2", "--dist=worksteal") if backend.name == "cpu" else ()
    session.run("pytest", *workers, *(session.posargs or QUICK), env=environment(backend))
    if not session.posargs:
        run_suite(session, RESULTS / f"{backend.name}.json", environment(backend))


def run_suite(
    session: nox.Session, ledger: Path, env: dict[str, str | None], *arguments: str
) -> None:
    """Run the suite's cases; fails when a result or a count is wrong."""
    session.run("jitcount", "suite", "--ledger", str(ledger), *arguments, env=env)


# The benchmarks that every backend runs; the others have sessions of their own.
EVERYWHERE = ("calls", "ratios", "compare")


def run_benchmarks(session: nox.Session, backend: Backend) -> None:
    """Run the benchmarks on a backend, keep their figures as JSON and close with a table.

    It fails where a limit does not hold.
    """
    require_device(session, backend)
    install(session, backend)
    RESULTS.mkdir(exist_ok=True)
    figures = RESULTS / f"bench-{backend.name}.json"
    session.run(
        "pytest", *(f"benchmarks/test_{name}.py" for name in EVERYWHERE), "--quiet",
        "--benchmark-columns=min,median,iqr,rounds", f"--benchmark-json={figures}",
        *session.posargs,
        env=environment(backend),
    )  # fmt: skip
    session.run("python", "benchmarks/summary.py", str(figures), env=environment(backend))


def add_sessions(backend: Backend) -> None:
    """Two sessions for a backend, under the names that users type."""

    def tests(session: nox.Session) -> None:
        run_tests(session, backend)

    def bench(session: nox.Session) -> None:
        run_benchmarks(session, backend)

    tests.__doc__ = f"Test results and compile counts on {backend.device}."
    bench.__doc__ = f"Time cold, retraced and cached calls on {backend.device}."
    is_default = backend.name == "cpu"
    nox.session(name=f"tests-{backend.name}", default=is_default)(tests)
    more = ["more"] if is_default else []
    nox.session(name=f"bench-{backend.name}", default=is_default, tags=more)(bench)


for _backend in BACKENDS.values():
    add_sessions(_backend)


def install_compilers(session: nox.Session, *backends: Backend) -> None:
    """Install jitcount, the test tools and the compilers of backends that need not be there."""
    extras = ",".join(backend.compiler for backend in backends)
    jax = requirement(BACKENDS["cpu"], JAX)
    session.install(jax, "-e", f".[{extras}]", *group("test"))


SHARDED = ("sharded-*", "transformer-sharded")


def add_aot(backend: Backend) -> None:
    """A session for a backend's real compiler on a machine that does not have the device."""

    def aot(session: nox.Session) -> None:
        install_compilers(session, backend)
        env = environment(BACKENDS["cpu"])
        pages = ("tests/test_pages.py", "tests/test_examples.py")
        tests = ("tests/_targets", "tests/_emulate", *pages)
        session.run("pytest", *tests, "-m", "aot", "-n2", *session.posargs, env=env)
        if not session.posargs:
            # What is compiled is run here, too, and its results are checked. What is sharded needs
            # as many devices.
            ledger = RESULTS / f"as-if-{backend.name}-sharded.json"
            eight = env | {"JAX_NUM_CPU_DEVICES": "8"}
            run_suite(session, ledger, eight, "--as-if", backend.target, "--", *SHARDED)
            emulated = RESULTS / f"as-if-{backend.name}.json"
            run_suite(session, emulated, env, "--as-if", backend.target)

    aot.__doc__ = f"Compile the suite for {backend.device} with its real compiler, and compute it."
    nox.session(name=f"aot-{backend.name}", default=False, tags=["change"])(aot)


for _backend in BACKENDS.values():
    if _backend.target:
        add_aot(_backend)


@nox.session(default=False, tags=["more"])
def emulated(session: nox.Session) -> None:
    """Compute the suite as a TPU and a GPU would, beside the CPU's own results, and compare."""
    there = [backend for backend in BACKENDS.values() if backend.target]
    install_compilers(session, *there)
    env = environment(BACKENDS["cpu"])
    session.run("pytest", "tests/test_pages.py", "-m", "aot", env=env)  # some need both compilers
    ledgers = {"": RESULTS / "as-if-cpu.json"}
    ledgers |= {backend.target: RESULTS / f"as-if-{backend.name}.json" for backend in there}
    for target, ledger in ledgers.items():
        run_suite(session, ledger, env, *(("--as-if", target) if target else ()))
    session.run("jitcount", "compare", *map(str, ledgers.values()))


@nox.session(default=False, tags=["change"])
def libraries(session: nox.Session) -> None:
    """Test causes through equinox, flax, haiku, numpyro, optax and jaxtyping, on the CPU."""
    cpu = BACKENDS["cpu"]
    install(session, cpu, *group("libraries"))
    session.run("pytest", "tests/libraries", *session.posargs, env=environment(cpu))


@nox.session(default=False, tags=["more"])
def field(session: nox.Session) -> None:
    """Run small real programs with and without jitcount, and check each recompile's cause."""
    cpu = BACKENDS["cpu"]
    install(session, cpu, *group("libraries"))
    session.run("pytest", "tests/field", "-n2", *session.posargs, env=environment(cpu))


@nox.session(default=False, tags=["change"])
def thorough(session: nox.Session) -> None:
    """Run the tests that take long, on the CPU: random programs, every fault, many processes."""
    cpu = BACKENDS["cpu"]
    install(session, cpu)
    command = ("pytest", "-m", "thorough", "-n2", "--dist=worksteal")
    session.run(*command, *session.posargs, env=environment(cpu))


@nox.session(default=False, python="3.11", venv_backend="uv", tags=["weekly"])
def lowest(session: nox.Session) -> None:
    """Run the tests with the lowest versions that are declared, of the oldest Python."""
    session.install("--resolution", "lowest-direct", "-e", ".", *group("test"))
    env = environment(BACKENDS["cpu"])
    session.run("pytest", "-n2", "--dist=worksteal", *session.posargs, env=env)


@nox.session(default=False, tags=["weekly"])
def attack(session: nox.Session) -> None:
    """Damage files, mutate command lines, interrupt runs: thousands; no traceback, nothing lost."""
    cpu = BACKENDS["cpu"]
    install(session, cpu)
    env = environment(cpu) | {"JITCOUNT_ATTACK": "full"}
    session.run("pytest", "tests/attack", "-n2", "--dist=worksteal", *session.posargs, env=env)


@nox.session(name="attack-as-if", default=False, tags=["weekly"])
def attack_as_if(session: nox.Session) -> None:
    """Run hundreds of random programs as if on a TPU and a GPU, exactly: the CPU's results."""
    install_compilers(session, BACKENDS["gpu"], BACKENDS["tpu"])
    env = environment(BACKENDS["cpu"]) | {"JITCOUNT_ATTACK": "full"}
    tests = "tests/_emulate/test_random_programs.py"
    session.run("pytest", tests, "-n2", "--dist=worksteal", *session.posargs, env=env)


def run_apart(session: nox.Session, name: str) -> None:
    """Run one file of benchmarks that is not for every backend, and close with its ratios.

    It fails where a limit does not hold.
    """
    RESULTS.mkdir(exist_ok=True)
    figures = RESULTS / f"bench-{name}.json"
    env = environment(BACKENDS["cpu"])
    command = ("pytest", f"benchmarks/test_{name}.py", "--quiet", f"--benchmark-json={figures}")
    session.run(*command, *session.posargs, env=env)
    session.run("python", "benchmarks/summary.py", str(figures), env=env)


@nox.session(name="bench-overheads", default=False, tags=["weekly"])
def bench_overheads(session: nox.Session) -> None:
    """Hold compiles with jitcount, and with its neighbours, against bare ones, on the CPU."""
    install(session, BACKENDS["cpu"], *group("neighbours"))
    run_apart(session, "overheads")


@nox.session(name="bench-plugin", default=False, tags=["weekly"])
def bench_plugin(session: nox.Session) -> None:
    """Time whole runs of pytest with and without the plugin, on the CPU."""
    install(session, BACKENDS["cpu"])
    run_apart(session, "plugin")


@nox.session(name="bench-targets", default=False, tags=["weekly"])
def bench_targets(session: nox.Session) -> None:
    """Time ``record(targets=...)`` beside the bare compiles for a TPU and a GPU, without them."""
    install_compilers(session, BACKENDS["gpu"], BACKENDS["tpu"])
    run_apart(session, "targets")


@nox.session(name="bench-profile", default=False, tags=["weekly"])
def bench_profile(session: nox.Session) -> None:
    """Leave out the lines that a profile blames, on the CPU and for targets; what it costs."""
    install_compilers(session, BACKENDS["gpu"], BACKENDS["tpu"])
    env = environment(BACKENDS["cpu"])
    session.run("python", "benchmarks/profile_costs.py", env=env)
    session.run("python", "benchmarks/attribution.py", *session.posargs, env=env)
    for target in ("tpu:v5e", "cuda:h100"):
        # Of a GPU's fusions the compiler says too little: its table is shown, and not judged.
        codes = [0, 1] if target.startswith("cuda") else [0]
        session.run(
            "python", "benchmarks/attribution.py", "--target", target, *session.posargs,
            env=env, success_codes=codes,
        )  # fmt: skip


@nox.session(name="bench-as-if", default=False, tags=["weekly"])
def bench_as_if(session: nox.Session) -> None:
    """Time calls inside of ``as_if`` beside the same calls outside, and first ones."""
    install_compilers(session, BACKENDS["gpu"], BACKENDS["tpu"])
    run_apart(session, "as_if")


# The JAX releases that are held side by side, each with a Python that has it.
RELEASES = {
    "0.7.2": "3.11",
    "0.8.3": "3.11",
    "0.9.2": "3.11",
    "0.10.2": "3.11",
    "0.11.0": "3.12",
    "0.12.0.1": "3.12",
}


def add_suite(release: str, python: str) -> None:
    """A session for the suite under one release."""

    def suite_of_release(session: nox.Session) -> None:
        cpu = BACKENDS["cpu"]
        session.install(requirement(cpu, release), "-e", ".")
        run_suite(session, VERSIONS / f"{release}.json", environment(cpu))

    suite_of_release.__doc__ = f"Run the suite's cases under JAX {release}."
    nox.session(name=f"suite-{release}", python=python, default=False)(suite_of_release)


for _release, _python in RELEASES.items():
    add_suite(_release, _python)


@nox.session(default=False, venv_backend="none", tags=["weekly"])
def versions(session: nox.Session) -> None:
    """Run the suite under each JAX release, then compare: each bit, count and compile time."""
    shutil.rmtree(VERSIONS, ignore_errors=True)
    # Notified, not required: where an interpreter is missing that session fails and says so, and
    # the others are still compared.
    for release, python in RELEASES.items():
        session.notify(f"suite-{release}-{python}")
    session.notify("versions-table")


@nox.session(name="versions-table", default=False)
def versions_table(session: nox.Session) -> None:
    """Compare the ledgers that ``versions`` left."""
    session.install("-e", ".")
    paths = {release: VERSIONS / f"{release}.json" for release in RELEASES}
    there = [str(path) for path in paths.values() if path.exists()]
    missing = [release for release, path in paths.items() if not path.exists()]
    if len(there) > 1:
        session.run("jitcount", "compare", *there)
    if missing:
        session.error(f"no ledger of JAX {', '.join(missing)}: its session above says why")


def score_file(release: str) -> Path:
    """Where the score of a release is kept."""
    return RESULTS / f"score-{release}.json"


def add_score(release: str, python: str) -> None:
    """A session for the score of one release."""

    def score_of_release(session: nox.Session) -> None:
        cpu = BACKENDS["cpu"]
        session.install(requirement(cpu, release), "-e", ".")
        RESULTS.mkdir(exist_ok=True)
        env = environment(cpu) | {"JAX_NUM_CPU_DEVICES": "2"}
        command = ("python", "-m", "tools.score", "--json", str(score_file(release)))
        session.run(*command, env=env)

    score_of_release.__doc__ = f"Score the causes that are found under JAX {release}."
    nox.session(name=f"score-{release}", python=python, default=False)(score_of_release)


for _release, _python in RELEASES.items():
    add_score(_release, _python)


@nox.session(
    default=False, tags=["weekly"], requires=[f"score-{r}-{p}" for r, p in RELEASES.items()]
)
def score(session: nox.Session) -> None:
    """Show how often the cause is right, jitcount's and JAX's own, on each release."""
    session.install("-e", ".")
    files = [str(score_file(release)) for release in RELEASES]
    session.run("python", "-m", "tools.score", "--join", *files)


@nox.session(default=False, tags=["weekly"])
def faults(session: nox.Session) -> None:
    """Put known faults under the suite's cases, and show which of them the suite notices."""
    cpu = BACKENDS["cpu"]
    session.install(requirement(cpu, JAX), "-e", ".")
    env = environment(cpu) | {"JAX_NUM_CPU_DEVICES": "2"}
    session.run("python", "-m", "tools.faults", *session.posargs, env=env)


# More ways to run the same cases on one machine: arguments of the suite, and environment.
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
    cpu = BACKENDS["cpu"]
    session.install(requirement(cpu, JAX), "-e", ".")
    shutil.rmtree(MODES, ignore_errors=True)
    for way, (arguments, settings) in WAYS.items():
        run_suite(session, MODES / f"{way}.json", environment(cpu) | settings, *arguments)
    session.run("jitcount", "compare", *(str(MODES / f"{way}.json") for way in WAYS))


@nox.session(default=False, tags=["weekly"])
def seeds(session: nox.Session) -> None:
    """Run the suite with other data 200 times, or as often as given: no result may be accused."""
    cpu = BACKENDS["cpu"]
    session.install(requirement(cpu, JAX), "-e", ".")
    arguments = session.posargs or ["200"]
    session.run("python", "-m", "tools.seeds", *arguments, env=environment(cpu))


@nox.session(default=False)
def compare(session: nox.Session) -> None:
    """Compare the ledgers that are there, or those named after ``--``."""
    session.install("-e", ".")
    names = [f"{kind}{backend}" for kind in ("", "as-if-") for backend in BACKENDS]
    left = [path for name in names if (path := RESULTS / f"{name}.json").exists()]
    left += sorted([*VERSIONS.glob("*.json"), *MODES.glob("*.json")])
    session.run("jitcount", "compare", *(session.posargs or map(str, left)))


@nox.session(default=False, tags=["change"])
def docs(session: nox.Session) -> None:
    """Build the pages, strictly: a link or an anchor that leads nowhere fails."""
    session.install(*group("docs"))
    quiet = {"NO_MKDOCS_2_WARNING": "1"}  # news of the theme's makers, at every build
    session.run("mkdocs", *(session.posargs or ("build",)), env=quiet)


@nox.session(default=False, tags=["change"])
def package(session: nox.Session) -> None:
    """Build wheel and sdist, check what is in them and said of them, and use the wheel."""
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
    """Check the workflows with actionlint, which its package fetches from where it is released."""
    session.install(*group("workflows"))
    session.run("actionlint")


@nox.session(default=False, tags=["weekly"])
def coverage(session: nox.Session) -> None:
    """Run the tests on the CPU, and report which lines and branches they reach."""
    cpu = BACKENDS["cpu"]
    install(session, cpu, *group("coverage"))
    arguments = session.posargs or ("-n2", "--dist=worksteal")
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", *arguments, env=environment(cpu))
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "report")
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        table = session.run("coverage", "report", "--format=markdown", silent=True)
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(f"## Coverage\n\n{table}\n")


@nox.session(default=False)
def core(session: nox.Session) -> None:
    """Test what must hold on every system: what is seen, explained and kept of a compile."""
    cpu = BACKENDS["cpu"]
    install(session, cpu)
    rooms = ("_jax", "observe", "explain", "recorder", "numerics", "ledger", "show")
    tests = [f"tests/{room}" for room in rooms]
    session.run("pytest", *tests, "tests/test_problem.py", *session.posargs, env=environment(cpu))


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
    session.install(requirement(BACKENDS["cpu"], JAX), "-e", ".", *group("types"))
    session.run("mypy", *session.posargs)


if __name__ == "__main__":
    nox.main()
