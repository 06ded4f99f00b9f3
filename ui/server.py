"""Settings of the whole server process that `.streamlit/config.toml` has no names for. Each is made once."""

import asyncio
import ctypes
import gc
import os
import socket
import stat
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

import numpy  # noqa: F401  only a library that is there can be told to keep to one thread
import streamlit as st
from streamlit.delta_generator_singletons import context_dg_stack, get_default_dg_stack_value
from streamlit.runtime import Runtime, app_session
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from threadpoolctl import threadpool_limits

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # glibc's malloc.h
_GARBAGE = 20_000, 20, 20  # a run makes thousands of objects, nearly all of which go without a search: not 700, 10, 10
_TOGETHER = 0.004  # seconds
_AT_ONCE = 2  # runs: while one computes in numpy, another gets on
_LONG = 0.2  # seconds: far more than a drawing takes


@st.cache_resource(show_spinner=False)  # holds nothing: it only remembers that it was done
def prepare() -> None:
    """Fit the network, numpy and malloc to a server of many short runs, each in a thread of its own.

    On matrices this small a second thread of OpenBLAS costs more than it brings, and it takes the core from another
    session. (The variable OPENBLAS_NUM_THREADS would come too late: on a fresh server a page may load numpy before
    app.py runs.) And glibc gives each thread a heap of its own and keeps what was given back there: with thirty people
    that is 150 MB. So they share two. Blocks of up to 4 MB stay with the process, for each one comes back from the
    system page by page: with 256 KB a training took twice as long.
    """
    _send_at_once()
    _change_streamlit()
    threadpool_limits(1, user_api="blas")
    gc.set_threshold(*_GARBAGE)
    with suppress(AttributeError, OSError, TypeError):  # other systems have another malloc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_ARENA_MAX, 2)
        mallopt(_M_MMAP_THRESHOLD, 4 * 2**20)
        mallopt(_M_TRIM_THRESHOLD, 8 * 2**20)


@lru_cache(maxsize=1)  # holds nothing: any browser may have Streamlit's caches cleared, and this is not done twice
def _change_streamlit() -> None:
    _send_together()
    _tell_of_the_app_once()
    _hear_a_run_to_its_end()
    _begin_at_the_top()
    _serve_in_turn()


@st.cache_resource(show_spinner=False, max_entries=16)  # nothing for each page: it only remembers that it was done
def keep(page: str) -> None:
    """Tell the garbage collector to leave alone what a page's first run has loaded.

    These are modules and the like, 200,000 objects that stay for good. Searching them takes a tenth of a second
    again and again, in which every session stands still.
    """
    gc.collect()
    gc.freeze()


def _send_together() -> None:
    """Let the first messages of a run wait a moment for the others.

    Streamlit sends what there is as soon as something is there, and then rests for 10 ms. Of a run of 3 ms the first
    two messages, which only say that it has begun, were sent alone, and the browser drew the whole page anew upon them,
    for 10 to 15 ms, before it came to the picture.
    """
    with suppress(AttributeError, RuntimeError):  # an internal: where it is not there, they do not wait
        inside = Runtime.instance()._get_async_objs()
        tell, waiting = inside.need_send_data.set, asyncio.Event()

        def tell_now() -> None:
            waiting.clear()
            tell()

        def tell_later() -> None:
            if not waiting.is_set():
                waiting.set()
                inside.eventloop.call_later(_TOGETHER, tell_now)

        inside.need_send_data.set = tell_later  # type: ignore[method-assign]


def _serve_in_turn() -> None:
    """Let runs begin in the order in which they were asked for, while few are on.

    Streamlit begins with each at once, in a thread of its own. With a hundred people that is a dozen threads that take
    the interpreter from each other: all are late, and some by much. One that goes on for long, as a training does, is
    not counted any more, and holds up nobody. Whoever asks again while his run waits adds to it (twice the same button
    is once): with Streamlit's `fastReruns` the new run would take the place of the old one, and a click could be lost.
    """
    with suppress(AttributeError, RuntimeError):  # an internal: where it is not there, they begin at once
        loop: Any = Runtime.instance()._get_async_objs().eventloop
        if not isinstance(loop, asyncio.AbstractEventLoop):  # tests of pages run without a server
            return
        begin, run = ScriptRunner.start, ScriptRunner._run_script_thread
        waiting: deque[ScriptRunner] = deque()
        running: set[ScriptRunner] = set()

        def ask(runner: ScriptRunner) -> None:
            waiting.append(runner)
            go_on()

        def go_on() -> None:
            while waiting and len(running) < _AT_ONCE:
                runner = waiting.popleft()
                running.add(runner)
                loop.call_later(_LONG, leave, runner)
                begin(runner)

        def leave(runner: ScriptRunner) -> None:
            if runner in running:
                running.remove(runner)
                go_on()

        def run_and_leave(runner: ScriptRunner) -> None:
            try:
                run(runner)
            finally:
                with suppress(RuntimeError):  # the server stops
                    loop.call_soon_threadsafe(leave, runner)

        ScriptRunner.start = ask  # type: ignore[assignment, method-assign]
        ScriptRunner._run_script_thread = run_and_leave  # type: ignore[assignment, method-assign]


