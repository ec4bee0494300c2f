// The graph of the model: laid out by dagre, zoomed by d3, grouped by module or by kernel.

const NODE_HEIGHT = 46;
const LETTERS = 34;
const MANY = 250;
/** The least scale at which names are easy to read: a larger graph begins at its first row instead. */
const READABLE = 0.8;

/** The groups that operators are in, outermost first, for each way to group them. */
const GROUPINGS = {
  none: { label: "operators", groups: () => [] },
  kernel: {
    label: "kernels",
    groups: (operator, model) =>
      operator.kernels.slice(0, operator.call < 0 ? 0 : 1).map((kernel) => ({
        key: `kernel ${operator.call}`,
        label: model.report.kernels[kernel].name,
        kernel,
      })),
  },
  module: {
    label: "modules",
    groups: (operator) =>
      operator.path.map((name, depth) => ({
        key: operator.path.slice(0, depth + 1).join("\u0000"),
        label: name,
        kernel: -1,
      })),
  },
};

class GraphView {
  constructor(model, selection) {
    this.model = model;
    this.selection = selection;
    this.operators = model.report.graph.operators;
    this.collapsed = new Set();
    this.hasModules = this.operators.some((operator) => operator.path.length);
    this.colours = "kernel";
    this.canvas = svg("svg", { class: "graph", role: "group", "aria-label": "graph of the model" });
    this.layer = svg("g");
    this.canvas.append(
      svg("defs", {}, svg("marker",
        { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" },
        svg("path", { d: "M0 0 L8 4 L0 8 z", class: "arrow" }))),
      this.layer,
    );
    const extent = () => [[0, 0], [this.canvas.clientWidth, this.canvas.clientHeight]];
    this.zoom = d3.zoom().scaleExtent([0.02, 4]).extent(extent).on("zoom", (event) => {
      this.layer.setAttribute("transform", event.transform);
      this.canvas.classList.toggle("far", event.transform.k < 0.45);
    });
    d3.select(this.canvas).call(this.zoom).on("dblclick.zoom", null);
    this.canvas.addEventListener("click", (event) => {
      if (event.target === this.canvas) selection.clear(this);
    });
    this.element = el("section", { class: "pane graph-pane" }, this.tools(),
      el("div", { class: "body" }, this.canvas));
    this.group(this.firstGrouping());
    selection.onchange((source) => this.mark(source));
  }

  firstGrouping() {
    if (this.operators.length > MANY && this.hasModules) return "module";
    return this.model.report.kernels.length ? "kernel" : "none";
  }

  tools() {
    const ways = Object.entries(GROUPINGS).filter(([key]) => key !== "module" || this.hasModules);
    const button = (text, label, onclick) =>
      el("button", { type: "button", class: "plain", "aria-label": label, title: label, onclick }, text);
    this.grouping = dropdown("group by", ways.map(([key, way]) => [key, way.label]),
      this.firstGrouping(), (key) => this.group(key));
    const colours = [["kernel", "by kernel"]];
    if (this.model.report.profile) colours.push(["time", "by time"]);
    return el("div", { class: "tools" },
      this.grouping,
      colours.length > 1 ? dropdown("colours", colours, "kernel", (value) => {
        this.colours = value;
        this.draw();
      }) : null,
      button("▸ all", "collapse all groups", () => this.collapseAll(true)),
      button("▾ all", "expand all groups", () => this.collapseAll(false)),
      el("span", { class: "spring" }),
      button("−", "zoom out", () => this.zoomBy(1 / 1.4)),
      button("+", "zoom in", () => this.zoomBy(1.4)),
      button("⤢", "show the whole graph", () => this.fit(0)));
  }

  zoomBy(factor) {
    d3.select(this.canvas).transition().duration(120).call(this.zoom.scaleBy, factor);
  }

  /** Group the operators another way; many groups begin collapsed. */
  group(key) {
    const way = GROUPINGS[key];
    this.groups = this.operators.map((operator) => way.groups(operator, this.model));
    const sizes = new Map();
    for (const groups of this.groups) {
      for (const { key } of groups) sizes.set(key, (sizes.get(key) ?? 0) + 1);
    }
    this.groups = this.groups.map((groups) => groups.filter(({ key }) => sizes.get(key) > 1));
    this.sizes = sizes;
    this.collapseAll(this.operators.length > MANY);
  }

  collapseAll(collapsed) {
    const keys = collapsed ? this.groups.flat().map(({ key }) => key) : [];
    this.collapsed = new Set(keys);
    this.draw();
    this.fit();
  }

  toggle(key) {
    if (!this.collapsed.delete(key)) this.collapsed.add(key);
    this.draw();
    this.mark(null);
  }

  /** The boxes and groups that are shown, with places, and the edges between them. */
  layout() {
    const root = new Group({}, null);
    const groups = new Map();
    this.boxes = new Map();
    this.operators.forEach((operator, number) => {
      const around = this.groups[number];
      const place = around.findIndex(({ key }) => this.collapsed.has(key));
      const id = place < 0 ? String(number) : around[place].key;
      if (!this.boxes.has(id)) {
        const inside = (place < 0 ? around : around.slice(0, place)).reduce((parent, group) => {
          if (!groups.has(group.key)) groups.set(group.key, parent.add(new Group(group, parent)));
          return groups.get(group.key);
        }, root);
        const box = place < 0 ? this.box(operator, number) : this.groupBox(around[place]);
        this.boxes.set(id, inside.add({ ...box, id, before: new Set(), after: new Set() }));
      }
      this.boxes.get(id).members.push(number);
    });
    this.owner = new Map([...this.boxes.values()].flatMap((box) =>
      box.members.map((number) => [number, box])));
    this.edges = this.connections();
    layOut(root, this.edges);
    return { root, groups: [...groups.values()] };
  }

  /** The edges between boxes, each once. */
  connections() {
    const found = new Map();
    for (const { source, target, type } of this.model.report.graph.edges) {
      const [from, to] = [this.owner.get(source), this.owner.get(target)];
      if (from === to) continue;
      const id = `${from.id} ${to.id}`;
      if (!found.has(id)) found.set(id, { from, to, types: [] });
      found.get(id).types.push(type);
      from.after.add(to);
      to.before.add(from);
    }
    return [...found.values()];
  }

  box(operator, number) {
    const title = operator.kind.replace(/^graph\./, "");
    const end = operator.kind === "input" || operator.kind === "output";
    const lines = end ? [operator.name, operator.text.replace(/^[^:]*: /, "")]
      : [title, operator.name === operator.kind ? operator.types[0] ?? "" : operator.name];
    const texts = lines.map((line) => (line.length > LETTERS ? `…${line.slice(1 - LETTERS)}` : line));
    const width = Math.max(80, ...texts.map((line, n) => line.length * (n ? 7.4 : 9) + 32));
    return { width, height: NODE_HEIGHT, texts, end, number, members: [],
      kernel: operator.kernels[0] ?? -1, label: `${title} ${operator.name}` };
  }

  groupBox({ key, label, kernel }) {
    const text = `▸ ${shortened(label, LETTERS)}`;
    const texts = [text, `${this.sizes.get(key)} operators`];
    return { width: Math.max(112, text.length * 8.8 + 32), height: NODE_HEIGHT, texts, key, kernel,
      members: [], label: `group ${label}` };
  }

  /** Lay out and draw everything. */
  draw() {
    const { root, groups } = this.layout();
    this.size = root;
    this.layer.replaceChildren(
      ...groups.map((group) => this.cluster(group)),
      ...this.edges.map((edge) => this.edge(edge)),
      ...groups.map((group) => this.title(group)),
      ...[...this.boxes.values()].map((box, number) => this.node(box, number)),
    );
    this.mark(this);
  }

  cluster({ x, y, width, height, kernel }) {
    return svg("g", { class: "cluster", transform: `translate(${x - width / 2},${y - height / 2})` },
      svg("rect", { width, height, rx: 8, style: `--own:${colour(kernel)}` }));
  }

  /** The title of a group, which edges into the group do not cross out. */
  title({ x, y, width, height, label, key }) {
    return svg("g", { class: "cluster", transform: `translate(${x - width / 2},${y - height / 2})` },
      svg("text", {
        x: 9, y: 16, tabindex: "0", role: "button", "aria-label": `collapse ${label}`,
        onclick: () => this.toggle(key),
        onkeydown: (event) => event.key === "Enter" && this.toggle(key),
      }, `▾ ${shortened(label, Math.floor((width - TITLE_MARGIN) / TITLE_LETTER))}`,
      svg("title", {}, label)));
  }

  edge(edge) {
    const line = d3.line((point) => point.x, (point) => point.y).curve(d3.curveMonotoneY);
    return (edge.element = svg("path", { class: "edge", d: line(edge.points), "marker-end": "url(#arrow)" },
      svg("title", {}, edge.types.join("\n"))));
  }

  node(box, number) {
    const { x, y, width, height, texts } = box;
    return (box.element = svg("g", {
      class: `node${box.end ? " end" : ""}${box.key ? " group" : ""}`,
      transform: `translate(${x - width / 2},${y - height / 2})`,
      style: `--own:${this.paint(box)}`,
      tabindex: number ? "-1" : "0", role: "button", "aria-label": box.label,
      onclick: () => this.choose(box),
      ondblclick: () => box.key && this.toggle(box.key),
      onkeydown: (event) => this.pressed(event, box),
    },
    svg("title", {}, box.key ? box.label : this.operators[box.number].text),
    svg("rect", { width, height, rx: 7 }),
    svg("rect", { class: "stripe", width: 5, height: height - 12, x: 6, y: 6, rx: 2.5 }),
    svg("text", { x: 18, y: 20, class: "kind" }, texts[0]),
    svg("text", { x: 18, y: 36, class: "name" }, texts[1])));
  }

  /** The colour of a box: that of its kernel, or more red the longer it takes. */
  paint(box) {
    if (this.colours !== "time") return colour(box.kernel);
    const rows = this.model.timeOfNode;
    const names = this.model.names(box.members.flatMap((n) => this.operators[n].nodes));
    const part = names.reduce((sum, name) => sum + (rows.get(name)?.part ?? 0), 0);
    const heat = Math.round(100 * Math.sqrt(Math.min(1, part)));
    return `color-mix(in oklab, var(--hot) ${heat}%, var(--cold))`;
  }

  choose(box) {
    const nodes = [...new Set(box.members.flatMap((number) => this.operators[number].nodes))];
    if (box.key?.startsWith("kernel ")) this.selection.selectKernel(box.kernel, this);
    else this.selection.selectNodes(nodes, this);
  }

  /** Enter selects, arrows go along edges, and to the sides. */
  pressed(event, box) {
    if (event.key === "Enter" || event.key === " ") this.choose(box);
    else if (event.key === "ArrowDown") this.focus([...box.after][0]);
    else if (event.key === "ArrowUp") this.focus([...box.before][0]);
    else if (event.key === "ArrowRight") this.focus(this.beside(box, 1));
    else if (event.key === "ArrowLeft") this.focus(this.beside(box, -1));
    else return;
    event.preventDefault();
  }

  beside(box, side) {
    const row = [...this.boxes.values()].filter((other) =>
      Math.abs(other.y - box.y) < NODE_HEIGHT && (other.x - box.x) * side > 0);
    return row.sort((a, b) => (a.x - b.x) * side)[0];
  }

  focus(box) {
    if (!box) return;
    for (const other of this.boxes.values()) other.element.setAttribute("tabindex", "-1");
    box.element.setAttribute("tabindex", "0");
    box.element.focus({ preventScroll: true });
    this.reveal(box);
  }

  /** Mark the selected nodes, and show the first of them. */
  mark(source) {
    const { nodes } = this.selection;
    let first = null;
    for (const box of this.boxes.values()) {
      box.chosen = box.members.some((n) => this.operators[n].nodes.some((node) => nodes.has(node)));
      box.element.classList.toggle("marked", box.chosen);
      box.element.setAttribute("aria-pressed", String(box.chosen));
      if (box.chosen) first ??= box;
    }
    for (const { from, to, element } of this.edges) {
      element.classList.toggle("marked", from.chosen || to.chosen);
    }
    if (first && source !== this) this.reveal(first);
  }

  /** Move a box into view, if it is not. */
  reveal({ x, y }) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width) return;
    const at = d3.zoomTransform(this.canvas);
    const [left, top] = at.apply([x, y]);
    if (left > 40 && top > 30 && left < width - 40 && top < height - 30) return;
    d3.select(this.canvas).transition().duration(200).call(this.zoom.translateTo, x, y);
  }

  /** Show the whole graph, or its beginning where the scale of the whole would be less than the least. */
  fit(least = READABLE) {
    const { width, height } = this.size;
    const { clientWidth, clientHeight } = this.canvas;
    if (!clientWidth || !width) return;
    const whole = Math.min(clientWidth / (width + 24), clientHeight / (height + 24), 1);
    const scale = Math.max(whole, least);
    const wide = scale > whole && (width + 24) * scale > clientWidth;
    const begin = this.boxes.values().next().value;
    const left = wide ? clientWidth / 2 - begin.x * scale : (clientWidth - width * scale) / 2;
    // A wide graph may begin further down than its first row.
    const top = scale > whole ? Math.min(8, 48 - begin.y * scale) : (clientHeight - height * scale) / 2;
    d3.select(this.canvas).call(this.zoom.transform, d3.zoomIdentity.translate(left, top).scale(scale));
  }
}
