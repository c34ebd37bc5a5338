// The list of studies, and a study at a glance.

import { Chart } from "./charts.js";
import { Issues } from "./issues.js";
import { Bars, Figures, Table, ask, day, lastly, make, moment, number, percent, plural, policy, say, segment, studyPath } from "./parts.js";

const STATES = ["observed", "corrected", "defaulted", "pending", "missing", "late", "unavailable"];
const LISTED = 50; // units on a page of them
const COUNTED = 30; // studies of the list that are counted

export const studyLink = (study) => `#/study/${segment(study)}`;
export const unitLink = (study, unit) => `${studyLink(study)}/unit/${segment(unit)}`;

export class StudyList {
  every = 10_000;
  title = "Studies";
  trail = [];

  constructor() {
    this.table = new Table("Studies", ["Study", "State", "Units", "Decisions", "Open issues", "Policy"], ["", "", "number", "number", "", ""]);
    this.body = make("div", {}, make("p", { class: "quiet" }, "Reading…"));
    this.node = make("div", {}, make("h1", { tabindex: "-1" }, "Studies"), make("section", { class: "panel" }, this.body));
  }

  async look(signal) {
    const studies = await ask("v1/studies", { signal });
    if (!studies.length) {
      this.body.replaceChildren(make("p", { class: "empty" }, "There is no study yet that this token may read. A study is made by ", make("code", {}, "POST /v1/studies"), "."));
      return null;
    }
    const overviews = await Promise.all(studies.map((each, i) => (i < COUNTED ? ask(`${studyPath(each.study)}/overview`, { signal }) : null)));
    this.table.update(studies.map((each, i) => row(each, overviews[i])));
    if (!this.table.node.isConnected) this.body.replaceChildren(this.table.node);
    return { text: plural(studies.length, "study", "studies") };
  }
}

function row(study, overview) {
  const { red = 0, yellow = 0, green = 0 } = overview ? overview.issues : {};
  const open = [["red", red], ["yellow", yellow], ["green", green]].filter(([, many]) => many);
  return [
    make("a", { href: studyLink(study.study) }, study.study),
    make("span", { class: `chip ${study.closed ? "" : "open"}` }, study.closed ? "closed" : "open"),
    overview ? number(overview.units) : "–",
    overview ? number(overview.decisions) : "–",
    open.length ? make("span", {}, open.map(([severity, many]) => make("span", { class: `chip ${severity}` }, `${many} ${severity}`))) : "none",
    policy(study.policy),
  ];
}

export class StudyView {
  every = 2_000;

  constructor(study, visitor) {
    this.study = study;
    this.title = study;
    this.trail = [[study, studyLink(study)]];
    this.seq = 0;
    this.first = 0;
    this.by = null;
    this.facts = make("p", { class: "facts" });
    this.figures = new Figures(["Units", "Decisions", "Mean reward", "Pending", "Late", "Explored", "Fallbacks"]);
    this.issues = new Issues(study, visitor);
    this.perDay = new Chart("Decisions per day", "Days in UTC");
    this.shares = new Chart("Arms chosen", "Share of decisions");
    this.odds = new Chart("Probabilities of the arms", "Mean over decisions");
    this.rewards = new Chart("Reward and expectation", "Mean reward; what the policy expected of the arm it chose");
    this.states = new Bars("Rewards by state", "State", "Decisions", number);
    this.roster = new Table("Units", ["Unit", "Decisions", "Mean reward", "Pending", "Late", "Missing", "Last decision (UTC)"], ["", "number", "number", "number", "number", "number", ""]);
    this.pages = make("div", { class: "pages" });
    this.node = make("div", {}, make("h1", { tabindex: "-1" }, study), this.facts, this.progress(), this.figures.node, this.upper(), this.timed(), this.lower());
  }

  progress() {
    this.behind = make("p", { class: "note", hidden: true, role: "status" });
    return this.behind;
  }

  upper() {
    return make("div", { class: "grid uneven" }, this.issues.node,
      make("section", { class: "panel" }, make("h2", {}, "Rewards"), make("p", { class: "quiet" }, "What became of every decision"), this.states.node));
  }

  timed() {
    const choice = (by, text) => make("label", {}, make("input", {
      type: "radio", name: "by", value: by, onchange: () => { this.by = by; this.chart(); },
    }), make("span", {}, text));
    const choices = this.choices = make("fieldset", { class: "choice" }, make("legend", { class: "unseen" }, "Time axis of the charts"), choice("days", "By day"), choice("steps", "By step of the units"));
    return make("section", { "aria-label": "Over time" }, make("div", { class: "heading" }, make("h2", {}, "Over time"), choices),
      make("div", { class: "grid" }, [this.rewards, this.odds, this.shares, this.perDay].map((chart) => make("div", { class: "panel" }, chart.node))));
  }

