// The list of studies, and the view of one study.

import { request, studyLink, studyPath, unitLink } from "./api.js";
import { Chart } from "./charts.js";
import { BarTable, Figures, Table, element, setText } from "./dom.js";
import {
  formatChange, formatCount, formatDay, formatDeployment, formatNumber, formatPercent, formatPolicy, formatTime,
} from "./format.js";
import { Issues } from "./issues.js";

const STATES = ["observed", "corrected", "defaulted", "pending", "missing", "late", "unavailable"];
const PAGE_SIZE = 50; // units
const MAX_COUNTED = 30; // studies of the list for which counts are requested

export class StudyList {
  interval = 10_000;
  title = "Studies";
  breadcrumb = [];

  constructor() {
    this.table = new Table("Studies", ["Study", "State", "Units", "Decisions", "Open issues", "Policy"],
      ["", "", "number", "number", "", ""]);
    this.body = element("div", {}, element("p", { class: "muted" }, "Loading…"));
    this.node = element("div", {}, element("h1", { tabindex: "-1" }, "Studies"),
      element("section", { class: "panel" }, this.body));
  }

  async update(signal) {
    const studies = await request("v1/studies", { signal });
    if (!studies.length) {
      this.body.replaceChildren(element("p", { class: "empty" }, "There is no study yet that this token can read. ",
        element("code", {}, "POST /v1/studies"), " creates a study."));
      return null;
    }
    const overviews = await Promise.all(studies.map((each, i) =>
      (i < MAX_COUNTED ? request(`${studyPath(each.study)}/overview`, { signal }) : null)));
    this.table.update(studies.map((each, i) => studyRow(each, overviews[i])));
    if (!this.table.node.isConnected) this.body.replaceChildren(this.table.node);
    return formatCount(studies.length, "study", "studies");
  }
}

function studyRow(study, overview) {
  const { red = 0, yellow = 0, green = 0 } = overview ? overview.issues : {};
  const open = [["red", red], ["yellow", yellow], ["green", green]].filter(([, count]) => count);
  return [
    element("a", { href: studyLink(study.study) }, study.study),
    stateChip(study, study.closed ? "closed" : "open"),
    formatNumber(overview?.units),
    formatNumber(overview?.decisions),
    open.length
      ? element("span", {}, open.map(([severity, count]) =>
        element("span", { class: `chip ${severity}` }, `${count} ${severity}`)))
      : overview ? "none" : "–",
    formatPolicy(study.policy),
  ];
}

const stateChip = (study, text) => element("span", { class: `chip ${study.closed ? "" : "open"}` }, text);

export class StudyView {
  interval = 2_000;

  constructor(study, session) {
    this.study = study;
    this.title = study;
    this.breadcrumb = [[study, studyLink(study)]];
    this.seq = 0; // of the last event that is shown
    this.firstUnit = 0; // of the page of units
    this.axis = null; // "days" or "steps"
    this.settings = element("p", { class: "settings" });
    this.progress = element("p", { class: "note", hidden: true, role: "status" });
    this.figures = new Figures(
      ["Units", "Decisions", "Mean reward", "Pending", "Late", "Explored", "Fallbacks"]);
    this.issues = new Issues(study, session);
    this.rewards = new Chart("Reward and expected reward",
      "Means over decisions; expected: the policy's prediction for the chosen arm");
    this.probabilities = new Chart("Probability of each arm", "Mean over decisions");
    this.shares = new Chart("Chosen arms", "Share of decisions");
    this.perDay = new Chart("Decisions per day", "Days in UTC");
    this.states = new BarTable("Decisions by state of the reward", "State", "Decisions", formatNumber);
    this.roster = new Table("Units",
      ["Unit", "Decisions", "Mean reward", "Pending", "Late", "Missing", "Last decision (UTC)"],
      ["", "number", "number", "number", "number", "number", ""]);
    this.pager = element("div", { class: "pages" });
    this.node = element("div", {}, element("h1", { tabindex: "-1" }, study), this.settings, this.progress,
      this.figures.node, this.issuesAndStates(), this.charts(), this.units());
  }

  issuesAndStates() {
    return element("div", { class: "grid uneven" }, this.issues.node,
      element("section", { class: "panel" }, element("h2", {}, "Rewards"),
        element("p", { class: "muted" }, "Decisions by state of the reward"), this.states.node));
  }

  charts() {
    const choice = (axis, text) => element("label", {}, element("input", {
      type: "radio", name: "axis", value: axis, onchange: () => { this.axis = axis; this.updateCharts(); },
    }), element("span", {}, text));
    this.axisChoice = element("fieldset", { class: "choice" },
      element("legend", { class: "visually-hidden" }, "Time axis of the charts"),
      choice("days", "By day"), choice("steps", "By step"));
    const panels = [this.rewards, this.probabilities, this.shares, this.perDay].map((chart) =>
      element("div", { class: "panel" }, chart.node));
    return element("section", { "aria-label": "Over time" },
      element("div", { class: "heading" }, element("h2", {}, "Over time"), this.axisChoice),
      element("div", { class: "grid" }, panels));
  }

  units() {
    const name = element("input", {
      id: "unit", required: true, pattern: "[A-Za-z0-9_.:\\-]{1,128}", autocomplete: "off", spellcheck: "false",
      title: "Name of a unit: letters, digits, _ . : and -",
    });
    const open = (event) => {
      event.preventDefault();
      location.hash = unitLink(this.study, name.value);
    };
    const form = element("form", { class: "inline", onsubmit: open },
      element("label", { for: "unit" }, "Open unit"), name, element("button", {}, "Open"));
    this.noUnits = element("p", { class: "empty", hidden: true }, "This study has no units yet.");
    return element("section", { class: "panel" },
      element("div", { class: "heading" }, element("h2", {}, "Units"), form),
      this.noUnits, this.roster.node, this.pager);
  }

