"""The output of `larl compare`: figures, data and tables in a folder, and the tables on the screen."""

import sys
from functools import partial
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from larl._core.files import write_atomically
from larl.simulation import plots, tables
from larl.simulation.result import Result


def write_study(result: Result, out: Path, axes: tuple[str, ...] = (), reference: str | None = None) -> None:
    """Write figures, data and tables to a folder, and print the tables.

    `axes` are the one or two hyper-parameters of the heat map; `reference` is the policy that the others are compared
    to.
    """
    shown, note = tables.best_candidates(result), tables.candidates_note(result)
    figures = {"regret": shown.plot_regret(note=note), "wins": shown.plot_wins(note=note)}
    if len(axes) == 2:
        figures["heatmap"] = plots.plot_heatmap(tables.heatmap(result, *axes))
    elif axes:
        figures["heatmap"] = plots.plot_line(tables.line(result, *axes))
    table = tables.units(result, reference)
    written = [
        result.save(out / "result.nc"),
        write_atomically(out / "summary.csv", result.summary(reference=reference).to_csv),
        write_atomically(out / "units.csv", partial(table.to_csv, index=False)),
        write_atomically(out / "units.tex", partial(Path.write_text, data=tables.latex(table), encoding="utf-8")),
    ]
    if result.recorded_worlds:
        recorded = result.recorded_summary(reference)
        written.append(write_atomically(out / "recorded.csv", recorded.to_csv))
    for name, figure in figures.items():
        save = partial(figure.savefig, dpi=200)
        written += [write_atomically(out / f"{name}.{kind}", save) for kind in ("png", "svg")]
    _print_summary(result, reference)
    if result.recorded_worlds:
        _print_recorded(recorded, reference or result.policies[0])
    _print_units(table)
    if note:
        print(f"\nin the figures: {note}")
    print("\nwritten: " + ", ".join(str(path) for path in written))


def _print_units(units: pd.DataFrame) -> None:
    possible = [("regret", "mean"), ("regret", "p25"), ("regret", "p75"), ("reward", "mean"), ("reward", "p25")]
    columns = [(measure, part) for measure, part in possible if measure in set(units["measure"])]
    titles = {"mean": "mean", "p25": "25%", "p75": "75%"}
    table = Table("policy", *(f"{measure}: {titles[part]}" for measure, part in columns), box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for world, rows in units.groupby("world", sort=False):
        if world:
            table.add_row(Text(str(world), style="bold"))
        for name, each in rows.groupby("policy", sort=False):
            value = each.set_index("measure")[["mean", "mean_se", "p25", "p25_se", "p75", "p75_se"]].to_dict("index")
            cells = [f"{value[m][part]:.1f} ± {value[m][f'{part}_se']:.1f}" for m, part in columns]
            table.add_row(Text(f"  {name}"), *cells)
    print("\nover units: mean and percentiles of the totals, ± standard error\n")
    _console().print(table)


def _print_summary(result: Result, reference: str | None) -> None:
    summary, has_several = result.summary(reference=reference), len(result.policies) > 1
    name = reference or result.policies[0]
    table = Table("policy", "mean", "± se", "sd", "95% interval", box=None, header_style="bold")
    for title in (f"minus {name}", "its 95% interval", "duels won") if has_several else ():
        table.add_column(Text(title))
    for column in table.columns[1:]:
        column.justify = "right"
    for world in result.worlds or [""]:
        if world:
            table.add_row(Text(world, style="bold"))
        for policy, row in (summary.loc[world] if world else summary).iterrows():
            cells = [
                f"{row['mean']:.1f}",
                f"{row['se']:.1f}",
                f"{row['sd']:.1f}",
                f"{row['low']:.1f} – {row['high']:.1f}",
            ]
            if has_several:
                low, high = (row[f"minus {name}, {end}"] for end in ("low", "high"))
                cells += ["", ""] if policy == name else [f"{row[f'minus {name}']:+.1f}", f"{low:+.1f} to {high:+.1f}"]
                cells.append(f"{100 * row['duels won']:.0f}%")
            table.add_row(Text(f"  {policy}"), *cells)
    trials = f"cohorts of {result.units:,}, per unit" if result.units else "trials"
    print(f"total regret over {result.data.sizes['trial']:,} {trials}\n")
    if has_several:
        print(f"minus {name}: paired difference to {name}; duels won: mean win rate against the other policies\n")
    _console().print(table)


def _print_recorded(recorded: pd.DataFrame, reference: str) -> None:
    table = Table("policy", "mean reward", "share", "± se", box=None, header_style="bold")
    for title in (f"minus {reference}", "± se", "its 95% interval"):
        table.add_column(Text(title))
    for column in table.columns[1:]:
        column.justify = "right"
    for world, rows in recorded.groupby(level="world", sort=False):
        table.add_row(Text(f"{world} ({rows['windows'].iloc[0]:,} windows that share no row)", style="bold"))
        for policy, row in rows.droplevel("world").iterrows():
            cells = [f"{row['mean reward']:.4g}", f"{row['share']:.1f}%", f"{row['se']:.1f}"]
            if policy != reference:
                part = {end: row[f"minus {reference}{end}"] for end in ("", ", se", ", low", ", high")}
                cells += [f"{part['']:+.1f}", f"{part[', se']:.1f}", f"{part[', low']:+.1f} to {part[', high']:+.1f}"]
            table.add_row(Text(f"  {policy}"), *cells)
    print("\nrecorded rewards: mean reward of a step; share: 0% is a random arm, 100% is the best arm at every step,")
    print(f"against which regret is measured; minus {reference}: paired difference in share\n")
    _console().print(table)


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 140)
