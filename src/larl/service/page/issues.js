// What went wrong in a study, what was done, and how people say that it is dealt with.

import { ask, make, plural, segment, studyPath, time } from "./parts.js";

const MEANING = { red: "act now", yellow: "look soon", green: "for the record" };

export class Issues {
  constructor(study, visitor) {
    this.study = study;
    this.may = visitor.role === "admin" || visitor.role === "analyst";
    this.cards = new Map(); // by number: a form in which somebody writes stays as it is
    this.summary = make("p", { class: "summary" });
    this.list = make("ul", { class: "issues" });
    this.past = make("ul", { class: "issues past" });
    this.more = make("details", { ontoggle: () => this.more.open && this.history() }, make("summary", {}, "Resolved issues"), this.past);
    this.node = make("section", { class: "panel", "aria-label": "Issues" },
      make("div", { class: "heading" }, make("h2", {}, "Issues"), this.summary), this.list, this.more);
  }

  update({ issues, open }) {
    const counts = Object.entries(issues).filter(([, many]) => many);
    const shown = counts.map(([severity, many]) => make("span", { class: `chip ${severity}` }, `${many} ${severity}`));
    this.summary.replaceChildren(...(shown.length ? shown : [make("span", { class: "chip open" }, "none open")]));
    const wanted = new Set(open.map((each) => each.issue));
    for (const [number, card] of this.cards) {
      if (!wanted.has(number)) {
        card.remove();
        this.cards.delete(number);
      }
    }
    open.forEach((each, i) => {
      if (!this.cards.has(each.issue)) this.cards.set(each.issue, this.card(each));
      const card = this.cards.get(each.issue);
      if (this.list.children[i] !== card) this.list.insertBefore(card, this.list.children[i] || null);
    });
    const total = counts.reduce((sum, [, many]) => sum + many, 0);
    this.rest?.remove();
    if (total > open.length) {
      this.rest = make("li", { class: "quiet" }, `and ${plural(total - open.length, "more", "more")}`);
      this.list.append(this.rest);
    }
    if (this.more.open) this.history();
  }

  card(issue, resolved = false) {
    const title = `issue-${issue.issue}`;
    const about = [make("span", { class: `chip ${issue.severity}` }, `${issue.severity}: ${MEANING[issue.severity]}`), time(issue.at)];
    if (issue.unit) about.push(make("a", { href: `#/study/${segment(this.study)}/unit/${segment(issue.unit)}` }, issue.unit));
    const card = make("li", { class: `issue ${issue.severity}`, "aria-labelledby": title },
      make("p", { class: "about" }, about),
      make("p", { class: "happened", id: title }, issue.happened),
      make("p", {}, make("b", {}, "Done: "), issue.done));
    if (resolved) card.append(make("p", {}, make("b", {}, "Resolved "), time(issue.resolved), issue.note ? `: ${issue.note}` : ""));
    else if (this.may) card.append(this.resolving(issue, title));
    return card;
  }

  // A button that becomes a form.
  resolving(issue, title) {
    const note = make("textarea", { id: `note-${issue.issue}`, rows: "2", maxlength: "500", required: true });
    const wrong = make("p", { class: "wrong", role: "alert" });
    const form = make("form", {
      hidden: true,
      onsubmit: async (event) => {
        event.preventDefault();
        try {
          await ask(`${studyPath(this.study)}/issues/${issue.issue}/resolved`, { method: "POST", body: { note: note.value } });
          this.cards.get(issue.issue)?.remove();
          this.summary.tabIndex = -1;
          this.summary.focus();
        } catch (error) {
          wrong.textContent = `Not resolved: ${error.message}`;
        }
      },
    }, make("label", { for: note.id }, "What was found, and what was done about it"), note, wrong,
    make("div", { class: "actions" }, make("button", { class: "main" }, "Mark as resolved"), make("button", { type: "button", onclick: () => turn(false) }, "Cancel")));
    const button = make("button", { type: "button", "aria-describedby": title, onclick: () => turn(true) }, "Resolve…");
    const turn = (open) => {
      form.hidden = !open;
      button.hidden = open;
      (open ? note : button).focus();
    };
    return make("div", {}, button, form);
  }

  async history() {
    try {
      const found = [];
      for (let after = 0; after !== null && found.length < 1000;) {
        const page = await ask(`${studyPath(this.study)}/issues?after=${after}&limit=100`);
        found.push(...page.items.filter((each) => each.resolved));
        after = page.next;
      }
      this.past.replaceChildren(...(found.length ? found.reverse().map((each) => this.card(each, true)) : [make("li", { class: "quiet" }, "None yet.")]));
    } catch (error) {
      this.past.replaceChildren(make("li", { class: "wrong" }, `They cannot be read: ${error.message}`));
    }
  }
}
