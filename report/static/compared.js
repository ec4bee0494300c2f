// Two reports beside each other: times, code and decisions, before and after.

/** How a number changed: its ratio, or nothing where one of both is unknown. */
const ratio = ([before, after]) => (before && after ? `× ${digits(after / before)}` : "");

/** What a row that only one report has, or whose code differs, says. */
const PLACES = { before: "only before", after: "only after", both: "" };

/** This report beside an earlier one. */
class ComparisonView {
  constructor(model, selection) {
    this.model = model;
    this.selection = selection;
    this.against = model.report.against;
    this.rows = "kernels";
    this.body = el("tbody");
    this.diff = el("div", { class: "diffs", tabindex: "0", "aria-label": "what changed in a kernel" });
    const heads = ["", "before", "after", "after / before", ""];
    const left = el("section", { class: "pane half" },
      el("div", { class: "tools" },
        choice("rows", [["kernels", "kernels"], ["nodes", "nodes"]], "kernels", (value) => {
          this.rows = value;
          this.draw();
        })),
      el("div", { class: "scroll", tabindex: "0", "aria-label": "times before and after" },
        el("table", { class: "times" },
          el("thead", {}, el("tr", {}, heads.map((head) => el("th", {}, head)))), this.body)));
    const right = el("section", { class: "pane grow" }, this.diff);
    this.element = el("div", { class: "row" }, left, splitter(left, true), right);
    this.draw();
    this.show(null);
  }

  /** Before is another program, on another machine, or the same one at another time. */
  summary() {
    const { title, version, target, seconds: times, arena } = this.against;
    const change = (pair, text) => (pair.includes(null) ? ""
      : `${text(pair[0])} before, ${text(pair[1])} after ${ratio(pair) && `(${ratio(pair)})`}`);
    return facts([
      ["before", `${title}, ${target}, stepwell ${version}`],
      ["a run", change(times, seconds)],
      ["arena", change(arena, bytes)],
    ]);
  }

  draw() {
    this.body.replaceChildren(...this.against[this.rows].map((row) => el("tr", {},
      el("td", {}, el("button", { type: "button", class: "link", onclick: () => this.select(row) },
        breakable(row.name))),
      ...row.seconds.map((time) => el("td", { class: "right" }, time === null ? "" : seconds(time))),
      el("td", { class: "right" }, ratio(row.seconds)),
      el("td", { class: "muted" }, PLACES[row.place] || (row.difference ? "other code" : "")))));
  }

  select(row) {
    const kernel = this.model.report.kernels.findIndex(({ name }) => name === row.name);
    if (this.rows === "nodes") this.selection.selectNodes(this.model.nodesNamed([row.name]), this);
    else if (kernel >= 0) this.selection.selectKernel(kernel, this);
    this.show(this.rows === "kernels" ? row : null);
  }

  /** What changed in a kernel; without one, the decisions that only one report has. */
  show(row) {
    const { removed, added } = this.against;
    const kinds = { "+": "added", "-": "removed", "@": "place" };
    const lines = row?.difference.split("\n").slice(2).map((line) =>
      el("div", { class: kinds[line[0]] ?? "" }, line || " "));
    const decision = (kind, sign) => (one) => el("li", {},
      el("span", { class: kind }, `${sign} `), one.subject, ": ", el("b", {}, one.what), `, because ${one.why}`);
    this.diff.replaceChildren(...[
      row ? el("h2", {}, row.name) : null,
      row?.difference ? el("article", { class: "difference" }, el("pre", {}, lines)) : null,
      row && !row.difference ? el("p", { class: "muted" },
        row.place === "both" ? "Its code is the same." : `It is in one report: ${PLACES[row.place]}.`) : null,
      row ? null : el("h2", {}, "both reports"),
      row ? null : this.summary(),
      el("h2", {}, "decisions that differ"),
      el("ul", { class: "why" }, removed.map(decision("removed", "−")), added.map(decision("added", "+"))),
      removed.length + added.length ? null : el("p", { class: "muted" }, "None."),
    ].filter(Boolean));
    this.diff.scrollTop = 0;
  }
}
