// Values as text.

import { element } from "./dom.js";

const NONE = "–";
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

export function formatNumber(value, digits = 3) {
  if (value === null || value === undefined) return NONE;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(2).replace("-", "−");
  const text = Number.isInteger(value)
    ? value.toLocaleString("en-GB")
    : value.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : digits);
  return text.replace("-", "−");
}

export function formatPercent(value) {
  if (value === null || value === undefined) return NONE;
  const share = 100 * value;
  return `${share > 0 && share < 0.95 ? share.toFixed(1) : share.toFixed(0)} %`;
}

// Times arrive as text in UTC, such as 2026-11-16T10:19:28.976597Z.
export const formatDay = (at) => `${Number(at.slice(8, 10))} ${MONTHS[Number(at.slice(5, 7)) - 1]}`;
export const formatTime = (at) => (at ? `${formatDay(at)} ${at.slice(11, 16)}` : NONE);
export const timeElement = (at, zone = " UTC") =>
  element("time", { datetime: at, title: `${at.slice(0, 19).replace("T", " ")} UTC` }, formatTime(at) + zone);

// A mapping is a prior of Auto, or settings of another kind.
const formatSetting = (value) => Array.isArray(value) ? value.join(", ")
  : value?.format === "larl.prior" ? `from ${value.units} units`
  : value !== null && typeof value === "object" ? JSON.stringify(value) : value;

export function formatPolicy(spec) {
  const { policy: name, ...fields } = spec;
  const shown = Object.entries(fields).map(([key, value]) => `${key} = ${formatSetting(value)}`);
  return shown.length ? `${name} (${shown.join("; ")})` : name;
}

// Return the settings of a study's probabilities and schedule that are not the default.
export function formatDeployment({ min_probability: minimum, allocation, update_every: every, warm_up: warmUp }) {
  const shares = typeof minimum === "object"
    ? Object.entries(minimum).map(([arm, share]) => `${arm} ${share}`).join(", ") : minimum;
  const kind = allocation?.kind ?? allocation ?? "ucb";
  return [
    shares ? `minimum probability ${shares}` : null,
    kind === "ucb" ? null : `${kind} allocation`,
    every ? `learns every ${every === "night" ? "night" : formatCount(every, "decision")}` : null,
    warmUp ? `warm-up of ${formatCount(warmUp, "decision")}` : null,
  ];
}

export const formatCount = (count, one, more = `${one}s`) => `${formatNumber(count)} ${count === 1 ? one : more}`;

// Return the number of new decisions, if there are any, and the time of the last event.
export function formatChange(newDecisions, at) {
  const added = newDecisions > 0 ? `${formatCount(newDecisions, "new decision")}, ` : "";
  return `${added}last event ${formatDay(at)} ${at.slice(11, 19)} UTC`;
}
