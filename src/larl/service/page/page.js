// The page: who is there, which view the address asks for, and how it stays up to date.

import { Refused, ask, make, say } from "./parts.js";
import { StudyList, StudyView } from "./study.js";
import { UnitView } from "./unit.js";

const HIDDEN = 30_000, LONGEST = 60_000; // milliseconds between looks while nobody sees the page, and while it fails
const place = Object.fromEntries(["main", "trail", "status", "changed", "pulse", "visitor"].map((id) => [id, document.getElementById(id)]));
let visitor = null, view = null, timer = 0, failures = 0, stopped = new AbortController();

function route() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").map(decode);
  if (parts[0] === "study" && parts[1] && parts.length === 2) return new StudyView(parts[1], visitor);
  if (parts[0] === "study" && parts[1] && parts[2] === "unit" && parts[3]) return new UnitView(parts[1], parts[3]);
  return new StudyList();
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function go(focus = true) {
  if (!visitor) return;
  rest();
  view = route();
  failures = 0;
  say(place.changed, "");
  document.title = `${view.title} · larl`;
  const trail = [["Studies", "#/"], ...view.trail];
  place.trail.replaceChildren(make("ol", {}, trail.map(([text, link], i) =>
    make("li", {}, make("a", { href: link, "aria-current": i === trail.length - 1 ? "page" : null }, text)))));
  place.main.replaceChildren(view.node);
  window.scrollTo(0, 0);
  if (focus) view.node.querySelector("h1").focus();
  look();
}

// Stop whatever is on its way.
function rest() {
  clearTimeout(timer);
  stopped.abort();
  stopped = new AbortController();
}

async function look() {
  clearTimeout(timer);
  const mine = view, signal = stopped.signal;
  try {
    const news = await mine.look(signal);
    if (signal.aborted) return;
    failures = 0;
    pulse("live", "Live");
    if (news) say(place.changed, news.text);
  } catch (error) {
    if (signal.aborted) return;
    if (!failed(error)) return;
  }
  later(mine);
}

// What becomes of a look that failed; whether there is to be another.
function failed(error) {
  if (error instanceof Refused && error.status === 401) {
    login("The session has ended. Please log in again.");
    return false;
  }
  if (error instanceof Refused && (error.status === 403 || error.status === 404 || error.status === 422)) {
    pulse("", "");
    place.main.replaceChildren(make("h1", { tabindex: "-1" }, error.status === 403 ? "Not for this token" : "Not found"),
      make("p", { class: "panel" }, `The service says: ${error.message}. `, make("a", { href: "#/" }, "All studies")));
    return false;
  }
  failures += 1;
  pulse("failing", `No connection: ${error instanceof Refused ? error.message : "the service does not answer"}. Trying again.`);
  return true;
}

function later(mine) {
  const wait = failures ? Math.min(mine.every * 2 ** failures, LONGEST) : document.hidden ? HIDDEN : mine.every;
  timer = setTimeout(look, wait);
}

function pulse(kind, text) {
  place.pulse.className = `pulse ${kind}`;
  say(place.status, text);
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && visitor && view) {
    rest();
    look();
  }
});
window.addEventListener("online", () => visitor && view && (rest(), look()));
window.addEventListener("hashchange", () => go());
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address says which view this is
  place.main.focus();
});

function login(message = "") {
  rest();
  visitor = view = null;
  document.title = "Log in · larl";
  pulse("", "");
  say(place.changed, "");
  place.trail.replaceChildren();
  place.visitor.replaceChildren();
  const token = make("input", { id: "token", type: "password", required: true, autocomplete: "current-password", spellcheck: "false", placeholder: "larl_…" });
  const wrong = make("p", { class: "wrong", role: "alert" }, message);
  const form = make("form", { class: "panel login", onsubmit: (event) => { event.preventDefault(); enter(token, wrong); } },
    make("h1", {}, "Log in"),
    make("p", { class: "quiet" }, "With a token of an analyst or an admin. It is exchanged for a session of twelve hours, and not kept."),
    make("label", { for: "token" }, "Token"), token, wrong, make("button", { class: "main" }, "Log in"));
  place.main.replaceChildren(form);
  token.focus();
}

async function enter(token, wrong) {
  try {
    welcome(await ask("v1/session", { method: "POST", body: { token: token.value.trim() } }));
  } catch (error) {
    wrong.textContent = error instanceof Refused ? `Refused: ${error.message}.` : "The service does not answer. Please try again.";
    token.select();
  }
}

function welcome(found) {
  visitor = found;
  const leave = async () => {
    try {
      await ask("v1/session", { method: "DELETE" });
      login("You are logged out.");
    } catch {
      pulse("failing", "You are not logged out yet: the service does not answer.");
    }
  };
  const anybody = found.token === "anybody"; // no tokens are asked for: there is no session to end
  place.visitor.replaceChildren(make("span", { class: "quiet" }, `${found.role}, ${found.study === "*" ? "all studies" : found.study}`),
    ...(anybody ? [] : [make("button", { type: "button", onclick: leave }, "Log out")]));
  go();
}

async function start() {
  try {
    const found = await ask("v1/session");
    if (found.role) welcome(found);
    else login();
  } catch {
    pulse("failing", "The service does not answer. Trying again.");
    setTimeout(start, 5_000);
  }
}

start();
