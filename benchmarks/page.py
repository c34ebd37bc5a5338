"""Write docs/performance.md from the measurements in results/bench/*.json."""

import json
from pathlib import Path
from typing import Any

from measure import FOLDER
from peer_packages import LAGS

PAGE = Path("docs/performance.md")
Row = list[str]
Data = dict[str, Any]


def table(head: Row, rows: list[Row]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def us(value: float) -> str:
    """Return microseconds with three digits."""
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


def size(count: float) -> str:
    """Return a number of bytes with its unit."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"


def target_met(row: Data, data: Data) -> str:
    if row["d"] < data["from"]:
        return "–"
    return "met" if row["step"] / row["bare_kernel"] <= data["target"] else "not met"


def percent(part: float, total: float) -> str:
    return f"{max(0.0, 100.0 * part / total):.0f}%"


def bare_kernel(data: Data) -> str:
    rows, measured = [], [row for row in data["rows"] if "skipped" not in row]
    for row in data["rows"]:
        head = [str(row[name]) for name in ("arms", "s", "d")]
        if "skipped" in row:
            rows.append([*head, f"skipped: {row['skipped']}", *[""] * 8])
            continue
        step = row["step"]
        parts = (step - row["update"], row["solve"] - row["shift"], row["update"] - row["solve"], row["shift"])
        rows.append(
            [*head, us(step), us(row["bare_kernel"]), f"{step / row['bare_kernel']:.2f}", target_met(row, data)]
            + [percent(part, step) for part in parts]
            + [size(row["bytes"])]
        )
    relevant = [row for row in measured if row["d"] >= data["from"]]
    missed = [f"{row['arms']} × {row['s']}" for row in relevant if target_met(row, data) != "met"]
    engine, small, large = data["engine"], relevant[0], measured[-1]
    return f"""## LARL's step and the bare kernel

At every step an exact ridge regression updates a d×d matrix by rank one, with d = 2s·arms + 1. The *bare kernel* is this update
alone, on the full square, over the same number of matrices in the same order. LARL also chooses (one width for each arm) and
computes u = V⁻¹Φ, but it stores and updates only the lower triangle, so it can be faster than the bare kernel. The target is a
ratio of at most {data["target"]:g} from d = {data["from"]}: {len(relevant) - len(missed)} of {len(relevant)} sizes meet it{"; arms × s = " + ", ".join(missed) + " do not" if missed else ""}.

{table(["arms", "s", "d", "LARL, µs per step", "bare kernel, µs", "ratio", "target", "widths", "u", "matrix", "lags", "State"], rows)}

The shares are differences between ablations in the same run: the step without the choice, without the matrix update, and with the
shift of the lags only. At d = {small["d"]} ({small["arms"]} arms) no part dominates. Rows have about ten numbers, so the start and end of a loop cost
as much as its body: the update of half of the matrix takes {(small["update"] - small["solve"]) / small["bare_kernel"]:.2f} of the time of the bare kernel, which updates all of it. With 2
arms half of the context is non-zero, so the widths and u cost as much as the update. With many arms the matrix update dominates.
Where the matrices of all arms exceed the caches ({size(large["bytes"])} at d = {large["d"]}: {(large["update"] - large["solve"]) / large["bare_kernel"]:.2f} of the bare kernel), memory bandwidth is the limit. In the
engine a step of LARL(5) with 2 arms takes {us(engine["both"])} µs, of which the world takes {percent(engine["world"], engine["both"])} and copying the State for a trial of 200 steps
{percent(engine["copy"], engine["both"])}.
"""


def policies(data: Data) -> str:
    threads, rows, speedups = data["threads"], [], []
    for row in data["rows"].values():
        wall, used = row["wall"], row["processor"]
        ratios = (
            wall["one"] / wall["all"],
            wall["bare kernel, one"] / wall["bare kernel, all"],
            used["one"] / used["all"],
        )
        speedups.append(ratios)
        speed = [us(used["one"] / row["steps"] * 1e6), f"{row['steps'] / wall['all']:,.0f}"]
        rows.append([f"`{row['spec']}`", *speed, *(f"{ratio:.2f}" for ratio in ratios)])
    reached, possible = (sum(ratio[i] >= 1.8 for ratio in speedups) for i in (0, 1))
    efficient = sum(ratio[2] >= 0.9 for ratio in speedups)
    head = ["policy", "µs per step, one core", f"steps per second, {threads} threads"]
    head += ["speed-up", "speed-up of the bare kernel", f"processor time, 1 : {threads} threads"]
    agents = [
        [f"`{row['spec']}`", us(row["p50"]), us(row["p99"]), size(row["bytes"])] for row in data["agents"].values()
    ]
    return f"""## All policies

World and policy, 2 arms, trials of {data["horizon"]} steps, k = 5. "Speed-up" is the wall time of the same trials on one thread divided by
that on {threads} threads. The bare kernel works on separate matrices and runs in alternation with the policy: its speed-up is what was
possible if other processes used the cores. The last column is the processor time on one thread divided by that on {threads} threads: 1
means that threads do not slow each other down. The target is a speed-up of 1.8 with two free cores. {reached} of {len(rows)} policies reach it;
the bare kernel reaches it in {possible} of {len(rows)} measurements. {efficient} of {len(rows)} policies have a ratio of processor times of at least 0.9.
Kernels hold no lock and share no memory except the trace.

{table(head, rows)}

## Agent

Processor time of `decide` + `observe` of a `larl.Agent`, 2 arms, one trial; of each step, the shortest of five repetitions. For fast
policies most of it is Python: checks, the record of the step, and the Decision.

{table(["policy", "p50, µs", "p99, µs", "State"], agents)}
"""


def peer_speed(data: Data) -> str:
    rows, versions = [], data["versions"]
    for row in data["rows"]:
        head = [row["title"], str(row["arms"]), str(row["d"] or "–")]
        if "not_measured" in row:
            rows.append([*head, f"not measured: {row['not_measured']}", *[""] * 4])
            continue
        times = [row["peer"], row["agent"], row["engine"]]
        rows.append([*head, *map(us, times), *(f"{row['peer'] / each:,.1f}" for each in times[1:])])
    packages = ", ".join(f"{package} {version}" for package, version in versions.items())
    return f"""## Speed of other packages

A decision and its update on the same contexts and rewards, on one thread ({packages}). "larl agent" is `decide` + `observe` of an agent
with a policy of the same kind (LARL, `SlidingWindowUCB`, `DiscountedUCB`). "larl engine" is the same policy with its world in a
simulation. The other packages get their contexts ready-made; LARL builds its own.

{table(["policy", "arms", "d", "package, µs", "larl agent, µs", "larl engine, µs", "package : agent", "package : engine"], rows)}
"""


def peer_regret(data: Data) -> str:
    worlds, rows = data["worlds"], []
    for name in dict.fromkeys(name for world in worlds.values() for name in world):
        cells = []
        for world in worlds.values():
            row = world[name]
            if "not_measured" in row:
                cells.append(f"not measured: {row['not_measured']}")
                continue
            setting = ", ".join(f"{key} {value:g}" for key, value in row.get("setting", {}).items())
            cells.append(f"{row['mean']:.0f} ± {row['se']:.1f} ({row['trials']}{'; ' + setting if setting else ''})")
        rows.append([name, *cells])
    return f"""## Regret of other packages

Total regret over {data["horizon"]} steps in the paper's worlds, from step k, ± one standard error (number of trials; settings, tuned in each
world on other seeds). Contextual policies get LARL's context, which none of the packages builds, with s tuned over {LAGS}: they are
LARL with another prior or width. The last rows are larl's own policies on the same seeds; Auto gets no information about the world.

