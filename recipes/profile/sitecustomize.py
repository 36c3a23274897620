# SPDX-License-Identifier: MIT
"""Profiles a PyTorch program that knows nothing of it, a few steps long:

    PYTHONPATH=.../recipes/profile FETTLE_PROFILE_DIR=/tmp/trace python train.py
    fettle diagnose /tmp/trace

Python imports a module of this name before the program. Nothing happens until the program imports torch,
and nothing in a process that makes no step. A step ends with the first optimizer's step(), in a program
without one with each batch of a DataLoader; batches before the first optimizer's step (a cache, a check, an
evaluation) are no steps of training, and what was recorded of them is dropped. After FETTLE_PROFILE_WAIT steps (default 5) the profiler
warms up for two and records FETTLE_PROFILE_STEPS (6), fewer when they are long; each rank below
FETTLE_PROFILE_RANKS (8) then leaves rankN.json.gz: torch.profiler's trace, with what the kernel says of
the same steps (CPU time, page faults, waiting for a CPU) under the key "fettle". Under nsys it only marks
steps and waits for data as NVTX ranges.
"""
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
WARMUP_STEPS = 2
RECORD_MAX_S = 10.0  # some 100 MB of JSON at most: longer steps, fewer of them
TRACE_MAX_BYTES = 1 << 30  # of JSON; a larger one is thrown away
LOADER_STEPS = 8  # batches without any optimizer's step: then batches are the steps


def number(name, default):
    try:
        return max(0, int(os.environ.get(name, default)))
    except ValueError:
        return default


def first(*names):
    """The first of these variables that holds a number."""
    return next((int(os.environ[n]) for n in names if os.environ.get(n, "").isdigit()), None)


def directory():
    trial = os.environ.get("FETTLE_TRIAL_DIR")
    return os.environ.get("FETTLE_PROFILE_DIR") or (trial and os.path.join(trial, "profile"))


# -- what the kernel says -------------------------------------------------------------------------


def schedstat(path):
    """Seconds on a CPU and seconds ready to run without one; None where the kernel does not tell."""
    try:
        with open(path, encoding="ascii") as f:
            on, ready = f.read().split()[:2]
        return int(on) / 1e9, int(ready) / 1e9
    except (OSError, ValueError):
        return None


def workers():
    """Processes that the loader started, by their id: what schedstat() says of each thread, added up."""
    import multiprocessing
    found = {}
    for child in multiprocessing.active_children():
        try:
            tasks = os.listdir("/proc/%d/task" % child.pid)
        except OSError:
            continue
        both = [b for b in (schedstat("/proc/%d/task/%s/schedstat" % (child.pid, t)) for t in tasks) if b]
        if both:
            found[child.pid] = (sum(b[0] for b in both), sum(b[1] for b in both))
    return found


class Usage:
    """What this rank and its loader used from here to the end of the recording."""

    def __init__(self):
        import resource
        import threading
        import time
        self.clock, self.rusage = time.perf_counter, lambda: resource.getrusage(resource.RUSAGE_SELF)
        self.stat = "/proc/self/task/%d/schedstat" % threading.get_native_id()
        self.next_s = self.next_cpu_s = self.next_ready_s = 0.0
        self.begin = (self.clock(), self.rusage(), schedstat(self.stat), workers())

    def waited(self, seconds, before, after):
        """A wait for a batch, and what this thread had used before and after it."""
        self.next_s += seconds
        if before and after:
            self.next_cpu_s += after[0] - before[0]
            self.next_ready_s += after[1] - before[1]

    def loader(self, wall_s, now):
        """Shares of the loading: by the workers, or else by this very thread while it waits."""
        both = [(now[p][0] - c, now[p][1] - r) for p, (c, r) in self.begin[3].items() if p in now]
        if both:
            span = wall_s * len(both)
            cpu, ready = sum(b[0] for b in both), sum(b[1] for b in both)
        elif now or self.begin[3]:
            return {}  # workers of which none lived through the recording
        else:
            span, cpu, ready = self.next_s, self.next_cpu_s, self.next_ready_s
        if span <= 0:
            return {}
        return {"loader_cpu_ratio": min(1.0, cpu / span), "loader_ready_ratio": min(1.0, ready / span),
                "loader_workers": len(both)}

    def figures(self, steps):
        wall_s, use, stat = self.clock() - self.begin[0], self.rusage(), schedstat(self.stat)
        out = {"profile_steps": steps, "rank_system_ratio": min(1.0, (use.ru_stime - self.begin[1].ru_stime) / wall_s),
               "rank_cpu_cores": (use.ru_utime + use.ru_stime - self.begin[1].ru_utime - self.begin[1].ru_stime) / wall_s,
               "minor_faults_per_step": (use.ru_minflt - self.begin[1].ru_minflt) / steps,
               "major_faults_per_step": (use.ru_majflt - self.begin[1].ru_majflt) / steps}
        if stat and self.begin[2]:
            out["rank_ready_ratio"] = min(1.0, (stat[1] - self.begin[2][1]) / wall_s)
        out.update(self.loader(wall_s, workers()))
        return out


