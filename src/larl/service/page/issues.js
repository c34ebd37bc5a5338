// The issues of a study, and the forms that resolve them.

import { request, studyPath, unitLink } from "./api.js";
import { element } from "./dom.js";
import { formatNumber, timeElement } from "./format.js";

const MEANING = { red: "act now", yellow: "check soon", green: "for information" };
const PAGE_SIZE = 100, MAX_RESOLVED = 1000; // issues

export class Issues {
  constructor(study, session) {
    this.study = study;
    this.canResolve = session.role === "admin" || session.role === "analyst";
    this.cards = new Map(); // by number of the issue: an update keeps a card, and the text in its form
    this.summary = element("p", { class: "summary" });
    this.help = element("p", { class: "muted", hidden: true },
      "The service records an issue when a policy fails or its clock goes back.");
    this.list = element("ul", { class: "issues" });
    this.resolvedList = element("ul", { class: "issues resolved" });
    this.resolved = element("details", { ontoggle: () => this.resolved.open && this.updateResolved() },
      element("summary", {}, "Resolved issues"), this.resolvedList);
    this.node = element("section", { class: "panel", "aria-label": "Issues" },
      element("div", { class: "heading" }, element("h2", {}, "Issues"), this.summary),
      this.help, this.list, this.resolved);
  }

  update({ issues, open }) {
    const counts = Object.entries(issues).filter(([, count]) => count);
    const chips = counts.map(([severity, count]) =>
      element("span", { class: `chip ${severity}` }, `${count} ${severity}`));
    this.summary.replaceChildren(...(chips.length ? chips : [element("span", { class: "chip open" }, "none open")]));
    this.help.hidden = chips.length > 0;
    this.updateCards(open);
    const hidden = counts.reduce((sum, [, count]) => sum + count, 0) - open.length;
    this.hiddenCount?.remove();
    if (hidden > 0) {
      this.hiddenCount = element("li", { class: "muted" }, `and ${formatNumber(hidden)} more`);
      this.list.append(this.hiddenCount);
    }
    if (this.resolved.open) this.updateResolved();
  }

  updateCards(open) {
    const numbers = new Set(open.map((each) => each.issue));
    for (const [number, card] of this.cards) {
      if (!numbers.has(number)) {
        card.remove();
        this.cards.delete(number);
      }
    }
    open.forEach((each, i) => {
      if (!this.cards.has(each.issue)) this.cards.set(each.issue, this.card(each));
      const card = this.cards.get(each.issue);
      if (this.list.children[i] !== card) this.list.insertBefore(card, this.list.children[i] || null);
    });
  }

  card(issue) {
    const title = `issue-${issue.issue}`;
    const facts = [element("span", { class: `chip ${issue.severity}` }, `${issue.severity}: ${MEANING[issue.severity]}`),
      timeElement(issue.at)];
    if (issue.unit) facts.push(element("a", { href: unitLink(this.study, issue.unit) }, issue.unit));
    const card = element("li", { class: `issue ${issue.severity}`, "aria-labelledby": title },
      element("p", { class: "about" }, facts),
      element("p", { class: "happened", id: title }, issue.happened),
      element("p", {}, element("b", {}, "Action: "), issue.done));
    if (issue.resolved) {
      card.append(element("p", {}, element("b", {}, "Resolved "), timeElement(issue.resolved),
        issue.note ? `: ${issue.note}` : ""));
    } else if (this.canResolve) {
      card.append(this.resolveForm(issue, title));
    }
    return card;
  }

  // Return a button that opens the form.
  resolveForm(issue, title) {
    const note = element("textarea", { id: `note-${issue.issue}`, rows: "2", maxlength: "500", required: true });
    const error = element("p", { class: "error", role: "alert" });
    const submit = async (event) => {
      event.preventDefault();
      try {
        const path = `${studyPath(this.study)}/issues/${issue.issue}/resolved`;
        await request(path, { method: "POST", body: { note: note.value } });
        this.cards.get(issue.issue)?.remove();
        this.summary.tabIndex = -1;
        this.summary.focus();
      } catch (failure) {
        error.textContent = `Not resolved: ${failure.message}`;
      }
    };
    const form = element("form", { hidden: true, onsubmit: submit },
      element("label", { for: note.id }, "Cause, and what was done about it"), note, error,
      element("div", { class: "actions" }, element("button", { class: "main" }, "Mark as resolved"),
        element("button", { type: "button", onclick: () => toggle(false) }, "Cancel")));
    const button = element("button", { type: "button", "aria-describedby": title, onclick: () => toggle(true) },
      "Resolve…");
    const toggle = (isOpen) => {
      form.hidden = !isOpen;
      button.hidden = isOpen;
      (isOpen ? note : button).focus();
    };
    return element("div", {}, button, form);
  }

  async updateResolved() {
    try {
      const found = [];
      for (let after = 0; after !== null && found.length < MAX_RESOLVED;) {
        const page = await request(`${studyPath(this.study)}/issues?after=${after}&limit=${PAGE_SIZE}`);
        found.push(...page.items.filter((each) => each.resolved));
        after = page.next;
      }
      this.resolvedList.replaceChildren(...(found.length
        ? found.reverse().map((each) => this.card(each))
        : [element("li", { class: "muted" }, "None yet.")]));
    } catch (error) {
      this.resolvedList.replaceChildren(
        element("li", { class: "error" }, `Resolved issues cannot be read: ${error.message}`));
    }
  }
}