{table(["policy", *(f"k = {k}" for k in worlds)], rows)}
"""


def growth(data: Data) -> str:
    rows = []
    for name, trial in data["long"].items():
        for row in trial["rows"]:
            per_step = max(row["seconds"] - row["fixed"], 0.0) / (row["steps"] - 500) * 1e6
            cost = us(per_step) if row["steps"] >= trial["fit"]["from"] else "–"
            rows.append([f"`{name}`", f"{row['steps']:,}", f"{row['seconds']:.3g}", cost, f"{row['peak_mb']:.0f}"])
    fits = [
        [
            f"steps, `{name}`",
            f"{trial['fit']['exponent']:.2f}",
            f"{trial['fit']['from']:,} – {trial['fit']['to']:,}",
            "1",
        ]
        for name, trial in data["long"].items()
    ]
    for name, title, expected in (("trials", "trials", "1"), ("s", "s (2 arms)", "2"), ("arms", "arms (s = 5)", "2")):
        fit = data[name]
        fits.append([title, f"{fit['exponent']:.2f}", f"{fit['from']:,} – {fit['to']:,}", expected])
    return f"""## Growth of cost

One trial with `keep="summary"`, each in a new process. The µs per step exclude the time of a trial of 500 steps, most of which is the
construction of the result.

