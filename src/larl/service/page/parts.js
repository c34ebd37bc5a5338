// Small parts that every view is made of: elements, requests, and how values are written.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

export const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const draw = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// Set the text of a node only if it is another: what did not change is not read out again.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

// The answer to a request; null where there is nothing new.
export async function ask(path, { method = "GET", body, signal } = {}) {
  const headers = { "X-Larl-Page": "1" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const limit = AbortSignal.timeout(20_000);
  const answer = await fetch(path, {
    method, headers, body: body === undefined ? undefined : JSON.stringify(body), credentials: "same-origin",
    signal: signal ? AbortSignal.any([signal, limit]) : limit,
  });
  if (answer.status === 204) return null;
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, said.detail || `the service answered ${answer.status}`);
  return said;
}

export const segment = encodeURIComponent;
export const studyPath = (study) => `v1/studies/${segment(study)}`;

const NONE = "–";

export function number(value, digits = 3) {
  if (value === null || value === undefined) return NONE;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(2).replace("-", "−");
  const text = Number.isInteger(value) ? value.toLocaleString("en-GB") : value.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : digits);
  return text.replace("-", "−");
}

export function percent(value) {
  if (value === null || value === undefined) return NONE;
  const share = 100 * value;
  return `${share > 0 && share < 0.95 ? share.toFixed(1) : share.toFixed(0)} %`;
}

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

export const day = (date) => `${Number(date.slice(8, 10))} ${MONTHS[Number(date.slice(5, 7)) - 1]}`;
export const moment = (at) => (at ? `${day(at)} ${at.slice(11, 16)}` : NONE);
export const time = (at, zone = " UTC") => make("time", { datetime: at, title: `${at.slice(0, 19).replace("T", " ")} UTC` }, moment(at) + zone);

export function policy(spec) {
  const { policy: name, ...fields } = spec;
  const shown = Object.entries(fields).map(([key, value]) => `${key} = ${Array.isArray(value) ? value.join(", ") : value}`);
  return shown.length ? `${name} (${shown.join("; ")})` : name;
}

export const plural = (many, one, more = `${one}s`) => `${number(many)} ${many === 1 ? one : more}`;

// What is new, and when something happened last.
export const lastly = (fresh, at) => `${fresh > 0 ? `${plural(fresh, "new decision")}, ` : ""}last event ${day(at)} ${at.slice(11, 19)} UTC`;

// A list of what counts, each with its name.
export class Figures {
  constructor(names) {
    this.values = names.map(() => make("dd"));
    this.node = make("dl", { class: "figures" }, names.map((name, i) => make("div", {}, make("dt", {}, name), this.values[i])));
  }

  update(values) {
    values.forEach((value, i) => say(this.values[i], value));
  }
}

// A table that scrolls sideways where there is little room; its rows are arrays of cells.
export class Table {
  constructor(label, heads, kinds = []) {
    this.kinds = kinds;
    this.body = make("tbody");
    const cells = heads.map((head, i) => make("th", { scope: "col", class: kinds[i] }, head));
    const table = make("table", { "aria-label": label }, make("thead", {}, make("tr", {}, cells)), this.body);
    this.node = make("div", { class: "scroll", role: "region", "aria-label": label, tabindex: "0" }, table);
  }

  update(rows) {
    const focused = this.body.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    this.body.replaceChildren(...rows.map((cells) => make("tr", {}, cells.map((cell, i) =>
      make(i === 0 ? "th" : "td", { class: this.kinds[i], scope: i === 0 ? "row" : null }, cell)))));
    if (focused) [...this.body.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
  }
}

// Shares as bars beside their names.
export class Bars {
  constructor(label, head, tail, write) {
    this.write = write;
    this.table = new Table(label, [head, "", tail], ["", "wide", "number"]);
    this.table.node.classList.add("bars");
    this.node = this.table.node;
  }

  update(entries) {
    const most = Math.max(...entries.map(([, value]) => value), 1e-9);
    this.table.update(entries.map(([name, value, kind]) => {
      const bar = make("span", { class: `bar-fill ${kind || ""}`, "aria-hidden": "true" });
      bar.style.width = `${(100 * value) / most}%`;
      return [name, make("span", { class: "bar-room" }, bar), this.write(value)];
    }));
  }
}
