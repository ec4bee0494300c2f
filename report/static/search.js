// Search for operators, kernels and decisions; what is chosen is selected.

const MOST_FOUND = 40;

class Search {
  constructor(model, selection, onchoose) {
    this.selection = selection;
    this.onchoose = onchoose;
    this.entries = this.collect(model);
    this.found = [];
    this.active = 0;
    this.results = el("ul", { class: "results", role: "listbox", id: "results", hidden: true,
      "aria-label": "results" });
    this.input = el("input", {
      type: "search", placeholder: "Search nodes, kernels, operators  ( / )", "aria-label": "search",
      role: "combobox", "aria-expanded": "false", "aria-controls": "results", autocomplete: "off",
      spellcheck: "false",
      oninput: () => this.search(),
      onfocus: () => this.search(),
      onblur: () => setTimeout(() => this.close(), 150),
      onkeydown: (event) => this.pressed(event),
    });
    this.element = el("div", { class: "search" }, this.input, this.results);
  }

  collect(model) {
    const { kernels, graph, nodes } = model.report;
    const shown = new Set(graph.operators.flatMap((operator) => operator.nodes));
    return [
      ...kernels.map(({ name }, number) => ({ name, kind: "kernel",
        choose: () => this.selection.selectKernel(number, this) })),
      ...graph.operators.map(({ name, kind, nodes: own }) => ({ name, kind: kind.replace(/^graph\./, ""),
        choose: () => this.selection.selectNodes(own, this) })),
      ...nodes.map((name, node) => ({ name, node, kind: "node",
        choose: () => this.selection.selectNodes([node], this) })).filter(({ node }) => !shown.has(node)),
    ];
  }

  search() {
    const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = ({ name, kind }) => words.every((word) => `${kind} ${name}`.toLowerCase().includes(word));
    this.found = words.length ? this.entries.filter(matches).slice(0, MOST_FOUND) : [];
    this.active = 0;
    this.draw();
  }

  draw() {
    this.results.hidden = !this.found.length;
    this.input.setAttribute("aria-expanded", String(!this.results.hidden));
    this.results.replaceChildren(...this.found.map((entry, number) => el("li", {
      role: "option", id: `result-${number}`, "aria-selected": String(number === this.active),
      onpointerdown: () => this.choose(number),
    }, el("span", { class: "grow" }, breakable(entry.name)), el("span", { class: "muted" }, entry.kind))));
    if (this.found.length) this.input.setAttribute("aria-activedescendant", `result-${this.active}`);
    this.results.children[this.active]?.scrollIntoView({ block: "nearest" });
  }

  pressed(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps && this.found.length) {
      this.active = (this.active + steps[event.key] + this.found.length) % this.found.length;
      this.draw();
    } else if (event.key === "Enter") this.choose(this.active);
    else if (event.key === "Escape") {
      this.input.value = "";
      this.close();
      this.input.blur();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  choose(number) {
    if (!this.found[number]) return;
    this.found[number].choose();
    this.onchoose();
    this.close();
  }

  close() {
    this.found = [];
    this.draw();
  }
}