{table(["policy", "steps", "seconds", "µs per step", "peak memory, MB"], rows)}

The exponent is the slope of log cost over log size, for `LARL(5)` unless another policy is named. The number of operations of a step
grows with the square of s and of the number of arms. Cost grows faster where the matrices outgrow a cache.

{table(["size", "exponent", "fitted over", "exponent of the number of operations"], fits)}
"""


def startup(data: Data) -> str:
    rows = [[name, f"{each['cold']:.2f}", f"{each['warm']:.2f}"] for name, each in data["uses"].items()]
    compiled = [line for line in data["policies"] if "compiled in" in line]
    slowest = sorted(compiled, key=lambda line: -float(line.rsplit(" ", 2)[1]))[:3]
    all_ = data["precompile"]
    return f"""## First use

Processor seconds of a new process, from start to exit. "First" has an empty cache of compiled code: each policy is compiled once, for
simulations and, if an agent needs it, for agents. "Later" is any process after that. Python alone takes {data["python"]:.2f} s, `import larl`
{data["import"]:.2f} s.

{table(["in a new process", "first, s", "later, s"], rows)}

`larl precompile` compiles all policies ahead of time, in two processes at once: {all_["wall"]:.0f} s, {all_["processor"]:.0f} s of processor time,
{all_["largest"] / 1e9:.2f} GB in the largest process; {all_["again"]:.1f} s if all are compiled. The three slowest: {"; ".join(slowest)}.
"""


def auto(data: Data) -> str:
    rows = [[name, us(row["mean"]), us(row["p99.9"]), us(row["worst"])] for name, row in data.items() if "=" in name]
    tenths = list(data["long"].values())
    return f"""## Auto in an agent

Processor time of `decide` + `observe` of a `larl.Agent` with Auto, 2 arms; of each step, the shortest of five repetitions.

{table(["world and steps", "mean, µs", "p99.9, µs", "maximum, µs"], rows)}

The Kalman filters of all particles, without reweighting and moves, take {us(data["filters_us"])} µs per step. In one long trial a step of the last
tenth takes {tenths[-1] / tenths[1]:.2f} of the time of a step of the second tenth. The State has a constant size of {size(data["state_bytes"])}.
"""


SECTIONS = {
    "bare_kernel": bare_kernel,
    "policies": policies,
    "auto": auto,
    "peer_speed": peer_speed,
    "peer_regret": peer_regret,
    "growth": growth,
    "startup": startup,
}


def main() -> None:
    data = {
        name: json.loads((FOLDER / f"{name}.json").read_text())
        for name in SECTIONS
        if (FOLDER / f"{name}.json").exists()
    }
    abouts = [each["about"] for each in data.values() if "about" in each]
    about, load = abouts[0], max(each["load"][0] for each in abouts)
    head = f"""# Performance

Generated by `make bench`. The two sides of every ratio alternate in the same run, and the shortest of several repetitions counts.
Times are processor times unless the text says wall time or seconds. They depend on the machine and its load; ratios depend on them
much less. This run: larl {about["larl"]}, Python {about["python"]}, numba {about["numba"]}, {about["cores"]} cores ({about["machine"]}), load average up to {load:g}.
"""
    PAGE.write_text("\n".join([head, *(SECTIONS[name](each) for name, each in data.items())]))
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
