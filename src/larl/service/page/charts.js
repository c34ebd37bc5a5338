// Charts as SVG: lines, bands, bars, stacked bars and dots over one sequence of buckets, and rows of marks below.
//
// `Chart.update` takes {x, xName, bucket, layers, lanes, range, format}. `x` has the short label of each bucket,
// `bucket(i)` returns the long one. A layer has a kind, a name, a colour and a value for each bucket (null: none); a
// band has `low` and `high`; a stack has `base`. A lane has a name and a mark for each bucket (a class, or null).
// Each chart can also be read with the arrow keys and as a table.

import { element, setText, svgElement } from "./dom.js";
import { formatNumber } from "./format.js";

// Pixels: margins above and below the plot, height of a lane, mean width of a letter, and the widest bar.
const TOP = 12, BOTTOM = 26, LANE = 16, LETTER = 6.6, MAX_BAR = 56;
const NARROW = 460; // charts below this width have no labels at the ends of lines
const LABEL_HEIGHT = 14;

export class Chart {
  constructor(title, note, height = 210) {
    this.title = title;
    this.height = height;
    this.selected = null; // bucket
    this.data = null;
    this.svg = svgElement("svg", {
      tabindex: "0", role: "group", "aria-roledescription": "chart",
      "aria-label": `${title}. Use the arrow keys to read its values.`,
      onpointermove: (event) => this.select(this.bucketAt(event)), onpointerleave: () => this.select(null),
      onkeydown: (event) => this.handleKey(event), onblur: () => this.select(null),
    });
    this.tooltip = element("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    this.announcement = element("p", { class: "visually-hidden", "aria-live": "polite" });
    this.legend = element("ul", { class: "legend", "aria-label": `Legend: ${title}` });
    this.empty = element("p", { class: "empty", hidden: true }, "No data yet.");
    this.table = element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": `${title}, data table` });
    this.details = element("details", { ontoggle: () => this.updateTable() },
      element("summary", {}, "Data table"), this.table);
    this.plot = element("div", { class: "plot" }, this.svg, this.tooltip);
    this.node = element("figure", { class: "chart" },
      element("figcaption", {}, element("h3", {}, title), element("p", { class: "muted" }, note)),
      this.legend, this.plot, this.empty, this.announcement, this.details);
    new ResizeObserver(() => this.plot.clientWidth !== this.width && this.draw()).observe(this.plot);
  }

  update(data) {
    this.data = data;
    const hasValues = data.layers.some((layer) => layer.values.some((value) => value !== null));
    this.empty.hidden = hasValues;
    for (const part of [this.plot, this.details, this.legend]) part.hidden = !hasValues;
    this.legend.replaceChildren(...this.legendLayers().map((layer) => element("li", {}, legendKey(layer), layer.name)));
    this.draw();
    this.updateTable();
  }

  legendLayers() {
    const layers = this.data.layers.filter((layer) => layer.name && layer.kind !== "text");
    return layers.length > 1 ? layers : [];
  }

  draw() {
    const width = this.width = this.plot.clientWidth;
    if (!this.data || this.plot.hidden || width < 60) return;
    const { x, layers, lanes = [], format = formatTick } = this.data;
    const [low, high] = this.data.range || valueRange(layers);
    const ticks = niceTicks(low, high, 5), bottom = this.height - BOTTOM;
    const labelled = width >= NARROW ? this.legendLayers().filter((layer) => layer.kind !== "dots") : [];
    const leftLabels = [...ticks.map(format), ...lanes.map((lane) => truncate(lane.name, 12))];
    const left = 10 + LETTER * Math.max(...leftLabels.map((label) => label.length));
    const longest = Math.max(...labelled.map((layer) => truncate(layer.name).length));
    const right = labelled.length ? width - 16 - LETTER * longest : width - 8;
    this.step = (right - left) / x.length;
    this.scale = {
      x: (i) => left + (i + 0.5) * this.step,
      y: (value) => bottom - ((value - low) / (high - low)) * (bottom - TOP),
      left, right, bottom,
    };
    const height = this.height + LANE * lanes.length;
    this.cursor = svgElement("line", { class: "cursor", y1: TOP, y2: height - BOTTOM + 4, visibility: "hidden" });
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("height", height);
    this.svg.replaceChildren(this.drawGrid(ticks, format), ...layers.flatMap((layer) => this.drawLayer(layer)),
      this.drawEndLabels(labelled), this.drawLanes(lanes), this.drawBucketLabels(height), this.cursor);
    this.select(this.selected === null ? null : Math.min(this.selected, x.length - 1), false);
  }

  drawGrid(ticks, format) {
    const { left, right, y } = this.scale;
    return svgElement("g", { class: "rules", "aria-hidden": "true" }, ticks.flatMap((tick) => [
      svgElement("line", { x1: left, x2: right, y1: y(tick), y2: y(tick) }),
      svgElement("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, format(tick)),
    ]));
  }

  drawLanes(lanes) {
    const { x, left, right, bottom } = this.scale, width = Math.max(Math.min(this.step * 0.7, 9), 1.5);
    return svgElement("g", { class: "rules", "aria-hidden": "true" }, lanes.flatMap((lane, row) => {
      const middle = bottom + 12 + LANE * row;
      const mark = (kind, i) => (kind === null ? null : svgElement("rect",
        { class: `mark ${kind}`, x: x(i) - width / 2, y: middle - 5, width, height: 10, rx: 1 }));
      return [
        svgElement("line", { x1: left, x2: right, y1: middle, y2: middle }),
        svgElement("text", { x: left - 6, y: middle + 4, "text-anchor": "end" }, truncate(lane.name, 12)),
        ...lane.marks.map(mark),
      ];
    }));
  }

  drawBucketLabels(height) {
    const { x, left, right } = this.scale, labels = this.data.x.map(String);
    const widest = LETTER * Math.max(...labels.map((label) => label.length)) + 18;
    const every = niceStep(Math.ceil((labels.length * widest) / (right - left)));
    return svgElement("g", { "aria-hidden": "true" }, labels.map((label, i) =>
      (i % every ? null : svgElement("text", { x: x(i), y: height - 8, "text-anchor": "middle" }, label))));
  }

  drawLayer(layer) {
    const { x, y, bottom } = this.scale, colour = `c${layer.colour}`, values = layer.values;
    if (layer.kind === "bars" || layer.kind === "stack") {
      const width = Math.min(Math.max(this.step - (this.step > 5 ? 2 : 0), 0.6), MAX_BAR);
      return [svgElement("g", { class: `bars ${colour}` }, values.map((value, i) => {
        if (value === null) return null;
        const base = layer.base ? layer.base[i] : 0, top = y(base + value);
        const height = Math.max((layer.base ? y(base) : bottom) - top, 0);
        return svgElement("rect", { x: x(i) - width / 2, width, y: top, height });
      }))];
    }
    if (layer.kind === "band") {
      return segments(values).filter((segment) => segment.length > 1).map((segment) => {
        const upper = segment.map((i) => `${x(i)},${y(layer.high[i])}`);
        const lower = segment.map((i) => `${x(i)},${y(layer.low[i])}`).reverse();
        return svgElement("polygon", { class: `band ${colour}`, points: [...upper, ...lower].join(" ") });
      });
    }
    const dot = (i, dotColour, r) => svgElement("circle", { class: `dot ${dotColour}`, cx: x(i), cy: y(values[i]), r });
    if (layer.kind === "dots") {
      const radius = this.step > 7 ? 3 : 2.2;
      return [svgElement("g", {}, values.map((value, i) => (value === null ? null : dot(i, layer.colours[i], radius))))];
    }
    const line = `line ${colour}${layer.dashed ? " dashed" : ""}`;
    return segments(values).map((segment) => (segment.length > 1
      ? svgElement("polyline", { class: line, points: segment.map((i) => `${x(i)},${y(values[i])}`).join(" ") })
      : dot(segment[0], colour, 2.5)));
  }

  // Draw the names of layers at the ends of their lines, moved apart where they would overlap.
  drawEndLabels(layers) {
    const { bottom, right, y } = this.scale;
    const labels = layers.map((layer) => {
      const last = layer.values.findLastIndex((value) => value !== null), value = layer.values[last] ?? 0;
      return { layer, y: last < 0 ? bottom : y(layer.base ? layer.base[last] + value / 2 : value) };
    }).sort((a, b) => a.y - b.y);
    labels.forEach((label, i) => { if (i) label.y = Math.max(label.y, labels[i - 1].y + LABEL_HEIGHT); });
    let lowest = bottom;
    for (const label of labels.toReversed()) {
      label.y = Math.min(label.y, lowest);
      lowest = label.y - LABEL_HEIGHT;
    }
    return svgElement("g", { class: "ends", "aria-hidden": "true" }, labels.map((label) =>
      svgElement("text", { class: `c${label.layer.colour}`, x: right + 6, y: label.y + 4 }, truncate(label.layer.name))));
  }

  bucketAt(event) {
    const i = Math.floor((event.clientX - this.svg.getBoundingClientRect().left - this.scale.left) / this.step);
    return i >= 0 && i < this.data.x.length ? i : null;
  }

  handleKey(event) {
    const last = this.data.x.length - 1, now = this.selected ?? (event.key === "ArrowRight" ? -1 : last + 1);
    const next = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last, Escape: null }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.select(next === null ? null : Math.min(Math.max(next, 0), last));
    const texts = next === null ? [] : this.values(this.selected).map(([layer, text]) => `${layer.name} ${text}`);
    setText(this.announcement, next === null ? "" : [this.data.bucket(this.selected), ...texts].join("; "));
  }

  // Return the layers with values, and their values in a bucket as text.
  values(i) {
    const format = this.data.format || formatNumber;
    return this.data.layers.filter((layer) => layer.kind !== "band" && layer.name)
      .map((layer) => [layer, layer.format ? layer.format(i) : format(layer.values[i])]);
  }

  // Select a bucket, or none, and show its values in the tooltip.
  select(i, hasChanged = true) {
    this.selected = i;
    this.tooltip.hidden = i === null;
    this.cursor?.setAttribute("visibility", i === null ? "hidden" : "visible");
    if (i === null) return;
    const x = this.scale.x(i);
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
    if (hasChanged || !this.tooltip.childElementCount) {
      this.tooltip.replaceChildren(element("strong", {}, this.data.bucket(i)), ...this.values(i).map(([layer, text]) =>
        element("span", {}, legendKey(layer, i), `${layer.name} `, element("b", {}, text))));
    }
    const width = this.tooltip.offsetWidth, fits = x + 12 + width <= this.plot.clientWidth;
    this.tooltip.style.left = `${Math.max(0, fits ? x + 12 : x - 12 - width)}px`;
  }

  updateTable() {
    if (!this.details.open || !this.data) return;
    const layers = this.data.layers.filter((layer) => layer.kind !== "band" && layer.name);
    const heads = [this.data.xName, ...layers.map((layer) => layer.name)];
    const rows = this.data.x.map((_, i) => element("tr", {}, element("th", { scope: "row" }, this.data.bucket(i)),
      this.values(i).map(([, text]) => element("td", { class: "number" }, text))));
    this.table.replaceChildren(element("table", {}, element("caption", { class: "visually-hidden" }, this.title),
      element("thead", {}, element("tr", {}, heads.map((head, i) =>
        element("th", { scope: "col", class: i ? "number" : "" }, head)))),
      element("tbody", {}, rows)));
  }
}

function formatTick(tick) {
  const isPlain = tick === 0 || (Math.abs(tick) < 1e6 && Math.abs(tick) >= 1e-4);
  return isPlain ? String(tick).replace("-", "−") : formatNumber(tick);
}

const truncate = (text, length = 16) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

// Return the symbol of a layer for the legend, or for one bucket in the tooltip.
function legendKey(layer, i) {
  const colour = layer.colours && i !== undefined ? layer.colours[i] : `c${layer.colour}`;
  return element("i", { class: `key ${layer.kind} ${colour} ${layer.dashed ? "dashed" : ""}`, "aria-hidden": "true" });
}

// Return the sequences of consecutive indices whose values are not null.
function segments(values) {
  const found = [];
  values.forEach((value, i) => {
    if (value === null) return;
    if (i && values[i - 1] !== null) found.at(-1).push(i);
    else found.push([i]);
  });
  return found;
}

function valueRange(layers) {
  const values = layers.flatMap((layer) => [...(layer.low || layer.values), ...(layer.high || [])])
    .filter((value) => value !== null);
  const zero = layers.some((layer) => layer.kind === "bars") ? [0] : [];
  const low = Math.min(...values, ...zero), high = Math.max(...values, ...zero);
  const margin = high > low ? 0.06 * (high - low) : Math.abs(high) || 1;
  return [zero.length && low === 0 ? 0 : low - margin, high + margin];
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least);
}

function niceTicks(low, high, count) {
  const least = (high - low) / count, power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((each) => each >= least);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) {
    ticks.push(Number((i * step).toPrecision(10)));
  }
  return ticks;
}