  async update(signal) {
    if (!this.info) await this.updateSettings(signal);
    const overview = await request(`${studyPath(this.study)}/overview?after=${this.seq}`, { signal });
    if (!overview) return null;
    const newDecisions = this.seq && overview.behind === 0 ? overview.decisions - this.overview.decisions : 0;
    this.overview = overview;
    if (!this.axis) this.selectAxis(overview.days.start.length > 2 ? "days" : "steps");
    this.progress.hidden = overview.behind === 0;
    setText(this.progress, `Reading the journal: ${formatCount(overview.behind, "event")} left.`);
    this.interval = overview.behind ? 100 : 2_000;
    this.updateFigures();
    this.updateCharts();
    this.issues.update(overview);
    await Promise.all([this.updateUnits(signal), this.updateSettings(signal)]);
    this.seq = overview.behind ? 0 : overview.seq; // not before: if one of these fails, the next update repeats all
    return formatChange(newDecisions, overview.at);
  }

  selectAxis(axis) {
    this.axis = axis;
    this.axisChoice.querySelector(`[value=${axis}]`).checked = true;
  }

  async updateSettings(signal) {
    this.info = await request(studyPath(this.study), { signal });
    const { arms, policy, policy_version: version, pooling, max_delay: delay, closed } = this.info;
    const shown = [
      formatPolicy(policy),
      version > 1 ? `policy version ${version}` : null,
      formatCount(arms.length, "arm"),
      ...formatDeployment(this.info),
      pooling === "none" ? null : `${pooling} pooling`,
      `maximum delay ${formatCount(delay, "decision")}`,
      this.overview?.imported ? formatCount(this.overview.imported, "imported step") : null,
    ];
    this.settings.replaceChildren(stateChip(this.info, closed ? `closed ${formatTime(closed)}` : "open"),
      shown.filter(Boolean).join(" · "));
  }

  updateFigures() {
    const { units, decisions, reward, states, sources, explored } = this.overview;
    this.figures.update([formatNumber(units), formatNumber(decisions), formatNumber(reward),
      formatNumber(states.pending), formatNumber(states.late),
      formatPercent(sources.policy ? explored / sources.policy : null), formatNumber(sources.fallback)]);
    this.states.update(STATES.map((state) => [state, states[state], state]));
  }

  updateCharts() {
    const { days, arms, other_arms: others } = this.overview, series = this.overview[this.axis];
    const names = others ? [...arms, `${others} others`] : arms;
    const buckets = this.axis === "days" ? dayAxis(series) : stepAxis(series);
    this.rewards.update({ ...buckets, layers: [
      { kind: "line", name: "Reward", colour: "reward", values: series.reward },
      { kind: "line", name: "Expected", colour: "expected", dashed: true, values: series.expected },
    ] });
    this.probabilities.update({ ...buckets, range: [0, 1], format: formatPercent, layers: names.map((name, arm) =>
      ({ kind: "line", name, colour: arm, values: series.probabilities[arm] })) });
    const base = series.decisions.map(() => 0);
    this.shares.update({ ...buckets, range: [0, 1], format: formatPercent, layers: names.map((name, arm) => {
      const layer = { kind: "stack", name, colour: arm, values: series.shares[arm], base: [...base] };
      series.shares[arm].forEach((value, i) => { base[i] += value || 0; });
      return layer;
    }) });
    this.perDay.update({ ...dayAxis(days),
      layers: [{ kind: "bars", name: "Decisions", colour: "reward", values: days.decisions }] });
  }

  async updateUnits(signal) {
    const path = `${studyPath(this.study)}/roster?after=${this.firstUnit}&limit=${PAGE_SIZE}`;
    const { items, next } = await request(path, { signal }), total = this.overview.units;
    this.noUnits.hidden = total > 0;
    this.roster.node.hidden = total === 0;
    this.roster.update(items.map((each) => [
      element("a", { href: unitLink(this.study, each.unit) }, each.unit), formatNumber(each.decisions),
      formatNumber(each.reward), formatNumber(each.states.pending), formatNumber(each.states.late),
      formatNumber(each.states.missing), formatTime(each.last)]));
    const button = (text, first) => element("button", { type: "button", onclick: () => {
      this.firstUnit = first;
      this.updateUnits().catch(() => {}); // the next update shows the error
    } }, text);
    this.pager.replaceChildren(...(total > PAGE_SIZE ? [
      ...(this.firstUnit ? [button("Previous", Math.max(this.firstUnit - PAGE_SIZE, 0))] : []),
      element("span", { class: "muted" },
        `${this.firstUnit + 1}–${this.firstUnit + items.length} of ${formatNumber(total)}`),
      ...(next && next < total ? [button("Next", next)] : [])] : []));
  }
}

const dayAxis = ({ start, width }) => ({
  x: start.map(formatDay), xName: "Day",
  bucket: (i) => (width === 1 ? start[i] : `${width} days from ${start[i]}`),
});

const stepAxis = ({ start, width }) => ({
  x: start, xName: "Step",
  bucket: (i) => (width === 1 ? `Step ${start[i]}` : `Steps ${start[i]} to ${start[i] + width - 1}`),
});
