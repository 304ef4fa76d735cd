"""Recorders that are killed: a process that has all imported forks one after the other and kills each.

Run as a program: ``python killed.py FOLDER URL HOW_MANY SEED``. Each recorder has a folder of its own with a
good cassette, makes calls at random and says of each answer that it has seen it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

TOOLS = """
import threading

def look(n, text=""):
    return [n, text * 3]

def outer(n, inner):
    return [n, *[look(m) for m in inner]]

def fails(n):
    raise KeyError(n)

def items(n):
    yield n
    yield [n]
"""


def agent(tools: Any, client: Any, dice: random.Random, seen: Any) -> None:
    """Calls of all sorts, each with a number of its own; `seen` is told the number of each answer."""
    number = 0

    def next_number() -> int:
        nonlocal number
        number += 1
        return number

    def ask(n: int, *, stream: bool = False, to_its_end: bool = True) -> None:
        messages = [{"role": "user", "content": f"question {at} is é\n" * 5} for at in range(n)][-6:]
        messages[-1]["content"] = f"number {n} what now then"
        made = client.chat.completions.create(model="m", messages=messages, stream=stream)
        if stream:
            for at, _ in enumerate(made):
                if at and not to_its_end:
                    made.close()
                    break
        seen(n)

    def look(n: int) -> None:
        tools.look(n, "wörds of it " * dice.randrange(200))
        seen(n)

    def at_once(kind: Any) -> None:
        faults: list[Exception] = []

        def guarded(n: int) -> None:
            try:
                kind(n)
            except Exception as fault:
                faults.append(fault)

        threads = [threading.Thread(target=guarded, args=(next_number(),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for fault in faults:
            raise fault

    for _ in range(dice.randrange(4, 14)):
        step = dice.choice(("look", "nested", "fails", "items", "ask", "stream", "half", "looks", "asks"))
        if step == "look":
            look(next_number())
        elif step == "nested":
            n = next_number()
            tools.outer(n, [next_number() for _ in range(2)])
            seen(n)
        elif step == "fails":
            n = next_number()
            try:
                tools.fails(n)
            except KeyError:
                seen(n)
        elif step == "items":
            n = next_number()
            list(tools.items(n))
            seen(n)
        elif step in ("ask", "stream", "half"):
            ask(next_number(), stream=step != "ask", to_its_end=step == "stream")
        else:
            at_once(look if step == "looks" else ask)


def main(folder: Path, url: str, how_many: int, seed: int) -> None:
    import openai

    import stepfork

    sys.path.insert(0, str(folder))
    (folder / "killtools.py").write_text(TOOLS)
    import killtools  # type: ignore[import-not-found]

    stepfork.autopatch(tools=["killtools"])

    def record(path: Path, dice: random.Random, seen: Any) -> None:
        client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
        with stepfork.record(path) as run:
            agent(killtools, client, dice, seen)
            run.set_output({"done": True})

    record(folder / "warm.yaml", random.Random(seed), lambda n: None)
    record(folder / "warm.yaml", random.Random(seed + 1), lambda n: None)  # an import that only this needs
    good = (folder / "warm.yaml").read_bytes()
    times = [0.0]
    for at in range(how_many):
        dice = random.Random(seed * 1000 + at)
        place = folder / f"killed{at}"
        place.mkdir()
        if dice.random() < 0.7:
            (place / "run.yaml").write_bytes(good)
        read, write = os.pipe()
        started = time.perf_counter()
        child = os.fork()
        if child == 0:
            try:
                os.close(read)
                record(place / "run.yaml", dice, lambda n: os.write(write, b"%d\n" % n))
                os.write(write, b"end\n")
            finally:
                os._exit(0)
        os.close(write)
        if at % 10 == 0:  # how long one takes that is left alone
            os.waitpid(child, 0)
            times.append(time.perf_counter() - started)
        else:
            time.sleep(random.Random(-at).random() * 1.1 * sorted(times)[len(times) // 2])
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        with open(read, "rb") as pipe:
            (place / "seen.json").write_text(json.dumps(pipe.read().decode().split("\n")[:-1]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
