// The view of one unit: its decisions and rewards, its probabilities, and the model weights of its policy.

import { request, studyLink, unitLink, unitOverviewPath } from "./api.js";
import { Chart } from "./charts.js";
import { BarTable, Figures, Table, element } from "./dom.js";
import { formatChange, formatCount, formatNumber, formatPercent, formatTime, timeElement } from "./format.js";

const FIRST_ROWS = 25, MAX_ROWS = 500; // of the table of decisions
const MAX_ARMS = 12; // in a chart
const MAX_OPEN = 20; // pending and late rewards in the list
const WEIGHTS_RETRY = 10_000; // milliseconds until weights that were not available are requested again

export class UnitView {
  interval = 2_000;

  constructor(study, unit) {
    this.study = study;
    this.unit = unit;
    this.title = `${unit}, ${study}`;
    this.breadcrumb = [[study, studyLink(study)], [unit, unitLink(study, unit)]];
    this.seq = 0; // of the last event that is shown
    this.rows = FIRST_ROWS;
    this.settings = element("p", { class: "settings" });
    this.figures = new Figures(["Decisions", "Mean reward", "Pending", "Late", "Missing", "Last decision (UTC)"]);
    this.timeline = new Chart("Timeline",
      "Dots: rewards, in the colour of the arm. Dashed line and band: expected reward ± width. Below: the chosen arms.",
      240);
    this.probabilities = new Chart("Probability of each arm", "At each decision");
    this.weights = new BarTable("Model weights", "Model", "Weight", formatPercent);
    this.weightsNote = element("p", { class: "muted" }, "The weight that the policy gives to each model of the rewards");
    this.noWeights = element("p", { class: "empty" });
    this.openRewards = element("div");
    this.table = new Table("Decisions, latest first",
      ["Step", "Time (UTC)", "Arm", "Probability", "Expected", "Width", "Reward", "State", "Source"],
      ["number", "", "", "number", "number", "number", "number", "", ""]);
    const showAll = () => { this.rows = MAX_ROWS; this.updateTable(); };
    this.more = element("button", { type: "button", onclick: showAll });
    this.node = element("div", {}, element("h1", { tabindex: "-1" }, unit), this.settings, this.figures.node,
      element("section", { class: "panel", "aria-label": "Timeline" }, this.timeline.node), this.panels(),
      element("section", { class: "panel" }, element("h2", {}, "Decisions"), this.table.node,
        element("div", { class: "pages" }, this.more)));
  }

  panels() {
    return element("div", { class: "grid" },
      element("section", { class: "panel", "aria-label": "Probabilities" }, this.probabilities.node),
      element("div", {},
        element("section", { class: "panel" }, element("h2", {}, "Model weights"),
          this.weightsNote, this.noWeights, this.weights.node),
        element("section", { class: "panel" }, element("h2", {}, "Pending and late rewards"), this.openRewards)));
  }

  async update(signal) {
    const lacksWeights = this.overview?.has_weights && !this.overview.weights;
    const after = lacksWeights && Date.now() > this.updated + WEIGHTS_RETRY ? 0 : this.seq;
    const overview = await request(`${unitOverviewPath(this.study, this.unit)}&after=${after}`, { signal });
    if (!overview) return null;
    const newDecisions = this.seq ? overview.decisions - this.overview.decisions : 0;
    this.overview = overview;
    this.seq = overview.seq;
    this.updated = Date.now();
    const { number, decisions, imported, reward, states, entered, last } = overview;
    this.settings.replaceChildren("Unit ", formatNumber(number), " of study ",
      element("a", { href: studyLink(this.study) }, this.study), ", registered ", timeElement(entered),
      imported ? `, ${formatCount(imported, "imported step")}` : "");
    this.figures.update([formatNumber(decisions), formatNumber(reward), formatNumber(states.pending),
      formatNumber(states.late), formatNumber(states.missing), formatTime(last)]);
    this.updateCharts();
    this.updateWeights();
    this.updateOpenRewards();
    this.updateTable();
    return formatChange(newDecisions, overview.at);
  }

