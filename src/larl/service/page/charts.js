// Charts as SVG: lines, bands, bars, stacks and dots over one row of buckets, with lanes of marks below.
//
// A chart is given {x, bucket, layers, lanes, range, write}: `x` are the short labels of the buckets, `bucket(i)` is
// the long one. A layer has a kind, a name, a colour and a value for each bucket (null: none); a band has `low` and
// `high`. Every chart can be read with arrow keys, and as a table.

import { draw, make, number, say } from "./parts.js";

const TOP = 12, BELOW = 26, LANE = 16, LETTER = 6.6, NARROW = 460;

export class Chart {
  constructor(title, note, height = 210) {
    this.title = title;
    this.height = height;
    this.at = null;
    this.data = null;
    this.svg = draw("svg", {
      tabindex: "0", role: "group", "aria-roledescription": "chart", "aria-label": `${title}. Arrow keys read its values.`,
      onpointermove: (event) => this.show(this.nearest(event)), onpointerleave: () => this.show(null),
      onkeydown: (event) => this.key(event), onblur: () => this.show(null),
    });
    this.tip = make("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    this.spoken = make("p", { class: "unseen", "aria-live": "polite" });
    this.legend = make("ul", { class: "legend", "aria-label": `Legend: ${title}` });
    this.empty = make("p", { class: "empty", hidden: true }, "Nothing to show yet.");
    this.table = make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": `${title}, as a table` });
    this.details = make("details", { ontoggle: () => this.tabulate() }, make("summary", {}, "As a table"), this.table);
    this.plot = make("div", { class: "plot" }, this.svg, this.tip);
    this.node = make("figure", { class: "chart" },
      make("figcaption", {}, make("h3", {}, title), make("p", { class: "quiet" }, note)),
      this.legend, this.plot, this.empty, this.spoken, this.details);
    new ResizeObserver(() => this.plot.clientWidth !== this.width && this.draw()).observe(this.plot);
  }

  update(data) {
    this.data = data;
    const some = data.layers.some((layer) => layer.values.some((value) => value !== null));
    this.empty.hidden = some;
    for (const part of [this.plot, this.details, this.legend]) part.hidden = !some;
    this.legend.replaceChildren(...this.named().map((layer) => make("li", {}, key(layer), layer.name)));
    this.draw();
    this.tabulate();
  }

  named() {
    const layers = this.data.layers.filter((layer) => layer.name && layer.kind !== "text");
    return layers.length > 1 ? layers : [];
  }

  draw() {
    const width = this.width = this.plot.clientWidth;
    if (!this.data || this.plot.hidden || width < 60) return;
    const { x, layers, lanes = [], write = plain } = this.data;
    const [low, high] = this.data.range || domain(layers);
    const ticks = niceTicks(low, high, 5);
    const bottom = this.height - BELOW, labels = width >= NARROW ? this.named().filter((layer) => layer.kind !== "dots") : [];
    const left = Math.max(...ticks.map((tick) => LETTER * write(tick).length), ...lanes.map((lane) => LETTER * clip(lane.name, 12).length)) + 10;
    const right = labels.length ? width - 16 - Math.max(...labels.map((layer) => LETTER * clip(layer.name).length)) : width - 8;
    this.step = (right - left) / x.length;
    this.place = { x: (i) => left + (i + 0.5) * this.step, y: (value) => bottom - ((value - low) / (high - low)) * (bottom - TOP), left, right, bottom };
    const full = this.height + LANE * lanes.length;
    const parts = [this.grid(ticks, write), ...layers.flatMap((layer) => this.layer(layer)), this.direct(labels), this.below(lanes, full)];
    this.cursor = draw("line", { class: "cursor", y1: TOP, y2: full - BELOW + 4, visibility: "hidden" });
    this.svg.setAttribute("viewBox", `0 0 ${width} ${full}`);
    this.svg.setAttribute("height", full);
    this.svg.replaceChildren(...parts, this.cursor);
    this.show(this.at === null ? null : Math.min(this.at, x.length - 1), false);
  }

  grid(ticks, write) {
    const { left, right, y } = this.place;
    return draw("g", { class: "rules", "aria-hidden": "true" }, ticks.flatMap((tick) => [
      draw("line", { x1: left, x2: right, y1: y(tick), y2: y(tick) }),
      draw("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, write(tick)),
    ]));
  }

  // The lanes of marks, and the labels of the buckets under all.
  below(lanes, full) {
    const { x, left, right, bottom } = this.place, count = this.data.x.length;
    const group = draw("g", { class: "rules", "aria-hidden": "true" });
    lanes.forEach((lane, row) => {
      const middle = bottom + 12 + LANE * row, wide = Math.max(Math.min(this.step * 0.7, 9), 1.5);
      group.append(draw("line", { x1: left, x2: right, y1: middle, y2: middle }),
        draw("text", { x: left - 6, y: middle + 4, "text-anchor": "end" }, clip(lane.name, 12)));
      lane.marks.forEach((mark, i) => mark && group.append(
        draw("rect", { class: `mark ${mark}`, x: x(i) - wide / 2, y: middle - 5, width: wide, height: 10, rx: 1 })));
    });
    const longest = Math.max(...this.data.x.map((label) => String(label).length));
    const every = niceStep(Math.ceil((count * (LETTER * longest + 18)) / (right - left)));
    for (let i = 0; i < count; i += every) {
      group.append(draw("text", { x: x(i), y: full - 8, "text-anchor": "middle" }, this.data.x[i]));
    }
    return group;
  }

  layer(layer) {
    const { x, y, bottom } = this.place, colour = `c${layer.colour}`, values = layer.values;
    if (layer.kind === "bars" || layer.kind === "stack") {
      const wide = Math.max(this.step - (this.step > 5 ? 2 : 0), 0.6);
      return [draw("g", { class: `bars ${colour}` }, values.map((value, i) => {
        if (value === null) return null;
        const base = layer.base ? layer.base[i] : 0, top = y(base + value);
        return draw("rect", { x: x(i) - wide / 2, width: wide, y: top, height: Math.max((layer.base ? y(base) : bottom) - top, 0) });
      }))];
    }
    if (layer.kind === "band") {
      return runs(values).filter((run) => run.length > 1).map((run) => draw("polygon", {
        class: `band ${colour}`,
        points: [...run.map((i) => `${x(i)},${y(layer.high[i])}`), ...run.reverse().map((i) => `${x(i)},${y(layer.low[i])}`)].join(" "),
      }));
    }
    if (layer.kind === "dots") {
      return [draw("g", {}, values.map((value, i) => value === null ? null
        : draw("circle", { class: `dot ${layer.colours[i]}`, cx: x(i), cy: y(value), r: this.step > 7 ? 3 : 2.2 })))];
    }
    const dash = layer.dashed ? " dashed" : "";
    return runs(values).map((run) => run.length > 1
      ? draw("polyline", { class: `line ${colour}${dash}`, points: run.map((i) => `${x(i)},${y(values[i])}`).join(" ") })
      : draw("circle", { class: `dot ${colour}`, cx: x(run[0]), cy: y(values[run[0]]), r: 2.5 }));
  }

  // Names at the ends of lines, kept apart.
  direct(layers) {
    const ends = layers.map((layer) => {
      const last = layer.values.findLastIndex((value) => value !== null);
      const value = layer.values[last] ?? 0;
      return { layer, y: last < 0 ? this.place.bottom : this.place.y(layer.base ? layer.base[last] + value / 2 : value) };
    }).sort((a, b) => a.y - b.y);
    ends.forEach((end, i) => { if (i) end.y = Math.max(end.y, ends[i - 1].y + 14); });
    for (let i = ends.length - 1, most = this.place.bottom; i >= 0; i -= 1, most = ends[i + 1].y - 14) ends[i].y = Math.min(ends[i].y, most);
    return draw("g", { class: "ends", "aria-hidden": "true" }, ends.map((end) =>
      draw("text", { class: `c${end.layer.colour}`, x: this.place.right + 6, y: end.y + 4 }, clip(end.layer.name))));
  }

  nearest(event) {
    const shown = this.svg.getBoundingClientRect();
    const i = Math.floor((event.clientX - shown.left - this.place.left) / this.step);
    return i >= 0 && i < this.data.x.length ? i : null;
  }

  key(event) {
    const last = this.data.x.length - 1, at = this.at ?? (event.key === "ArrowRight" ? -1 : last + 1);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last, Escape: null }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.show(to === null ? null : Math.min(Math.max(to, 0), last));
    say(this.spoken, to === null ? "" : [this.data.bucket(this.at), ...this.values(this.at).map(([layer, text]) => `${layer.name} ${text}`)].join("; "));
  }

  values(i) {
    const write = this.data.write || number;
    return this.data.layers.filter((layer) => layer.kind !== "band" && layer.name).map((layer) => [layer, layer.write ? layer.write(i) : write(layer.values[i])]);
  }

  show(i, moved = true) {
    this.at = i;
    this.tip.hidden = i === null;
    this.cursor?.setAttribute("visibility", i === null ? "hidden" : "visible");
    if (i === null) return;
    const x = this.place.x(i);
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
    if (moved || !this.tip.childElementCount) {
      this.tip.replaceChildren(make("strong", {}, this.data.bucket(i)),
        ...this.values(i).map(([layer, text]) => make("span", {}, key(layer, i), `${layer.name} `, make("b", {}, text))));
    }
    const wide = this.tip.offsetWidth, room = this.plot.clientWidth;
    this.tip.style.left = `${Math.max(0, x + 12 + wide > room ? x - 12 - wide : x + 12)}px`;
  }

  tabulate() {
    if (!this.details.open || !this.data) return;
    const heads = [this.data.xName, ...this.data.layers.filter((layer) => layer.kind !== "band" && layer.name).map((layer) => layer.name)];
    const rows = this.data.x.map((_, i) => make("tr", {}, make("th", { scope: "row" }, this.data.bucket(i)),
      this.values(i).map(([, text]) => make("td", { class: "number" }, text))));
    this.table.replaceChildren(make("table", {}, make("caption", { class: "unseen" }, this.title),
      make("thead", {}, make("tr", {}, heads.map((head, i) => make("th", { scope: "col", class: i ? "number" : "" }, head)))), make("tbody", {}, rows)));
  }
}

const plain = (tick) => (Math.abs(tick) < 1e6 && (Math.abs(tick) >= 1e-4 || tick === 0) ? String(tick).replace("-", "−") : number(tick));

const clip = (text, most = 16) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// What a layer looks like, in little.
const key = (layer, i) => {
  const colour = layer.colours && i !== undefined ? layer.colours[i] : `c${layer.colour}`;
  return make("i", { class: `key ${layer.kind} ${colour} ${layer.dashed ? "dashed" : ""}`, "aria-hidden": "true" });
};

// The stretches of indices whose values are there.
function runs(values) {
  const found = [];
  values.forEach((value, i) => {
    if (value === null) return;
    if (i && values[i - 1] !== null) found.at(-1).push(i);
    else found.push([i]);
  });
  return found;
}

function domain(layers) {
  const all = layers.flatMap((layer) => [...(layer.low || layer.values), ...(layer.high || [])]).filter((value) => value !== null);
  const zero = layers.some((layer) => layer.kind === "bars") ? [0] : [];
  const low = Math.min(...all, ...zero), high = Math.max(...all, ...zero);
  const room = high > low ? 0.06 * (high - low) : Math.abs(high) || 1;
  return [zero.length && low === 0 ? 0 : low - room, high + room];
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((many) => many * power).find((many) => many >= least);
}

function niceTicks(low, high, about) {
  const raw = (high - low) / about, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((many) => many * power).find((many) => many >= raw);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) ticks.push(Number((i * step).toPrecision(10)));
  return ticks;
}
