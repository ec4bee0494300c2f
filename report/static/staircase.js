// The staircase: the graph of the model beside code at several stages, and what is selected.

const MOST_PANES = 4;

class Staircase {
  constructor(model, selection) {
    this.model = model;
    this.selection = selection;
    this.panes = [];
    this.code = el("div", { class: "panes" });
    this.kernels = this.kernelList();
    this.details = new Details(model, selection);
    this.more = el("button", {
      type: "button", class: "plain", title: "show another stage", "aria-label": "add pane",
      onclick: () => this.add(this.nextStage()),
    }, "+ stage");
    const right = el("div", { class: "column grow" },
      el("div", { class: "tools bar-of-kernels" }, el("label", {}, "kernel ", this.kernels), this.more),
      this.code);
    if (model.report.graph.operators.length) {
      this.graph = new GraphView(model, selection);
      const left = el("div", { class: "column left" }, this.graph.element,
        splitter(this.graph.element, false), this.details.element);
      this.element = el("div", { class: "row" }, left, splitter(left, true), right);
    } else {
      const left = el("div", { class: "column left" }, this.details.element);
      this.element = el("div", { class: "row" }, left, splitter(left, true), right);
    }
    const stages = model.report.stages.map((stage) => stage.name);
    this.add(stages.includes("pseudo-code") ? "pseudo-code" : stages[0]);
    this.add("asm");
    selection.onchange(() => (this.kernels.value = String(selection.kernel)));
  }

  kernelList() {
    const { kernels, title } = this.model.report;
    const options = [["-1", `${title} (the program)`]];
    kernels.forEach((kernel, number) => options.push([String(number), kernel.name]));
    return dropdown("kernel", options, this.selection.kernel, (value) =>
      this.selection.selectKernel(Number(value), this));
  }

  /** The stage that one would look at next: one that no pane shows. */
  nextStage() {
    const stages = this.model.report.stages.map((stage) => stage.name);
    const shown = this.panes.map((pane) => pane.stage);
    const wanted = ["llvm", "scheduled", "loops", ...stages].filter((stage) => stages.includes(stage));
    return wanted.find((stage) => !shown.includes(stage)) ?? stages[0];
  }

  add(stage) {
    const pane = new CodePane(this.model, this.selection, stage, (one) => this.remove(one));
    if (this.panes.length) {
      const bar = splitter(this.panes.at(-1).element, true);
      pane.bar = bar;
      this.code.append(bar);
    }
    this.panes.push(pane);
    this.code.append(pane.element);
    this.resize();
  }

  remove(pane) {
    if (this.panes.length === 1) return;
    const place = this.panes.indexOf(pane);
    (pane.bar ?? this.panes[1].bar).remove();
    if (!place) this.panes[1].bar = undefined;
    pane.element.remove();
    this.panes.splice(place, 1);
    this.resize();
  }

  /** Give all panes the same width. */
  resize() {
    this.more.disabled = this.panes.length === MOST_PANES;
    for (const { element } of this.panes) element.style.flex = "1 1 0";
  }

  /** The view is visible: show the graph as a whole at first, later what has been selected. */
  shown() {
    if (!this.wasShown) this.graph?.fit();
    else this.graph?.mark(null);
    for (const pane of this.panes) pane.changed(null);
    this.wasShown = true;
  }
}

/** What is known about what is selected: operators, kernels, times, and why. */
class Details {
  constructor(model, selection) {
    this.model = model;
    this.selection = selection;
    this.element = el("section", { class: "pane details", "aria-live": "polite", tabindex: "0",
      "aria-label": "what is selected" });
    selection.onchange(() => this.draw());
    this.draw();
  }

  draw() {
    const { selection, model } = this;
    const operators = [...new Set([...selection.nodes].flatMap((n) => model.operatorsOfNode[n]))];
    const parts = selection.isEmpty ? this.program()
      : [...this.ofKernels(operators), ...this.ofOperators(operators)];
    this.element.replaceChildren(...parts.filter(Boolean));
    this.element.scrollTop = 0;
  }