def _hear_a_run_to_its_end() -> None:
    """Let nothing be lost of a run that has ended when the next request comes.

    What a run says waits its turn on the server's loop, and once there is another run, Streamlit takes it for outdated.
    But the next run may be of another part of the page, and what was said of the first is still to be shown.
    """
    with suppress(AttributeError):  # an internal: where it is not there, it stays as it is
        call_soon, begin = AppSession._call_soon_on_event_loop, AppSession._create_scriptrunner

        def note(session: Any, said: Callable[[], None]) -> None:
            session.__dict__.setdefault("_said", deque()).append(said)
            call_soon(session, partial(hear, session))

        def hear(session: Any) -> None:
            said = session.__dict__.get("_said")
            while said:
                said.popleft()()

        def begin_then(session: Any, asked: Any) -> None:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                pass  # another thread than the loop's: somebody has changed a file of the app
            else:
                hear(session)
            begin(session, asked)

        AppSession._call_soon_on_event_loop = note  # type: ignore[assignment, method-assign]
        AppSession._create_scriptrunner = begin_then  # type: ignore[assignment, method-assign]


def _begin_at_the_top() -> None:
    """Let a run that takes over the thread of another begin where the page begins.

    A part that was drawn alone leaves its place behind. All parts of the page, if that is what runs next, were then
    named after this one place, and whatever was done in one of them drew another one anew. (With `fastReruns` the page
    never takes over a thread.)
    """
    with suppress(AttributeError):  # an internal: where it is not there, it stays as it is
        run = ScriptRunner._run_script

        def run_from_the_top(runner: Any, asked: Any) -> None:
            context_dg_stack.set(get_default_dg_stack_value())
            run(runner, asked)

        ScriptRunner._run_script = run_from_the_top  # type: ignore[assignment, method-assign]


def _tell_of_the_app_once() -> None:
    """Keep, for each session, what each run tells the browser of the app: its theme, configuration and pages.

    Streamlit makes it anew from all of its 300 options, which took a fifth of the time of a run in which little is
    drawn. (So whoever changes the theme starts the server anew.)
    """
    with suppress(AttributeError):  # an internal: where it is not there, it is made each time
        make, name_run = AppSession._create_new_session_message, app_session._set_run_identity

        def copy(session: Any, page: str, run: Any, pages: Any = None) -> Any:
            before, kept = getattr(session, "_kept_message", (None, None))
            shows = page, *(pages or session.get_pages())
            if kept is None or before != shows:
                kept = make(session, page, run, pages)
                session._kept_message = shows, kept
            message = type(kept)(new_session=kept.new_session)
            name_run(message, run)
            return message

        AppSession._create_new_session_message = copy  # type: ignore[assignment, method-assign]


def _send_at_once() -> None:
    """Let no message wait until the one before it was acknowledged (TCP_NODELAY).

    A run sends many small messages. Asyncio switches that wait off for the sockets that it makes, but not for those
    of a server that binds its socket itself, as Streamlit does; so each redraw stood still for 40 ms, or for as long
    as the way to the browser and back. Connections inherit the setting from the socket that listens.
    """
    with suppress(OSError):  # another system may have no such folder
        for number in map(int, os.listdir("/dev/fd")):
            with suppress(OSError):  # closed meanwhile
                if stat.S_ISSOCK(os.fstat(number).st_mode):
                    with socket.socket(fileno=os.dup(number)) as each:
                        if each.type == socket.SOCK_STREAM and each.family in (socket.AF_INET, socket.AF_INET6):
                            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
