// The page: the session, the view that the address names, and its updates.

import { ApiError, request } from "./api.js";
import { element, setText } from "./dom.js";
import { StudyList, StudyView } from "./study.js";
import { UnitView } from "./unit.js";

// Milliseconds between updates: while the page is hidden, and at most after failures.
const HIDDEN_INTERVAL = 30_000, MAX_INTERVAL = 60_000;
const START_RETRY = 5_000;
const NO_ANSWER = "the service does not answer";
const ids = ["main", "breadcrumb", "status", "status-dot", "changed", "session"];
const nodes = Object.fromEntries(ids.map((id) => [id, document.getElementById(id)]));
let session = null, view = null, timer = 0, failures = 0, updates = new AbortController();

function currentView() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").map(decode);
  if (parts[0] === "study" && parts[1] && parts.length === 2) return new StudyView(parts[1], session);
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

function showView() {
  if (!session) return;
  cancelUpdates();
  view = currentView();
  failures = 0;
  setText(nodes.changed, "");
  document.title = `${view.title} · larl`;
  const links = [["Studies", "#/"], ...view.breadcrumb];
  nodes.breadcrumb.replaceChildren(element("ol", {}, links.map(([text, link], i) =>
    element("li", {}, element("a", { href: link, "aria-current": i === links.length - 1 ? "page" : null }, text)))));
  nodes.main.replaceChildren(view.node);
  window.scrollTo(0, 0);
  view.node.querySelector("h1").focus();
  updateView();
}

function cancelUpdates() {
  clearTimeout(timer);
  updates.abort();
  updates = new AbortController();
}

async function updateView() {
  clearTimeout(timer);
  const updated = view, signal = updates.signal;
  try {
    const change = await updated.update(signal);
    if (signal.aborted) return;
    failures = 0;
    setStatus("live", "Live");
    if (change) setText(nodes.changed, change);
  } catch (error) {
    if (signal.aborted || !mayRetry(error)) return;
  }
  const interval = failures ? Math.min(updated.interval * 2 ** failures, MAX_INTERVAL) : updated.interval;
  timer = setTimeout(updateView, !failures && document.hidden ? HIDDEN_INTERVAL : interval);
}

// Show the error of an update; return whether to try again.
function mayRetry(error) {
  const status = error instanceof ApiError ? error.status : 0;
  if (status === 401) {
    showLogin("The session has ended. Please log in again.");
    return false;
  }
  if (status === 403 || status === 404 || status === 422) {
    setStatus("", "");
    nodes.main.replaceChildren(
      element("h1", { tabindex: "-1" }, status === 403 ? "No permission" : "Not found"),
      element("p", { class: "panel" }, `The service answered: ${error.message}. `,
        element("a", { href: "#/" }, "All studies")));
    return false;
  }
  failures += 1;
  setStatus("failing", status ? `Error ${status}: ${error.message}. Retrying.` : `No connection: ${NO_ANSWER}. Retrying.`);
  return true;
}

function setStatus(kind, text) {
  nodes["status-dot"].className = `status-dot ${kind}`;
  setText(nodes.status, text);
}

function updateNow() {
  if (!session || !view) return;
  cancelUpdates();
  updateView();
}

document.addEventListener("visibilitychange", () => document.hidden || updateNow());
window.addEventListener("online", updateNow);
window.addEventListener("hashchange", showView);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the hash of the address names the view
  nodes.main.focus();
});

function showLogin(message = "") {
  cancelUpdates();
  session = view = null;
  document.title = "Log in · larl";
  setStatus("", "");
  setText(nodes.changed, "");
  nodes.breadcrumb.replaceChildren();
  nodes.session.replaceChildren();
  const token = element("input", {
    id: "token", type: "password", required: true, autocomplete: "current-password", spellcheck: "false",
    placeholder: "larl_…",
  });
  const error = element("p", { class: "error", role: "alert" }, message);
  const submit = (event) => {
    event.preventDefault();
    logIn(token, error);
  };
  nodes.main.replaceChildren(element("form", { class: "panel login", onsubmit: submit },
    element("h1", {}, "Log in"),
    element("p", { class: "muted" },
      "Use the token of an analyst or admin. The session lasts 12 hours; the page does not store the token."),
    element("label", { for: "token" }, "Token"), token, error, element("button", { class: "main" }, "Log in")));
  token.focus();
}

async function logIn(token, error) {
  try {
    startSession(await request("v1/session", { method: "POST", body: { token: token.value.trim() } }));
  } catch (failure) {
    error.textContent = failure instanceof ApiError
      ? `Refused: ${failure.message}.`
      : "The service does not answer. Please try again.";
    token.select();
  }
}

async function logOut() {
  try {
    await request("v1/session", { method: "DELETE" });
    showLogin("You are logged out.");
  } catch {
    setStatus("failing", `You are still logged in: ${NO_ANSWER}.`);
  }
}

function startSession(found) {
  session = found;
  const isAnonymous = found.token === "anybody"; // a service without authentication has no sessions
  nodes.session.replaceChildren(
    element("span", { class: "muted" }, `${found.role}, ${found.study === "*" ? "all studies" : found.study}`),
    ...(isAnonymous ? [] : [element("button", { type: "button", onclick: logOut }, "Log out")]));
  showView();
}

async function start() {
  try {
    const found = await request("v1/session");
    if (found.role) startSession(found);
    else showLogin();
  } catch {
    setStatus("failing", `No connection: ${NO_ANSWER}. Retrying.`);
    setTimeout(start, START_RETRY);
  }
}

start();
