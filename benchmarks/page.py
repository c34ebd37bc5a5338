"""docs/performance.md, made of what was measured: results/bench/*.json in, a page out. No figure is typed here."""

import json
from pathlib import Path
from typing import Any

from adapters import LAGS
from measure import FOLDER

PAGE = Path("docs/performance.md")
Row = list[str]
Found = dict[str, Any]


def table(head: Row, rows: list[Row]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def us(value: float) -> str:
    """Microseconds in three digits."""
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


def size(count: float) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"


def met(row: Found, found: Found) -> str:
    if row["d"] < found["from"]:
        return "–"
    return "met" if row["step"] / row["bare"] <= found["target"] else "not met"


def share(part: float, whole: float) -> str:
    return f"{max(0.0, 100.0 * part / whole):.0f}%"


def floor(found: Found) -> str:
    rows, measured = [], [row for row in found["rows"] if "skipped" not in row]
    for row in found["rows"]:
        head = [str(row[name]) for name in ("arms", "s", "d")]
        if "skipped" in row:
            rows.append([*head, f"skipped: {row['skipped']}", *[""] * 8])
            continue
        step, parts = (
            row["step"],
            (row["step"] - row["update"], row["column"] - row["move"], row["update"] - row["column"]),
        )
        rows.append(
            [*head, us(step), us(row["bare"]), f"{step / row['bare']:.2f}", met(row, found)]
            + [share(part, step) for part in (*parts, row["move"])]
            + [size(row["bytes"])]
        )
    asked = [row for row in measured if row["d"] >= found["from"]]
    short = [f"{row['arms']} × {row['s']}" for row in asked if met(row, found) != "met"]
    around, small, large = found["around"], asked[0], measured[-1]
    return f"""## LARL's step beside its floor

An exact ridge regression changes a d×d matrix by rank one at every step, d = 2s·arms + 1. *Floor* is that update alone, on the
whole square, over as many matrices in the same order. LARL chooses (a width an arm), computes u = V⁻¹Φ, and changes the lower
triangle, the only half it keeps: where the matrix is most of the work it goes below the floor. The target is ≤ {found["target"]:g}×
from d = {found["from"]} on: {len(asked) - len(short)} of {len(asked)} sizes meet it{", not arms × s = " + ", ".join(short) if short else ""}.

{table(["arms", "s", "d", "LARL, µs a step", "floor, µs", "ratio", "target", "widths", "u", "matrix", "lags", "State"], rows)}

Shares are differences of ablations in the same run: the step without choosing, without changing the matrix, with nothing but the
lags. What bounds it: at d = {small["d"]} ({small["arms"]} arms) no part dominates, and rows are some ten numbers long, so that beginning and
ending loops counts as much as what is in them: changing half of the matrix takes {(small["update"] - small["column"]) / small["bare"]:.2f} of the floor, which changes all of it. With 2
arms half of the context is not zero, so that widths and u are as much work as the update; with many arms it is the matrix, and
where the matrices of all arms are larger than the caches ({size(large["bytes"])} at d = {large["d"]}: {(large["update"] - large["column"]) / large["bare"]:.2f} of the floor) the memory they are
read from. Around a step of LARL(5) with 2 arms in the engine ({us(around["both"])} µs): the world {share(around["world"], around["both"])},
copying its State for a trial of 200 steps {share(around["copy"], around["both"])}.
"""


def policies(found: Found) -> str:
    threads, rows, walls = found["threads"], [], []
    for row in found["rows"].values():
        wall, used = row["wall"], row["processor"]
        ratios = (wall["one"] / wall["all"], wall["bare one"] / wall["bare all"], used["one"] / used["all"])
        walls.append(ratios)
        speed = [us(used["one"] / row["steps"] * 1e6), f"{row['steps'] / wall['all']:,.0f}"]
        rows.append([f"`{row['spec']}`", *speed, *(f"{ratio:.2f}" for ratio in ratios)])
    reached, possible = (sum(ratio[i] >= 1.8 for ratio in walls) for i in (0, 1))
    kept = sum(ratio[2] >= 0.9 for ratio in walls)
    head = ["policy", "µs a step, one core", f"steps a second, {threads} threads", f"wall, 1 : {threads} threads"]
    head += ["wall, nothing shared", f"processor time, 1 : {threads} threads"]
    live = [[f"`{row['spec']}`", us(row["p50"]), us(row["p99"]), size(row["bytes"])] for row in found["live"].values()]
    return f"""## Every policy

World and policy, 2 arms, trials of {found["horizon"]} steps, k = 5. "Wall" is how much sooner the same trials are done on {threads} threads
than on one; "nothing shared" is that of a kernel on matrices of its own, in turns with it: where others use the cores, it is
what there was to get. The last column says what threads cost each other: 1 is nothing. The target is 1.8 on the wall with two
free cores. It was reached by {reached} of {len(rows)} policies, and by the kernel that shares nothing in {possible} of {len(rows)} turns;
{kept} of {len(rows)} policies keep at least 0.9 in processor time. Kernels hold no lock and share no memory but the trace.

{table(head, rows)}

## Live

`decide` + `observe` of a `larl.Agent` on the wall, 2 arms, one trial. For the small policies most of it is Python: checks, the
record of the step, the Decision.

{table(["policy", "p50, µs", "p99, µs", "State"], live)}
"""


def peers(found: Found) -> str:
    rows, releases = [], found["releases"]
    for row in found["rows"]:
        head = [row["title"], str(row["arms"]), str(row["d"] or "–")]
        if "missing" in row:
            rows.append([*head, f"not measured: {row['missing']}", *[""] * 4])
            continue
        times = [row["peer"], row["live"], row["engine"]]
        rows.append([*head, *map(us, times), *(f"{row['peer'] / each:,.1f}" for each in times[1:])])
    named = ", ".join(f"{package} {number}" for package, number in releases.items())
    return f"""## Beside peers

A decision and its learning on the same contexts and rewards, one thread each ({named}). larl live is `decide` + `observe` of an agent
with the policy of the same kind (LARL, `SlidingWindowUCB`, `DiscountedUCB`); larl's engine is the same policy with its world.
Contexts are made beforehand for the peers; LARL makes its own.

{table(["peer", "arms", "d", "peer, µs", "larl live, µs", "larl's engine, µs", "peer : live", "peer : engine"], rows)}
"""


def regret(found: Found) -> str:
    worlds, rows = found["worlds"], []
    for name in dict.fromkeys(name for world in worlds.values() for name in world):
        cells = []
        for world in worlds.values():
            row = world[name]
            if "missing" in row:
                cells.append(f"not measured: {row['missing']}")
                continue
            setting = ", ".join(f"{key} {value:g}" for key, value in row.get("setting", {}).items())
            cells.append(f"{row['mean']:.0f} ± {row['se']:.1f} ({row['trials']}{'; ' + setting if setting else ''})")
        rows.append([name, *cells])
    return f"""## Regret of the peers' policies

Total regret over {found["horizon"]} steps in the paper's worlds, from step k on, ± one standard error (trials; settings chosen on other
seeds, world by world). Peers with a context are handed LARL's, which none of them makes, with s chosen too, from {LAGS}: they are LARL with another
prior or width. larl's own policies are below them, on the same seeds.

{table(["policy", *(f"k = {k}" for k in worlds)], rows)}
"""


def growth(found: Found) -> str:
    rows = []
    for name, trial in found["long"].items():
        for row in trial["rows"]:
            each = max(row["seconds"] - row["fixed"], 0.0) / (row["steps"] - 500) * 1e6
            cost = us(each) if row["steps"] >= trial["fit"]["from"] else "–"
            rows.append([f"`{name}`", f"{row['steps']:,}", f"{row['seconds']:.3g}", cost, f"{row['peak_mb']:.0f}"])
    fits = [
        [
            f"steps, `{name}`",
            f"{trial['fit']['exponent']:.2f}",
            f"{trial['fit']['from']:,} – {trial['fit']['to']:,}",
            "1",
        ]
        for name, trial in found["long"].items()
    ]
    for what, title, law in (("trials", "trials", "1"), ("s", "s (2 arms)", "2"), ("arms", "arms (s = 5)", "2")):
        fit = found[what]
        fits.append([title, f"{fit['exponent']:.2f}", f"{fit['from']:,} – {fit['to']:,}", law])
    return f"""## How cost grows

One trial with `keep="summary"`, each in a process of its own; µs a step is without the time of a trial of 500 steps, which is
that of making the result.

{table(["policy", "steps", "seconds", "µs a step", "peak memory, MB"], rows)}

Exponents, the slope of log cost over log size, for `LARL(5)` unless named. By the number of operations a step grows with the square
of s and of the arms; where matrices leave a cache, faster for a while.

{table(["of", "exponent", "fitted over", "by operations"], fits)}
"""


def startup(found: Found) -> str:
    rows = [[name, f"{value:.2f}"] for name, value in found["seconds"].items()]
    slow = sorted(found["policies"], key=lambda line: -float(line.rsplit(" ", 2)[1]) if "compiled in" in line else 0.0)
    return f"""## Cold start

Kernels are compiled when first used and kept. `larl precompile` does that ahead of time; on a terminal a line says when it happens
unasked. "First result" is the comparison of three policies in the README.

{table(["in a new process", "seconds"], rows)}

The three that take longest: {"; ".join(slow[:3])}.
"""


def auto(found: Found) -> str:
    rows = [[name, us(row["mean"]), us(row["p99.9"]), us(row["worst"])] for name, row in found.items() if "=" in name]
    tenths = list(found["long"].values())
    return f"""## Auto, live

{table(["world and steps", "mean, µs", "p99.9, µs", "worst, µs"], rows)}

The bare filters of its particles, without weighing and moves, take {us(found["bare_us"])} µs a step. Over one long trial the last tenth costs
{tenths[-1] / tenths[1]:.2f} of the second; its State takes {size(found["state_bytes"])} however long it runs.
"""


PARTS = {
    "floor": floor,
    "policies": policies,
    "auto": auto,
    "peers": peers,
    "regret": regret,
    "growth": growth,
    "startup": startup,
}


def main() -> None:
    found = {
        name: json.loads((FOLDER / f"{name}.json").read_text()) for name in PARTS if (FOLDER / f"{name}.json").exists()
    }
    abouts = [each["about"] for each in found.values() if "about" in each]
    about, load = abouts[0], max(each["load"][0] for each in abouts)
    head = f"""# Performance

Made by `make bench`; no figure is typed by hand. The two sides of every ratio took turns in the same run, and the quickest
of several repetitions counts, in processor time unless it says wall, live or seconds: times depend on the machine and on what
else it does, ratios much less. This run: larl
{about["larl"]}, Python {about["python"]}, numba {about["numba"]}, {about["cores"]} cores ({about["machine"]}), and up to {load:g} processes that wanted
them.
"""
    PAGE.write_text("\n".join([head, *(PARTS[name](each) for name, each in found.items())]))
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
