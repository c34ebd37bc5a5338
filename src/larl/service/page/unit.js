// A unit: its timeline, its decisions, and what its policy weighs.

import { Chart } from "./charts.js";
import { Bars, Figures, Table, ask, lastly, make, moment, number, percent, segment, studyPath, time } from "./parts.js";
import { studyLink, unitLink } from "./study.js";

const ROWS = 25; // of the table at first
const AGAIN = 10_000; // milliseconds until evidence that was not known is asked for again

export class UnitView {
  every = 2_000;

  constructor(study, unit) {
    this.study = study;
    this.unit = unit;
    this.title = `${unit}, ${study}`;
    this.trail = [[study, studyLink(study)], [unit, unitLink(study, unit)]];
    this.seq = 0;
    this.rows = ROWS;
    this.facts = make("p", { class: "facts" });
    this.figures = new Figures(["Decisions", "Mean reward", "Pending", "Late", "Missing", "Last decision (UTC)"]);
    this.timeline = new Chart("Timeline", "Rewards in the colour of the arm; what was expected ± the width added for what is not known; below, the arms chosen", 240);
    this.odds = new Chart("Probabilities of the arms", "At each decision");
    this.evidence = new Bars("Evidence", "World", "Weight", percent);
    this.unweighed = make("p", { class: "empty" });
    this.waiting = make("div");
    this.table = new Table("Decisions, latest first", ["Step", "Time (UTC)", "Arm", "Probability", "Expected", "Width", "Reward", "State", "Source"],
      ["number", "", "", "number", "number", "number", "number", "", ""]);
    this.more = make("button", { type: "button", onclick: () => { this.rows = 500; this.tabulate(); } });
    this.node = make("div", {}, make("h1", { tabindex: "-1" }, unit), this.facts, this.figures.node,
      make("section", { class: "panel", "aria-label": "Timeline" }, this.timeline.node), this.middle(),
      make("section", { class: "panel" }, make("h2", {}, "Decisions"), this.table.node, make("div", { class: "pages" }, this.more)));
  }

  middle() {
    return make("div", { class: "grid" },
      make("section", { class: "panel", "aria-label": "Probabilities" }, this.odds.node),
      make("div", {},
        make("section", { class: "panel" }, make("h2", {}, "Evidence"), make("p", { class: "quiet" }, "Which worlds the policy holds for how likely"), this.unweighed, this.evidence.node),
        make("section", { class: "panel" }, make("h2", {}, "Pending and late rewards"), this.waiting)));
  }

  async look(signal) {
    const again = this.data?.weighs && !this.data.evidence && Date.now() > this.asked + AGAIN;
    const found = await ask(`${studyPath(this.study)}/units/${segment(this.unit)}/overview?after=${again ? 0 : this.seq}`, { signal });
    if (!found) return null;
    const fresh = this.seq ? found.decisions - this.data.decisions : 0;
    this.data = found;
    this.seq = found.seq;
    this.asked = Date.now();
    this.facts.replaceChildren("Unit ", number(found.number), " of study ", make("a", { href: studyLink(this.study) }, this.study), ", entered ", time(found.entered));
    this.figures.update([number(found.decisions), number(found.reward), number(found.states.pending), number(found.states.late), number(found.states.missing), moment(found.last)]);
    this.chart();
    this.weigh();
    this.wait();
    this.tabulate();
    return { text: lastly(fresh, found.at) };
  }

  chart() {
    const { steps, arms } = this.data;
    const axis = { x: steps.map((step) => step.t), xName: "Step", bucket: (i) => `Step ${steps[i].t}, ${moment(steps[i].at)}` };
    const colours = steps.map((step) => `c${arms.indexOf(step.played ?? step.arm)}`);
    const sure = (step) => step.expected !== null && step.width !== null;
    this.timeline.update({
      ...axis,
      layers: [
        { kind: "band", name: "", colour: "expected", values: steps.map((step) => (sure(step) ? step.expected : null)),
          low: steps.map((step) => (sure(step) ? step.expected - step.width : null)), high: steps.map((step) => (sure(step) ? step.expected + step.width : null)) },
        { kind: "line", name: "Expected", colour: "expected", dashed: true, values: steps.map((step) => step.expected),
          write: (i) => (sure(steps[i]) ? `${number(steps[i].expected)} ± ${number(steps[i].width)}` : number(steps[i].expected)) },
        { kind: "dots", name: "Reward", colour: "reward", colours, values: steps.map((step) => step.reward),
          write: (i) => (steps[i].reward === null ? steps[i].state : number(steps[i].reward)) },
        { kind: "text", name: "Arm", colour: "reward", colours, values: steps.map(() => null), write: (i) => steps[i].arm ?? "none available" },
      ],
      lanes: arms.slice(0, 12).map((name, arm) => ({ name, marks: steps.map((step) => (step.arm === name ? `c${arm} ${step.source}` : null)) })),
    });
    const shown = arms.slice(0, 12);
    this.odds.update({ ...axis, range: [0, 1], write: percent,
      layers: shown.map((name, arm) => ({ kind: "line", name, colour: arm, values: steps.map((step) => (step.arm === null ? null : step.probabilities[name] ?? null)) })) });
  }

  weigh() {
    const { weighs, evidence } = this.data;
    this.evidence.node.hidden = !evidence;
    this.unweighed.hidden = Boolean(evidence);
    this.unweighed.textContent = weighs ? "Not known yet." : "The policy of this study weighs none.";
    if (evidence) this.evidence.update(Object.entries(evidence).map(([name, weight]) => [name, weight, "weight"]));
  }

  wait() {
    const open = this.data.steps.filter((step) => step.state === "pending" || step.state === "late").reverse().slice(0, 20);
    this.waiting.replaceChildren(open.length
      ? make("ul", { class: "plain" }, open.map((step) => make("li", {}, make("span", { class: `chip ${step.state}` }, step.state), ` step ${step.t}, `, time(step.at), `, ${step.arm}`)))
      : make("p", { class: "empty" }, "No reward is pending, and none came too late."));
  }

  tabulate() {
    const steps = [...this.data.steps].reverse();
    this.table.update(steps.slice(0, this.rows).map((step) => [
      String(step.t), time(step.at, ""), arm(step), percent(step.arm === null ? null : step.probabilities[step.arm]), number(step.expected), number(step.width),
      number(step.reward), make("span", { class: `chip ${step.state}` }, step.state), step.explored ? `${step.source}, explored` : step.source]));
    this.more.hidden = steps.length <= this.rows;
    this.more.textContent = `Show all ${steps.length}${this.data.decisions > steps.length ? " of the latest" : ""}`;
  }
}

function arm(step) {
  if (step.arm === null) return step.reason ? `none: ${step.reason}` : "none available";
  return step.played === step.arm ? step.arm : `${step.arm} (done: ${step.played})`;
}
