"""What an import looks like while it is watched. Real modules, the real import system."""

from __future__ import annotations

import copy
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.resources
import importlib.util
import inspect
import pkgutil
import runpy
import subprocess
import sys
import threading
import time
import zipfile
import zipimport

import pytest

from stepfork.errors import ConfigError
from stepfork.instrument.import_watch import ImportWatch


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder on `sys.path`; what is imported from it is forgotten again."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("watched"):
            del sys.modules[name]


@pytest.fixture
def watch():
    """An installed watch of everything whose name begins with "watched"; `told` lists the modules."""
    before = list(sys.meta_path)
    made = ImportWatch()
    made.told = []
    made.watch(lambda name: name.startswith("watched"), made.told.append)
    made.install()
    yield made
    made.remove()
    assert sys.meta_path == before


def write(folder, **files):
    for name, text in files.items():
        path = folder.joinpath(*name.split("__in__")[::-1])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(text)
    importlib.invalidate_caches()


SEES_ITSELF = "loaders = (__loader__, __spec__.loader)\ndef f():\n    return 1\n"


def is_untouched(module, kind=importlib.machinery.SourceFileLoader):
    return all(type(loader) is kind for loader in (module.__loader__, module.__spec__.loader))


# The callback.


def test_runs_right_after_the_execution(folder, watch):
    write(folder, watched_a="import sys\nx = 1\ndone = True\n", other_a="x = 1")
    seen = []
    watch.watch(lambda name: name == "watched_a", lambda module: seen.append(dict(vars(module))))
    import other_a
    import watched_a

    assert other_a.x == 1
    assert watch.told == [watched_a]
    assert seen[0]["done"] is True
    import watched_a  # known: not executed again

    assert len(watch.told) == 1


def test_runs_again_after_a_reload(folder, watch):
    write(folder, watched_reload=SEES_ITSELF)
    import watched_reload

    importlib.reload(watched_reload)
    assert watch.told == [watched_reload] * 2
    assert is_untouched(watched_reload)
    assert watched_reload.loaders == (watched_reload.__loader__,) * 2
    del sys.modules["watched_reload"]
    again = importlib.import_module("watched_reload")
    assert watch.told[2] is again is not watched_reload


def test_may_change_the_module_before_anyone_sees_it(folder, watch):
    write(folder, watched_change="x = 1", watched_user="from watched_change import x")
    watch.watch(lambda name: name == "watched_change", lambda module: setattr(module, "x", 2))
    import watched_user

    assert watched_user.x == 2


def test_modules_of_a_package_and_circular_imports(folder, watch):
    write(
        folder,
        __init____in__watched_pkg="from watched_pkg import a\n",
        a__in__watched_pkg="import watched_pkg.b\ndef f():\n    return watched_pkg.b.g()\n",
        b__in__watched_pkg="from watched_pkg import a\nimport watched_pkg\ndef g(): return a.f.__name__\n",
    )
    import watched_pkg

    assert [module.__name__ for module in watch.told] == ["watched_pkg.b", "watched_pkg.a", "watched_pkg"]
    assert watched_pkg.a.f() == "f"


def test_a_callback_may_import(folder, watch):
    write(folder, watched_first="x = 1", watched_second="import watched_first")
    watch.watch(
        lambda name: name == "watched_first", lambda module: importlib.import_module("watched_second")
    )
    import watched_first

    assert [module.__name__ for module in watch.told] == ["watched_first", "watched_second"]
    assert watched_first.x == 1


def test_a_module_that_raises_is_not_told_of(folder, watch):
    write(folder, watched_raises="import nowhere_at_all")
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all"):
        import watched_raises  # noqa: F401
    assert watch.told == []
    assert "watched_raises" not in sys.modules
    with pytest.raises(ModuleNotFoundError, match="watched_missing"):
        import watched_missing  # noqa: F401


def test_a_module_that_replaces_itself(folder, watch):
    write(folder, watched_self="import sys\nclass M: x = 1\nsys.modules[__name__] = M\n")
    import watched_self

    assert watched_self.x == 1
    assert watch.told[0].M is watched_self


