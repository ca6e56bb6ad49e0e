"""Train small models with heads of heads.lua, and with softmax, on the tasks of tasks.py.

    PYTHONPATH=python python3 examples/train/train.py recall text --folder docs/experiments

writes FOLDER/training-TASK.tsv, the learning curves of every seed, and a picture of them, FOLDER/training-TASK.svg.
make train sets up torch first, and does both tasks.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch
from chart import Series, write_chart
from model import Model
from tasks import NOT_ASKED, TASKS
from torch.nn import functional

RATE, POINTS = 5e-3, 10  # of learning, at most; of a curve

Curve = list[tuple[int, dict[str, float]]]  # steps, and the measures of held-out batches after them
Found = dict[str, list[tuple[int, Curve]]]


def measure(model: Model, task, held_out, device: str) -> dict[str, float]:
    with torch.no_grad():
        return {
            name: sum(task.measure(model(x.to(device)), y.to(device)) for x, y in batches) / len(batches)
            for name, batches in held_out.items()
        }


def learn(task_name: str, kind: str, seed: int, steps: int, device: str) -> tuple[int, Curve]:
    """D of the model's heads (0: softmax), and its learning curve."""
    if device == "cpu":
        torch.set_num_threads(1)  # other models are trained beside it
    task = TASKS[task_name]()
    torch.manual_seed(seed)
    model = Model(kind, task.tokens, task.layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), RATE, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps, pct_start=0.1)
    source, held_out, curve = torch.Generator().manual_seed(seed), task.held_out(), []
    for step in range(1, steps + 1):
        x, y = (part.to(device) for part in task.batch(source))
        loss = functional.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=NOT_ASKED)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % max(steps // POINTS, 1) == 0:
            curve.append((step, measure(model, task, held_out, device)))
    head = getattr(model.blocks[0].attention, "head", None)
    return head.features if head else 0, curve


def run_all(task_name: str, kinds: list[str], seeds: int, steps: int, device: str, jobs: int) -> Found:
    """By kind, what learn gives of each seed."""
    calls = [(kind, seed) for kind in kinds for seed in range(seeds)]
    found: Found = {}
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(learn, task_name, kind, seed, steps, device) for kind, seed in calls]
        for (kind, seed), future in zip(calls, futures):
            found.setdefault(kind, []).append(future.result())
            last = {name: round(value, 4) for name, value in found[kind][-1][1][-1][1].items()}
            print(task_name, kind, f"seed {seed}", last, flush=True)
    return found


def write_table(path: Path, task, found: Found) -> None:
    seeds = len(next(iter(found.values())))
    lines = [
        f"# {task.about}; make train",
        "\t".join(["head", "D", "of", "step", *(f"seed_{i}" for i in range(seeds))]),
    ]
    for kind, runs in found.items():
        for point, (step, measures) in enumerate(runs[0][1]):
            for name in measures:
                values = [f"{curve[point][1][name]:.4f}" for _, curve in runs]
                lines.append("\t".join([kind, str(runs[0][0] or "-"), name, str(step), *values]))
    path.write_text("\n".join(lines) + "\n")


def make_series(task, found: Found) -> list[Series]:
    """Of each kind: the mean of its seeds, between the least and the most."""
    series = []
    for kind, runs in found.items():
        values = [[measures[task.shown] for _, measures in curve] for _, curve in runs]
        points = [(step, sum(at) / len(at), min(at), max(at)) for (step, _), at in zip(runs[0][1], zip(*values))]
        series.append(Series(f"{kind}, D {runs[0][0]}" if runs[0][0] else kind, points))
    return series


def main() -> None:
    parser = argparse.ArgumentParser(description="Train small models with heads of fpac, beside softmax.")
    parser.add_argument("tasks", nargs="+", choices=sorted(TASKS))
    parser.add_argument("--folder", type=Path, default=Path("."))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="of each model")
    parser.add_argument("--heads", nargs="+", help="some of them alone: beginnings of their names")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="models that are trained at a time")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)  # training takes longer than a mistake in a name should
    for name in options.tasks:
        task, before = TASKS[name](), time.perf_counter()
        kinds = [kind for kind in task.kinds if not options.heads or kind.startswith(tuple(options.heads))]
        if not kinds:
            parser.error(f"{name} has none of these heads, but {', '.join(task.kinds)}")
        found = run_all(name, kinds, options.seeds, options.steps or task.steps, options.device, options.jobs)
        write_table(options.folder / f"training-{name}.tsv", task, found)
        write_chart(options.folder / f"training-{name}.svg", task.title, make_series(task, found))
        print(f"{name}: {time.perf_counter() - before:.0f} s")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # of heads, in the processes that are started
    main()
