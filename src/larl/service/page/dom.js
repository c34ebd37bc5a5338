// Elements that the views are made of.

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

// Return a new HTML or SVG element. Attributes that begin with "on" are event listeners.
export const element = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const svgElement = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

// Set the text of a node if it differs: screen readers announce every change of a live region.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// A row of key figures, each with its name.
export class Figures {
  constructor(names) {
    this.values = names.map(() => element("dd"));
    this.node = element("dl", { class: "figures" },
      names.map((name, i) => element("div", {}, element("dt", {}, name), this.values[i])));
  }

  update(values) {
    values.forEach((value, i) => setText(this.values[i], value));
  }
}

// A table that scrolls sideways if it is too wide. Its rows are arrays of cells.
export class Table {
  constructor(label, heads, classes = []) {
    this.classes = classes;
    this.body = element("tbody");
    const cells = heads.map((head, i) => element("th", { scope: "col", class: classes[i] }, head));
    const table = element("table", { "aria-label": label },
      element("thead", {}, element("tr", {}, cells)), this.body);
    this.node = element("div", { class: "scroll", role: "region", "aria-label": label, tabindex: "0" }, table);
  }

  update(rows) {
    const focused = this.body.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const cell = (content, i) =>
      element(i === 0 ? "th" : "td", { class: this.classes[i], scope: i === 0 ? "row" : null }, content);
    this.body.replaceChildren(...rows.map((cells) => element("tr", {}, cells.map(cell))));
    if (focused) [...this.body.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
  }
}

// A table of names, horizontal bars and values.
export class BarTable {
  constructor(label, nameHead, valueHead, format) {
    this.format = format;
    this.table = new Table(label, [nameHead, "", valueHead], ["", "wide", "number"]);
    this.table.node.classList.add("bars");
    this.node = this.table.node;
  }

  update(entries) {
    const largest = Math.max(...entries.map(([, value]) => value), 1e-9);
    this.table.update(entries.map(([name, value, kind]) => {
      const bar = element("span", { class: `bar-fill ${kind || ""}`, "aria-hidden": "true" });
      bar.style.width = `${(100 * value) / largest}%`;
      return [name, element("span", { class: "bar-track" }, bar), this.format(value)];
    }));
  }
}