def test_errors_of_a_callback_stay_away_from_the_import(folder):
    write(folder, watched_error="x = 1")
    told, later = [], []
    watch = ImportWatch(on_error=lambda name, error: told.append((name, error)))
    watch.watch(lambda name: name == "watched_error", lambda module: 1 / 0)
    watch.watch(lambda name: name == "watched_error", later.append)
    watch.install()
    try:
        import watched_error
    finally:
        watch.remove()
    assert watched_error.x == 1
    assert watch.errors == told
    assert [(name, type(error)) for name, error in told] == [("watched_error", ZeroDivisionError)]
    assert later == [watched_error]


def test_errors_of_a_callback_are_kept_where_nobody_listens(folder, watch):
    write(folder, watched_error="x = 1")
    watch.watch(lambda name: name == "watched_error", lambda module: 1 / 0)
    import watched_error

    assert watched_error.x == 1
    assert [name for name, _ in watch.errors] == ["watched_error"]


def test_our_own_errors_are_the_users(folder, watch):
    write(folder, watched_config="x = 1")
    problems = [ConfigError("no such tool")]

    def check(module):
        if problems:
            raise problems[0]

    watch.watch(lambda name: name == "watched_config", check)
    with pytest.raises(ConfigError, match="no such tool"):
        import watched_config
    assert "watched_config" not in sys.modules
    problems.clear()
    import watched_config

    assert watched_config.x == 1


# What stays as it was.


def test_the_loader_stands_in_its_place_while_the_module_runs_and_after(folder, watch):
    write(folder, watched_loader=SEES_ITSELF)
    import watched_loader

    assert is_untouched(watched_loader)
    assert watched_loader.loaders == (watched_loader.__loader__, watched_loader.__loader__)
    assert inspect.getsource(watched_loader.f) == "def f():\n    return 1\n"
    assert watched_loader.__loader__.get_source("watched_loader") == SEES_ITSELF
    assert watched_loader.__cached__ == watched_loader.__spec__.cached
    assert "watched_loader" in repr(watched_loader.__spec__)
    assert repr(watched_loader).startswith("<module 'watched_loader' from ")


def test_a_spec_that_is_only_looked_at_looks_as_always(folder, watch):
    write(folder, watched_looked_at="x = 1\n")
    spec = importlib.util.find_spec("watched_looked_at")
    assert isinstance(spec.loader, importlib.machinery.SourceFileLoader)
    assert spec.loader.get_source("watched_looked_at") == "x = 1\n"
    assert not spec.loader.is_package("watched_looked_at")
    assert not hasattr(spec.loader, "nothing")
    assert copy.copy(spec.loader).get_source("watched_looked_at") == "x = 1\n"
    assert pkgutil.resolve_name("watched_looked_at:x") == 1
    assert len(watch.told) == 1


def test_specs_loaded_by_hand(folder, watch):
    write(folder, watched_by_hand=SEES_ITSELF)
    spec = importlib.util.find_spec("watched_by_hand")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert watch.told == [module]
    assert is_untouched(module)


def test_runpy(folder, watch, capsys):
    write(
        folder,
        watched_run="print(__name__)\n",
        __main____in__watched_run_pkg="import watched_run_pkg as p\nname = p.__name__",
    )
    write(folder, __init____in__watched_run_pkg="")
    assert runpy.run_module("watched_run", run_name="__main__")["__name__"] == "__main__"
    assert capsys.readouterr().out == "__main__\n"
    assert runpy.run_module("watched_run_pkg")["name"] == "watched_run_pkg"


def test_resources(folder, watch):
    write(folder, __init____in__watched_resources="")
    (folder / "watched_resources" / "data.txt").write_text("data")
    assert pkgutil.get_data("watched_resources", "data.txt") == b"data"
    assert importlib.resources.files("watched_resources").joinpath("data.txt").read_text() == "data"
    sys.modules.pop("watched_resources")
    assert importlib.resources.files("watched_resources").joinpath("data.txt").read_text() == "data"
    import watched_resources

    assert [info.name for info in pkgutil.iter_modules(watched_resources.__path__)] == []
    assert [info.name for info in pkgutil.iter_modules([str(folder)])] == ["watched_resources"]