# -- the recording ----------------------------------------------------------------------------------


class Recorder:
    """Counts steps, records some, writes once."""

    def __init__(self, torch):
        import time
        self.torch, self.clock = torch, time.perf_counter
        self.pid, self.dir = os.getpid(), directory()
        self.wait, self.steps = number("FETTLE_PROFILE_WAIT", 5), max(1, number("FETTLE_PROFILE_STEPS", 6))
        self.owner = None  # the optimizer whose steps count
        self.trains = False  # there is an optimizer: batches are no steps
        self.batches = self.seen = self.recorded = 0
        self.prof = self.usage = self.begun = None
        self.never = (first("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK") or 0) >= number("FETTLE_PROFILE_RANKS", 8)
        self.done = self.never

    def stepped(self, owner):
        """Called after each step of any optimizer."""
        if self.owner is None:
            self.owner = owner
            self.forget()
        if owner == self.owner:
            self.tick()

    def batch(self):
        """Called when the loader gave a batch."""
        self.batches += 1
        if not self.trains and self.owner is None and self.batches > LOADER_STEPS:
            self.tick()

    def forget(self):
        """The batches until now were not steps of training."""
        if self.seen == 0 or os.getpid() != self.pid:
            return
        if self.prof and not self.done:
            self.prof.stop()
        self.prof = self.usage = self.begun = None
        self.seen = self.recorded = 0
        self.done = self.never

    def tick(self):
        if self.done or os.getpid() != self.pid:
            return
        self.seen += 1
        if self.prof is None:
            if self.seen >= self.wait:
                self.start()
        elif self.usage is None:
            self.prof.step()
            if self.seen >= self.wait + WARMUP_STEPS:
                self.usage, self.begun = Usage(), self.clock()
        else:
            self.recorded += 1
            if self.recorded >= self.steps or self.clock() - self.begun > RECORD_MAX_S:
                self.finish()
            else:
                self.prof.step()

    def start(self):
        import atexit
        import signal
        p = self.torch.profiler
        self.prof = p.profile(activities=p.supported_activities(),
                              schedule=p.schedule(wait=0, warmup=WARMUP_STEPS, active=1 << 30))
        self.prof.start()
        atexit.register(self.finish)
        try:
            if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
                signal.signal(signal.SIGTERM, self.on_term)
        except ValueError:  # not the main thread
            pass

    def on_term(self, number_, _frame):
        import signal
        self.finish()
        signal.signal(number_, signal.SIG_DFL)
        os.kill(os.getpid(), number_)

    def finish(self):
        if self.done or os.getpid() != self.pid:
            return
        self.done = True
        if self.usage is None or self.recorded == 0:
            return
        figures = self.usage.figures(self.recorded)
        if self.torch.cuda.is_available():
            self.torch.cuda.synchronize()
        self.prof.stop()
        self.write(figures)

    def write(self, figures):
        import gzip
        import json
        import shutil
        rank = first("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK") or 0
        head = {"fettle": dict(figures, rank=rank)}
        world = first("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
        if world:
            head["fettle"]["world_size"] = world
        os.makedirs(self.dir, exist_ok=True)
        path = os.path.join(self.dir, "rank%d.json.gz" % rank)
        raw, tmp = "%s.%d.json" % (path, self.pid), "%s.%d" % (path, self.pid)
        try:
            self.prof.export_chrome_trace(raw)
            if os.path.getsize(raw) > TRACE_MAX_BYTES:
                raise OSError("a trace of %d bytes is not kept" % os.path.getsize(raw))
            with open(raw, "rb") as src, gzip.open(tmp, "wb", compresslevel=1) as dst:
                is_list = first_mark(src) == b"["  # of a torch that was built without Kineto
                if is_list:
                    head["deviceProperties"] = []
                dst.write(json.dumps(head)[:-1].encode() + (b', "traceEvents": [' if is_list else b", "))
                shutil.copyfileobj(src, dst, 1 << 20)
                dst.write(b"}" if is_list else b"")
            os.replace(tmp, path)
        finally:
            for left in (raw, tmp):
                if os.path.exists(left):
                    os.unlink(left)


class Marker(Recorder):
    """Under nsys: ranges around steps, from which probes tell them."""

    def tick(self):
        if self.done or os.getpid() != self.pid or not self.torch.cuda.is_available():
            return
        nvtx = self.torch.cuda.nvtx
        if self.seen:
            nvtx.range_pop()
        self.seen += 1
        nvtx.range_push("step %d" % self.seen)

    def forget(self):
        if self.seen:
            self.torch.cuda.nvtx.range_pop()
            self.seen = 0


# -- hooks --------------------------------------------------------------------------------------------


def first_mark(src):
    """The byte that opens the JSON text: Kineto of PyTorch 2.11 writes blanks before it."""
    mark = src.read(1)
    while mark.isspace():
        mark = src.read(1)
    return mark


def guarded(recorder, call, *args):
    """A profiler must never be why a program fails."""
    try:
        return call(*args)
    except Exception as e:  # pylint: disable=broad-except
        recorder.done = recorder.never = True
        sys.stderr.write("fettle: profiling ended: %s: %s\n" % (type(e).__name__, e))
        return None


def hook_optimizers(torch, recorder):
    import functools
    optim = importlib.import_module("torch.optim.optimizer")
    made = torch.optim.Optimizer.__init__

    @functools.wraps(made)
    def known(self, *args, **kwargs):
        recorder.trains = True
        made(self, *args, **kwargs)
    torch.optim.Optimizer.__init__ = known
    if hasattr(optim, "register_optimizer_step_post_hook"):
        optim.register_optimizer_step_post_hook(lambda o, *_: guarded(recorder, recorder.stepped, id(o)))
        return
    init = torch.optim.Optimizer.__init__

    def wrap(cls):  # PyTorch 1.x: each class of optimizers has its own step()
        step = cls.step

        @functools.wraps(step)
        def counted(self, *args, **kwargs):
            out = step(self, *args, **kwargs)
            guarded(recorder, recorder.stepped, id(self))
            return out
        counted.fettle = True
        cls.step = counted

    def hooked(self, *args, **kwargs):
        init(self, *args, **kwargs)
        if not getattr(self.__class__.step, "fettle", False):
            wrap(self.__class__)
    torch.optim.Optimizer.__init__ = hooked


def hook_loaders(torch, recorder):
    from torch.utils.data import dataloader
    base = dataloader._BaseDataLoaderIter
    inner = base.__next__
    nvtx = isinstance(recorder, Marker) and torch.cuda.is_available()

    def counted(self):
        use = recorder.usage if not recorder.done else None
        if nvtx:
            torch.cuda.nvtx.range_push("dataloader")
        before, begin = (schedstat(use.stat), use.clock()) if use else (None, 0)
        try:
            out = inner(self)
        finally:
            if nvtx:
                torch.cuda.nvtx.range_pop()
        if use:
            guarded(recorder, use.waited, use.clock() - begin, before, schedstat(use.stat))
        guarded(recorder, recorder.batch)
        return out
    base.__next__ = base.next = counted


def hook(torch):
    recorder = (Marker if os.environ.get("FETTLE_PROFILER") == "nsys" else Recorder)(torch)
    if recorder.done:
        return
    hook_optimizers(torch, recorder)
    hook_loaders(torch, recorder)


class Finder(importlib.abc.MetaPathFinder):
    """Sees torch being imported, and then gets out of the way."""

    def find_spec(self, name, path, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            try:
                hook(module)
            except Exception as e:  # pylint: disable=broad-except
                sys.stderr.write("fettle: no profile: %s: %s\n" % (type(e).__name__, e))
        spec.loader.exec_module = exec_module
        return spec


def run_hidden():
    """The site's own sitecustomize, which this one hides."""
    path = [p for p in sys.path if os.path.abspath(p) != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec and spec.loader:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


if directory():
    sys.meta_path.insert(0, Finder())
run_hidden()