  lower() {
    const name = make("input", { id: "unit", required: true, pattern: "[A-Za-z0-9_.:\\-]{1,128}", autocomplete: "off", spellcheck: "false", title: "The pseudonym of a unit" });
    const go = make("form", { class: "inline", onsubmit: (event) => { event.preventDefault(); location.hash = unitLink(this.study, name.value); } },
      make("label", { for: "unit" }, "Open unit"), name, make("button", {}, "Open"));
    this.nobody = make("p", { class: "empty", hidden: true }, "No unit has entered this study yet.");
    return make("section", { class: "panel" }, make("div", { class: "heading" }, make("h2", {}, "Units"), go), this.nobody, this.roster.node, this.pages);
  }

  async look(signal) {
    if (!this.info) await this.describe(signal);
    const found = await ask(`${studyPath(this.study)}/overview?after=${this.seq}`, { signal });
    if (!found) return null;
    const fresh = this.seq && found.behind === 0 ? found.decisions - this.data.decisions : 0;
    this.data = found;
    if (!this.by) this.choose(found.days.start.length > 2 ? "days" : "steps");
    this.behind.hidden = found.behind === 0;
    say(this.behind, `Reading the journal: ${plural(found.behind, "row")} to go.`);
    this.every = found.behind ? 100 : 2_000;
    this.count();
    this.chart();
    this.issues.update(found);
    await Promise.all([this.list(signal), this.describe(signal)]);
    this.seq = found.behind ? 0 : found.seq; // not before: if one of these fails, the next look asks for all again
    return { text: lastly(fresh, found.at) };
  }

  choose(by) {
    this.by = by;
    this.choices.querySelector(`[value=${by}]`).checked = true;
  }

  async describe(signal) {
    this.info = await ask(studyPath(this.study), { signal });
    const { arms, policy: spec, policy_version: version, floor, pooling, patience, closed } = this.info;
    const shown = [policy(spec), version > 1 ? `policy version ${version}` : null, plural(arms.length, "arm"), floor ? `floor ${floor}` : null,
      pooling === "none" ? null : `${pooling} pooling`, `rewards wait ${plural(patience, "decision")}`];
    this.facts.replaceChildren(make("span", { class: `chip ${closed ? "" : "open"}` }, closed ? `closed ${moment(closed)}` : "open"), shown.filter(Boolean).join(" · "));
  }

  count() {
    const { units, decisions, reward, states, sources, explored } = this.data;
    this.figures.update([number(units), number(decisions), number(reward), number(states.pending), number(states.late),
      sources.policy ? percent(explored / sources.policy) : "–", number(sources.fallback)]);
    this.states.update(STATES.map((state) => [state, states[state], state]));
  }

  chart() {
    const { days, arms, other_arms: others } = this.data, series = this.data[this.by];
    const names = others ? [...arms, `${others} others`] : arms;
    const shared = axis(series, this.by);
    this.perDay.update({ ...axis(days, "days"), layers: [{ kind: "bars", name: "Decisions", colour: "reward", values: days.decisions }] });
    const base = series.decisions.map(() => 0);
    this.shares.update({ ...shared, range: [0, 1], write: percent, layers: names.map((name, arm) => {
      const layer = { kind: "stack", name, colour: arm, values: series.shares[arm], base: [...base] };
      series.shares[arm].forEach((value, i) => { base[i] += value || 0; });
      return layer;
    }) });
    this.odds.update({ ...shared, range: [0, 1], write: percent, layers: names.map((name, arm) => ({ kind: "line", name, colour: arm, values: series.probabilities[arm] })) });
    this.rewards.update({ ...shared, layers: [
      { kind: "line", name: "Reward", colour: "reward", values: series.reward },
      { kind: "line", name: "Expected", colour: "expected", dashed: true, values: series.expected },
    ] });
  }

  async list(signal) {
    const { items, next } = await ask(`${studyPath(this.study)}/roster?after=${this.first}&limit=${LISTED}`, { signal });
    this.nobody.hidden = this.data.units > 0;
    this.roster.node.hidden = this.data.units === 0;
    this.roster.update(items.map((each) => [
      make("a", { href: unitLink(this.study, each.unit) }, each.unit), number(each.decisions), number(each.reward),
      number(each.states.pending), number(each.states.late), number(each.states.missing), moment(each.last)]));
    const turn = (text, first) => make("button", { type: "button", onclick: () => { this.first = first; this.list().catch(() => {}); } }, text); // the next look tells of a failure
    this.pages.replaceChildren(...(this.data.units > LISTED ? [
      ...(this.first ? [turn("Previous", Math.max(this.first - LISTED, 0))] : []),
      make("span", { class: "quiet" }, `${this.first + 1}–${this.first + items.length} of ${number(this.data.units)}`),
      ...(next && next < this.data.units ? [turn("Next", next)] : [])] : []));
  }
}

function axis(series, by) {
  const { start, width } = series;
  if (by === "days") {
    return { x: start.map(day), xName: "Day", bucket: (i) => (width === 1 ? start[i] : `${width} days from ${start[i]}`) };
  }
  return { x: start, xName: "Step", bucket: (i) => (width === 1 ? `Step ${start[i]}` : `Steps ${start[i]} to ${start[i] + width - 1}`) };
}