def test_zip_files(folder, watch, monkeypatch):
    with zipfile.ZipFile(folder / "archive.zip", "w") as archive:
        archive.writestr("watched_zipped.py", SEES_ITSELF)
        archive.writestr("watched_zipped_pkg/__init__.py", SEES_ITSELF)
        archive.writestr("watched_zipped_pkg/data.txt", "data")
    monkeypatch.syspath_prepend(folder / "archive.zip")
    import watched_zipped
    import watched_zipped_pkg

    assert watch.told == [watched_zipped, watched_zipped_pkg]
    assert is_untouched(watched_zipped, zipimport.zipimporter)
    assert inspect.getsource(watched_zipped.f) == "def f():\n    return 1\n"
    assert pkgutil.get_data("watched_zipped_pkg", "data.txt") == b"data"
    assert importlib.resources.files(watched_zipped_pkg).joinpath("data.txt").read_text() == "data"
    importlib.reload(watched_zipped)
    assert is_untouched(watched_zipped, zipimport.zipimporter)
    assert len(watch.told) == 3


def test_namespace_packages(folder, watch, monkeypatch):
    write(folder / "one", a__in__watched_space="x = 1")
    write(folder / "two", b__in__watched_space="x = 2")
    monkeypatch.syspath_prepend(folder / "one")
    import watched_space.a

    monkeypatch.syspath_prepend(folder / "two")  # the package follows sys.path
    import watched_space.b

    assert watch.told == [watched_space.a, watched_space.b]
    assert type(watched_space.__path__).__name__ == "_NamespacePath"
    assert type(watched_space.__loader__).__name__ == "NamespaceLoader"
    importlib.reload(watched_space)


def test_rewritten_asserts(folder, watch):
    write(folder, watched_assert="def check():\n    left = [1]\n    assert left == [2]\n")
    pytest.register_assert_rewrite("watched_assert")
    import watched_assert

    pytest.register_assert_rewrite("watched_assert")  # would warn if the loader were not pytest's
    with pytest.raises(AssertionError, match=r"assert \[1\] == \[2\]"):
        watched_assert.check()
    assert watch.told == [watched_assert]
    assert type(watched_assert.__loader__).__name__ == "AssertionRewritingHook"
    assert watched_assert.__spec__.loader is watched_assert.__loader__


def test_builtin_frozen_and_extension_modules():
    program = (
        "import sys, importlib\n"
        "from stepfork.instrument.import_watch import ImportWatch\n"
        "names, told = ['__hello__', '_xxsubinterpreters', 'faulthandler', '_lsprof', '_testcapi'], []\n"
        "names = [n for n in names if n not in sys.modules and importlib.util.find_spec(n)]\n"
        "plain = {n: importlib.util.find_spec(n).loader for n in names}\n"
        "watch = ImportWatch(); watch.watch(names.__contains__, told.append); watch.install()\n"
        "modules = [importlib.import_module(n) for n in names]\n"
        "assert told == modules and len(told) > 1, told\n"
        "assert all(m.__loader__ == m.__spec__.loader == plain[m.__name__] for m in modules)\n"
    )
    program = "import importlib.util\n" + program
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.returncode == 0


def test_metadata_and_caches(watch):
    assert importlib.metadata.version("pytest") == pytest.__version__
    importlib.invalidate_caches()


# Other finders.


class Asking(importlib.abc.MetaPathFinder):
    """Starts the search anew and wraps what it finds, as post-import hooks do."""

    def __init__(self):
        self.asked = []
        self.busy = False

    def find_spec(self, name, path=None, target=None):
        if self.busy or not name.startswith("watched"):
            return None
        self.asked.append(name)
        self.busy = True
        try:
            return importlib.util.find_spec(name)
        finally:
            self.busy = False


class Claiming(importlib.abc.MetaPathFinder):
    """Finds by itself and asks nobody."""

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.PathFinder.find_spec(name, path) if name.startswith("watched") else None


