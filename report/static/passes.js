// What each pass changed, and what passes decided.

class Passes {
  constructor(model, selection) {
    this.model = model;
    this.selection = selection;
    this.runs = model.report.passes;
    this.all = false;
    this.own = false;
    this.list = el("ol", { class: "list", "aria-label": "passes" });
    this.diffs = el("div", { class: "diffs", tabindex: "0", "aria-label": "differences" });
    this.ownName = el("span", { class: "muted" });
    const check = (text, onchange) =>
      el("label", {}, el("input", { type: "checkbox", onchange }), ` ${text}`);
    const left = el("section", { class: "pane list-pane" },
      el("div", { class: "tools" },
        check("also those that changed nothing", (event) => {
          this.all = event.currentTarget.checked;
          this.draw();
        })),
      this.list);
    const right = el("section", { class: "pane grow" },
      el("div", { class: "tools" },
        check("only the selected kernel", (event) => {
          this.own = event.currentTarget.checked;
          this.show(this.shownRun);
        }), this.ownName),
      this.diffs);
    this.element = el("div", { class: "row" }, left, splitter(left, true), right);
    this.draw();
    this.show(this.runs.findIndex((run) => run.differences.length));
    this.changed();
    selection.onchange(() => this.changed());
  }

  /** The name of the selected kernel, if there is one. */
  get kernel() {
    return this.model.report.kernels[this.selection.kernel]?.name;
  }

  changed() {
    this.ownName.textContent = this.kernel ?? "";
    if (this.own) this.show(this.shownRun);
  }

  draw() {
    let stage = null;
    const rows = [];
    this.runs.forEach((run, number) => {
      const changed = run.differences.length;
      if (!changed && !this.all) return;
      if (run.stage !== stage) rows.push(el("li", { class: "heading" }, (stage = run.stage)));
      const [removed, added] = ["removed", "added"].map((key) =>
        run.differences.reduce((sum, one) => sum + one[key], 0));
      rows.push(el("li", {}, el("button", {
        type: "button", class: "entry", "data-run": number,
        "aria-current": String(number === this.shownRun),
        onclick: () => this.show(number),
      },
      el("span", { class: "grow" }, run.name),
      changed ? el("span", { class: "removed" }, `−${removed}`) : null,
      changed ? el("span", { class: "added" }, `+${added}`) : el("span", { class: "muted" }, "no change"),
      el("span", { class: "muted time" }, seconds(run.seconds)))));
    });
    this.list.replaceChildren(...rows);
  }

  show(number) {
    this.shownRun = number;
    for (const entry of this.list.querySelectorAll(".entry")) {
      entry.setAttribute("aria-current", String(Number(entry.dataset.run) === number));
    }
    const run = this.runs[number];
    if (!run) return;
    const own = this.own && this.kernel;
    const found = run.differences.filter((one) => !own || one.function === own);
    this.diffs.replaceChildren(
      el("h2", {}, run.name),
      ...found.map((one) => this.difference(one)),
      found.length ? "" : el("p", { class: "muted" }, "It changed nothing here."),
    );
    this.diffs.scrollTop = 0;
  }

  difference(one) {
    const kernel = this.model.report.kernels.findIndex(({ name }) => name === one.function);
    const title = el("h3", {}, kernel < 0 ? one.function : el("button", {
      type: "button", class: "link",
      onclick: () => this.selection.selectKernel(kernel, this),
    }, one.function), " ",
    el("span", { class: "removed" }, `−${one.removed}`), " ",
    el("span", { class: "added" }, `+${one.added}`));
    const kinds = { "+": "added", "-": "removed", "@": "place" };
    const lines = one.text.split("\n").slice(2).map((line) =>
      el("div", { class: kinds[line[0]] ?? "" }, line || " "));
    const body = one.text ? el("pre", {}, lines)
      : el("p", { class: "muted" }, "Too long to be shown line by line.");
    return el("article", { class: "difference" }, title, body);
  }
}

/** All decisions, as a table that can be filtered. */
class Decisions {
  constructor(model, selection) {
    this.model = model;
    this.selection = selection;
    this.body = el("tbody");
    this.filter = el("input", {
      type: "search", placeholder: "filter", "aria-label": "filter decisions",
      oninput: () => this.draw(),
    });
    this.shownCount = el("span", { class: "muted" });
    const heads = ["stage", "pass", "about", "decision", "reason", "cost"];
    this.element = el("section", { class: "pane" },
      el("div", { class: "tools" }, this.filter, this.shownCount),
      el("div", { class: "scroll", tabindex: "0", "aria-label": "decisions" },
        el("table", { class: "decided" }, el("thead", {}, el("tr", {}, heads.map((head) => el("th", {}, head)))), this.body)));
    this.draw();
    selection.onchange(() => this.mark());
  }

  draw() {
    const words = this.filter.value.toLowerCase().split(/\s+/);
    const found = this.model.report.decisions.filter((one) => {
      const text = Object.values(one).flat().join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    });
    this.shownCount.textContent = count(found.length, "decision");
    const alike = d3.rollup(found, (group) => group, (one) => JSON.stringify(one));
    this.rows = [...alike.values()].map(([one, ...more]) => ({ one, row: el("tr", { class: one.kind },
      el("td", { class: "muted" }, one.stage ?? ""),
      el("td", { class: "muted" }, one.pass ?? ""),
      el("td", {}, el("button", { type: "button", class: "link", onclick: () => this.select(one) },
        breakable(one.subject))),
      el("td", {}, one.what,
        more.length ? el("span", { class: "muted" }, ` × ${more.length + 1}`) : null),
      el("td", {}, one.why), el("td", {}, one.cost ?? "")) }));
    this.body.replaceChildren(...this.rows.map(({ row }) => row));
    this.mark();
  }

  /** The number of the kernel that a decision is about, or -1. */
  kernel(decision) {
    const subjects = decision.subject.split(/[\s,]+/);
    return this.model.report.kernels.findIndex(({ name }) => subjects.includes(`@${name}`));
  }

  mark() {
    const { nodes, kernel, isEmpty } = this.selection;
    const names = new Set(this.model.names(nodes));
    for (const { one, row } of this.rows) {
      const about = this.kernel(one);
      row.classList.toggle("marked", !isEmpty
        && (about < 0 ? one.nodes.some((name) => names.has(name)) : about === kernel));
    }
  }

  /** The view is visible: show what is marked. */
  shown() {
    this.body.querySelector(".marked")?.scrollIntoView({ block: "center" });
  }

  select(decision) {
    const kernel = this.kernel(decision);
    if (kernel >= 0) this.selection.selectKernel(kernel, this);
    else {
      this.selection.selectNodes(this.model.nodesNamed(decision.nodes), this);
    }
  }
}
