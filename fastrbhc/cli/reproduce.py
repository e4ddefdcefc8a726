"""``fastrbhc reproduce``: repeat an experiment and print it next to the published values."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

from fastrbhc._interrupts import importing
from fastrbhc.cli.outputs import STANDARD, check_outputs, writing
from fastrbhc.cli.trees import check_plot

if TYPE_CHECKING:
    from fastrbhc.experiments._spec import Experiment

NAME = "reproduce"


def add_command(add: Callable[..., argparse.ArgumentParser], *, whole: bool = True) -> None:
    """Add this command to the parser, with its experiments if the whole of it is needed."""
    command = add(
        NAME,
        help="reproduce the paper's experiments",
        description="Reproduce an experiment of Lee & Choi (2015), next to the published values.",
    )
    if not whole:
        return
    with importing():
        from fastrbhc.experiments._spec import experiments

        found = experiments()
    parts = command.add_subparsers(title="experiments", metavar="EXPERIMENT", required=True)
    for name, module in found.items():
        experiment: Experiment = module.EXPERIMENT
        part = parts.add_parser(
            name,
            help=experiment.help,
            description=experiment.description,
            epilog=f"Example: fastrbhc reproduce {name} {experiment.example}",
        )
        option = part.add_argument
        amount, default, meaning = experiment.amount
        option(
            f"--{amount}",
            type=int,
            default=default,
            metavar="N",
            help=f"{meaning} (default {default})",
        )
        option("--seed", type=int, default=0, help="seed of all random numbers (default 0)")
        option("--jobs", type=int, metavar="N", help="number of threads; -1 for all cores")
        option("--progress", action="store_true", help="show progress bars")
        option("--json", metavar="OUT.json", help="write all figures, or to - for standard output")
        for name_of_option, settings, _ in experiment.options:
            option(f"--{name_of_option}", **settings)
        if experiment.draws:
            option("--plot", metavar="PICTURE", help="draw the figure")
        part.set_defaults(run=run, module=module)


def run(arguments: argparse.Namespace) -> None:
    """Run the experiment, print its report and write the requested files."""
    module: ModuleType = arguments.module
    experiment: Experiment = module.EXPERIMENT
    picture = arguments.plot if experiment.draws else None
    names = "--json and --plot" if experiment.draws else "--json"
    outputs = check_outputs(names, arguments.json, picture)
    check_plot(picture)
    options = {experiment.amount[0]: getattr(arguments, experiment.amount[0])}
    for option in experiment.options:
        key = option.name.replace("-", "_")
        options[key] = option.convert(getattr(arguments, key))
    start = time.perf_counter()
    result = getattr(module, experiment.function)(
        seed=arguments.seed, n_jobs=arguments.jobs, progress=arguments.progress, **options
    )
    seconds = time.perf_counter() - start
    people = sys.stderr if arguments.json == STANDARD else sys.stdout
    print(module.report(result), file=people)
    print(f"\n{seconds:.1f} s, compiling included", file=people)
    if arguments.json is not None:
        with writing(arguments.json) as file:
            json.dump(result, file, indent=2)
            file.write("\n")
    if picture is not None:
        module.draw(result, picture)
    for path in outputs:
        print(f"wrote {path}", file=people)