@pytest.mark.parametrize("place", [0, 1], ids=["before ours", "behind ours"])
@pytest.mark.parametrize("count", [1, 2])
def test_finders_that_search_anew(folder, watch, place, count):
    write(folder, watched_anew=SEES_ITSELF)
    finders = [Asking() for _ in range(count)]
    for finder in finders:
        sys.meta_path.insert(place, finder)
    try:
        import watched_anew
    finally:
        for finder in finders:
            sys.meta_path.remove(finder)
    assert all(finder.asked for finder in finders)
    assert watch.told == [watched_anew]
    assert is_untouched(watched_anew)


@pytest.mark.parametrize("first", ["theirs", "ours"])
def test_together_with_wrapt(folder, first):
    write(folder, watched_wrapt=SEES_ITSELF)
    # in a process of its own: wrapt never takes its finder away
    program = f"""
import sys, wrapt
from stepfork.instrument.import_watch import ImportWatch
sys.path.insert(0, {str(folder)!r})
theirs, ours, watch = [], [], ImportWatch()
watch.watch("watched_wrapt".__eq__, ours.append)
watch.install()
wrapt.register_post_import_hook(theirs.append, "watched_wrapt")
if {first!r} == "ours":
    watch.install()
assert (sys.meta_path[0] is watch) == ({first!r} == "ours")
import watched_wrapt as module
assert ours == theirs == [module]
kinds = [type(loader).__name__ for loader in (*module.loaders, module.__loader__, module.__spec__.loader)]
assert kinds == ["SourceFileLoader"] * 4, kinds
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_finder_before_ours_that_asks_nobody(folder, watch):
    write(folder, watched_claimed="x = 1", watched_unclaimed="x = 1")
    claiming = Claiming()
    sys.meta_path.insert(0, claiming)
    try:
        import watched_claimed

        assert watch.told == []
        watch.sweep()
        assert watch.told == [watched_claimed]
        watch.install()
        assert sys.meta_path[:2] == [watch, claiming]
        import watched_unclaimed
    finally:
        sys.meta_path.remove(claiming)
    assert watch.told == [watched_claimed, watched_unclaimed]


def test_two_watches(folder, watch):
    write(folder, watched_twice=SEES_ITSELF)
    told = []
    other = ImportWatch()
    other.watch(lambda name: name == "watched_twice", told.append)
    other.install()
    try:
        import watched_twice
    finally:
        other.remove()
    assert watch.told == told == [watched_twice]
    assert is_untouched(watched_twice)


def test_loaders_of_the_old_protocol_are_left_alone(folder, watch):
    class Old:
        def load_module(self, name):
            module = sys.modules.setdefault(
                name, importlib.util.module_from_spec(importlib.machinery.ModuleSpec(name, None))
            )
            module.x = 1
            return module

    class Finder:
        def find_spec(self, name, path=None, target=None):
            return importlib.machinery.ModuleSpec(name, Old()) if name == "watched_old" else None

    finder = Finder()
    sys.meta_path.append(finder)
    try:
        with pytest.warns(ImportWarning, match="exec_module"):
            import watched_old
    finally:
        sys.meta_path.remove(finder)
    assert watched_old.x == 1
    watch.sweep()
    assert watch.told == [watched_old]


@pytest.mark.parametrize("lazy", ["by a finder behind ours", "around ours"])
def test_lazy_loaders_stay_lazy(folder, watch, lazy):
    write(folder, watched_lazy="import builtins\nran = True\n" + SEES_ITSELF)

    class Lazy(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name != "watched_lazy":
                return None
            spec = importlib.machinery.PathFinder.find_spec(name, path)
            spec.loader = importlib.util.LazyLoader(spec.loader)
            return spec

    if lazy == "around ours":
        spec = importlib.util.find_spec("watched_lazy")
        spec.loader = importlib.util.LazyLoader(spec.loader)
        module = importlib.util.module_from_spec(spec)
        sys.modules["watched_lazy"] = module
        spec.loader.exec_module(module)
    else:
        finder = Lazy()
        sys.meta_path.insert(1, finder)
        try:
            module = importlib.import_module("watched_lazy")
        finally:
            sys.meta_path.remove(finder)
    watch.sweep()
    assert watch.told == []
    assert type(module).__name__ == "_LazyModule"
    assert module.ran
    assert watch.told == [module]
    assert is_untouched(module)
    assert type(module).__name__ == "module"


# Installing and removing.


def test_importing_the_file_installs_nothing():
    program = (
        "import sys; before = list(sys.meta_path); import stepfork.instrument.import_watch; "
        "assert [f for f in sys.meta_path if type(f).__module__.startswith('stepfork')] == []"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0


def test_install_and_remove(folder):
    write(folder, watched_removed="x = 1")
    meta_path, before = sys.meta_path, list(sys.meta_path)
    watch, told = ImportWatch(), []
    watch.watch(lambda name: name.startswith("watched"), told.append)
    assert not watch.installed
    watch.install()
    watch.install()
    assert watch.installed
    assert sys.meta_path == [watch, *before]
    found = importlib.util.find_spec("watched_removed")
    watch.remove()
    watch.remove()
    assert sys.meta_path is meta_path
    assert sys.meta_path == before
    importlib.import_module("watched_removed")
    found.loader.exec_module(importlib.util.module_from_spec(found))  # found before, executed after
    assert told == []
    watch.install()
    importlib.reload(sys.modules["watched_removed"])
    watch.remove()
    assert told == [sys.modules["watched_removed"]]


def test_unwatched_names_are_left_to_the_other_finders(folder, watch):
    class Never:
        def find_spec(self, name, path=None, target=None):
            raise AssertionError("asked by us")

    sys.meta_path.append(Never())
    try:
        assert watch.find_spec("json.never", None) is None
    finally:
        sys.meta_path.pop()


def test_sweep(folder):
    write(folder, watched_before="x = 1", watched_alias="x = 1")
    import watched_alias
    import watched_before

    sys.modules["watched_again"] = watched_alias
    sys.modules["watched_none"] = None
    sys.modules["watched_thing"] = object()
    watch, told = ImportWatch(), []
    watch.watch(lambda name: name.startswith("watched"), told.append)
    watch.sweep()
    watch.sweep()
    assert told == [watched_alias, watched_before]
    importlib.reload(watched_before)  # unnoticed: not installed
    watch.sweep()
    assert told == [watched_alias, watched_before, watched_before]
    later = []
    watch.watch(lambda name: name == "watched_before", later.append)
    watch.sweep()
    assert (len(told), later) == (3, [watched_before])


def test_sweep_leaves_what_is_being_imported_to_its_import(folder, watch):
    write(
        folder, watched_sweeping="import watched_helper\nwatched_helper.sweep()\nx = 1\n", watched_helper=""
    )
    import watched_helper

    watched_helper.sweep = watch.sweep
    import watched_sweeping

    assert watch.told == [watched_helper, watched_sweeping]


def test_sweep_passes_our_errors_on_and_asks_again(folder):
    write(folder, watched_bad="x = 1")
    import watched_bad  # noqa: F401

    watch = ImportWatch()

    def check(module):
        raise ConfigError("bad")

    watch.watch(lambda name: name == "watched_bad", check)
    for _ in range(2):
        with pytest.raises(ConfigError):
            watch.sweep()


def test_modules_may_have_no_spec(folder):
    watch, told = ImportWatch(), []
    watch.watch(lambda name: name == "watched_specless", told.append)
    module = sys.modules["watched_specless"] = type(sys)("watched_specless")
    watch.sweep()
    watch.sweep()
    assert told == [module]


def test_threads(folder, watch):
    names = [f"watched_thread_{i}" for i in range(40)]
    write(folder, **dict.fromkeys(names, "import time\ntime.sleep(0.001)\n" + SEES_ITSELF))
    failures = []
    stop = threading.Event()

    def load(part):
        try:
            for name in part:
                assert importlib.import_module(name).f() == 1
        except BaseException as error:
            failures.append(error)

    def juggle():
        while not stop.is_set():
            watch.install()
            time.sleep(0)

    juggler = threading.Thread(target=juggle)
    loaders = [threading.Thread(target=load, args=(names[i % 3 :],)) for i in range(6)]
    for thread in [juggler, *loaders]:
        thread.start()
    for thread in loaders:
        thread.join()
    stop.set()
    juggler.join()
    assert failures == []
    assert sorted(module.__name__ for module in watch.told) == sorted(names)
    assert all(is_untouched(sys.modules[name]) for name in names)