  /** The program as a whole, while nothing is selected. */
  program() {
    const { title, inputs, outputs, target, kernels, graph, version } = this.model.report;
    const operators = graph.operators.filter(({ nodes }) => nodes.length).length;
    return [
      el("h2", {}, title),
      facts([
        ["takes", inputs.join("\n")],
        ["gives", outputs.join("\n")],
        ["target", `${target.name} (${target.cpu}, ${target.vector_bits} bits)`],
        ["consists of", `${count(operators, "operator")}, ${count(kernels.length, "kernel")}`],
        ["compiled by", `stepwell ${version}`],
      ]),
      el("p", { class: "muted" },
        "Select an operator, a kernel, or a line of code: what it became is marked in all views."),
    ];
  }

  ofKernels(operators) {
    const { kernel, nodes } = this.selection;
    const found = kernel >= 0 ? [kernel] : this.model.kernelsOf(nodes).slice(0, 1);
    return found.flatMap((number) => {
      const { name, schedule, nodes } = this.model.report.kernels[number];
      const row = this.model.timeOfKernel.get(name);
      return [
        el("h2", {}, el("span", { class: "dot", style: `background:${colour(number)}` }), breakable(name)),
        facts([
          ["nodes", this.model.names(nodes).join(", ")],
          ["time", row ? timeOf(row) : ""],
          ["schedule", schedule.split("; ").join("\n")],
        ]),
        decisions("Why this kernel", this.model.decisionsOfKernel(number)),
      ];
    });
  }

  /** The constants that an operator reads, by the name of its operand. */
  weights(number) {
    const { operators, weights } = this.model.report.graph;
    return facts(operators[number].weights.map(([operand, place]) =>
      [operand, statistics(weights[place])]));
  }

  ofOperators(operators) {
    return operators.slice(0, 12).flatMap((number) => {
      const { name, kind, text, types, kernels, attributes } = this.model.report.graph.operators[number];
      const row = this.model.timeOfNode.get(name);
      const names = kernels.map((kernel) => this.model.report.kernels[kernel].name);
      return [
        el("h3", {}, breakable(name)),
        facts([
          ["operator", kind.replace(/^graph\./, "")],
          ...attributes,
          ["result", types.join("\n")],
          ["text", text],
          ["kernel", names.join(", ") || "none: it was folded, or is a view"],
          ["time", row ? timeOf(row) : ""],
        ]),
        this.weights(number),
        decisions("What was decided about it", this.model.decisionsOfNode.get(name) ?? []),
      ];
    });
  }
}

/** A weight in one line: its type, its range, its mean and deviation, how many elements are 0. */
function statistics({ name, type, least, most, mean, deviation, zeros, not_finite }) {
  const parts = [
    `${name}: ${type}`,
    least === null ? null : `${digits(least)} to ${digits(most)}`,
    mean === null ? null : `mean ${digits(mean)} ± ${digits(deviation)}`,
    zeros ? `${percent(zeros)} zeros` : null,
    not_finite ? `${not_finite} not finite` : null,
  ];
  return parts.filter(Boolean).join(", ");
}

const timeOf = (row) =>
  `${seconds(row.seconds)}, ${percent(row.part)} of a run` +
  (row.gflops ? `, ${digits(row.gflops)} GFLOP/s` : "") +
  (row.limit ? `, ${percent(row.limit)} of the limit by ${row.bound}` : "");

/** Pairs of a word and a text, without empty ones. */
function facts(pairs) {
  return el("dl", {}, pairs.filter(([, text]) => text).flatMap(([word, text]) =>
    [el("dt", {}, word), el("dd", {}, text)]));
}

function decisions(title, found) {
  if (!found.length) return null;
  return el("details", { open: found.length <= 6 },
    el("summary", {}, `${title} (${found.length})`),
    el("ul", { class: "why" }, found.map((one) => el("li", { class: one.kind },
      el("b", {}, one.what), `, because ${one.why}`,
      one.cost ? el("span", { class: "cost" }, ` · ${one.cost}`) : null,
      one.pass ? el("span", { class: "muted" }, ` · ${one.pass}`) : null))));
}