  updateCharts() {
    const { steps, arms } = this.overview, shown = arms.slice(0, MAX_ARMS);
    const axis = {
      x: steps.map((step) => step.t), xName: "Step",
      bucket: (i) => `Step ${steps[i].t}, ${formatTime(steps[i].at)}`,
    };
    const colours = steps.map((step) => `c${arms.indexOf(step.played ?? step.arm)}`);
    const hasWidth = (step) => step.expected !== null && step.width !== null;
    const bound = (sign) => steps.map((step) => (hasWidth(step) ? step.expected + sign * step.width : null));
    this.timeline.update({
      ...axis,
      layers: [
        { kind: "band", name: "", colour: "expected", values: bound(0), low: bound(-1), high: bound(1) },
        { kind: "line", name: "Expected", colour: "expected", dashed: true, values: steps.map((step) => step.expected),
          format: (i) => formatNumber(steps[i].expected) + (hasWidth(steps[i]) ? ` ± ${formatNumber(steps[i].width)}` : "") },
        { kind: "dots", name: "Reward", colour: "reward", colours, values: steps.map((step) => step.reward),
          format: (i) => (steps[i].reward === null ? steps[i].state : formatNumber(steps[i].reward)) },
        { kind: "text", name: "Arm", colour: "reward", colours, values: steps.map(() => null),
          format: (i) => steps[i].arm ?? "none available" },
      ],
      lanes: shown.map((name, arm) =>
        ({ name, marks: steps.map((step) => (step.arm === name ? `c${arm} ${step.source}` : null)) })),
    });
    this.probabilities.update({ ...axis, range: [0, 1], format: formatPercent, layers: shown.map((name, arm) => ({
      kind: "line", name, colour: arm,
      values: steps.map((step) => (step.arm === null ? null : step.probabilities[name] ?? null)),
    })) });
  }

  updateWeights() {
    const { has_weights: hasWeights, weights } = this.overview;
    this.weights.node.hidden = this.weightsNote.hidden = !weights;
    this.noWeights.hidden = Boolean(weights);
    this.noWeights.textContent = hasWeights ? "Not available yet." : "The policy of this study has no model weights.";
    if (weights) this.weights.update(Object.entries(weights).map(([name, weight]) => [name, weight, "weight"]));
  }

  updateOpenRewards() {
    const open = this.overview.steps.filter((step) => step.state === "pending" || step.state === "late");
    const item = (step) => element("li", {}, element("span", { class: `chip ${step.state}` }, step.state),
      ` step ${step.t}, `, timeElement(step.at), `, ${step.arm}`);
    this.openRewards.replaceChildren(open.length
      ? element("ul", { class: "plain" }, open.reverse().slice(0, MAX_OPEN).map(item))
      : element("p", { class: "empty" }, "No reward is pending or late."));
  }

  updateTable() {
    const steps = [...this.overview.steps].reverse();
    this.table.update(steps.slice(0, this.rows).map((step) => [
      String(step.t), timeElement(step.at, ""), formatArm(step),
      formatPercent(step.arm === null ? null : step.probabilities[step.arm]), formatNumber(step.expected),
      formatNumber(step.width), formatNumber(step.reward),
      element("span", { class: `chip ${step.state}` }, step.state),
      step.explored ? `${step.source}, explored` : step.source]));
    this.more.hidden = steps.length <= this.rows;
    this.more.textContent = `Show ${this.overview.decisions > steps.length ? "the latest" : "all"} ${steps.length}`;
  }
}

function formatArm(step) {
  if (step.arm === null) return step.reason ? `none available (${step.reason})` : "none available";
  return step.played === step.arm ? step.arm : `${step.arm} (played: ${step.played})`;
}
