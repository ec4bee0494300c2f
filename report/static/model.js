// The document of the report, and what is looked up in it.

/** The document, from gzip in base64. */
async function readDocument() {
  const packed = atob(document.getElementById("document").textContent.trim());
  const data = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
  const stream = new Blob([data]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

class Model {
  constructor(report) {
    this.report = report;
    this.marks = report.marks;
    this.operatorsOfNode = report.nodes.map(() => []);
    const found = report.nodes.map(() => new Set());
    report.graph.operators.forEach((operator, number) => {
      for (const node of operator.nodes) {
        this.operatorsOfNode[node].push(number);
        for (const kernel of operator.kernels) found[node].add(kernel);
      }
    });
    report.kernels.forEach((kernel, number) => {
      for (const node of kernel.nodes) found[node].add(number);
    });
    // The kernel that computes most of a node comes first.
    this.kernelsOfNode = found.map((kernels) => [...kernels]);
    for (const stage of report.stages) {
      for (const part of stage.functions) part.lines = part.text.replace(/\n$/, "").split("\n");
    }
    this.decisionsOfNode = new Map();
    for (const decision of report.decisions) {
      for (const name of decision.nodes) {
        if (!this.decisionsOfNode.has(name)) this.decisionsOfNode.set(name, []);
        this.decisionsOfNode.get(name).push(decision);
      }
    }
    const times = report.profile;
    this.timeOfKernel = new Map((times?.kernels ?? []).map((row) => [row.name, row]));
    this.timeOfNode = new Map((times?.nodes ?? []).map((row) => [row.name, row]));
  }

  /** The functions of a stage that show a kernel; without any, the program itself. */
  functions(stageName, kernel) {
    const stage = this.report.stages.find((one) => one.name === stageName);
    const own = kernel < 0 ? [] : stage.functions.filter((one) => one.kernels.includes(kernel));
    if (own.length) return own;
    const program = stage.functions.filter((one) => one.name === this.report.title);
    return program.length ? program : stage.functions;
  }

  /** The kernels of nodes, those of the first one first. */
  kernelsOf(nodes) {
    return [...new Set([...nodes].flatMap((node) => this.kernelsOfNode[node]))];
  }

  /** The operators of the nodes with these names. */
  nodesNamed(names) {
    const wanted = new Set(names);
    return this.report.nodes.flatMap((name, node) => (wanted.has(name) ? [node] : []));
  }

  /** The names of nodes, each once. */
  names(nodes) {
    return [...new Set([...nodes].map((node) => this.report.nodes[node]))];
  }

  /** The decisions about a kernel itself. */
  decisionsOfKernel(kernel) {
    const name = `@${this.report.kernels[kernel].name}`;
    return this.report.decisions.filter((one) => one.subject.split(/[\s,]+/).includes(name));
  }
}

/**
 * What is selected: nodes of the model, and operations of stage `scheduled`. Views subscribe, and
 * are told of each change with the view that it comes from.
 */
class Selection {
  constructor(model) {
    this.model = model;
    this.listeners = [];
    this.levels = new Uint8Array(model.marks.length);
    this.clear(null);
  }

  onchange(listener) {
    this.listeners.push(listener);
  }

  clear(source) {
    this.set({ nodes: [], origins: [], kernel: this.kernel ?? -1 }, source);
  }

  /** Select nodes, as one does in the graph. */
  selectNodes(nodes, source, kernel) {
    const shown = this.kernel;
    const kernels = this.model.kernelsOf(nodes);
    const found = kernels.includes(shown) ? shown : (kernels[0] ?? -1);
    this.set({ nodes, origins: [], kernel: kernel ?? found }, source);
  }

  selectKernel(kernel, source) {
    const nodes = kernel < 0 ? [] : this.model.report.kernels[kernel].nodes;
    this.set({ nodes, origins: [], kernel }, source);
  }

  /** Select what a line stands for. */
  selectMark(mark, kernel, source) {
    const { nodes, origins } = this.model.marks[mark];
    if (kernel < 0) this.selectNodes(nodes, source);
    else this.set({ nodes, origins: origins.filter((origin) => origin), kernel }, source);
  }

  set({ nodes, origins, kernel }, source) {
    this.nodes = new Set(nodes);
    this.origins = new Set(origins);
    this.kernel = kernel;
    this.model.marks.forEach((mark, number) => (this.levels[number] = this.level(mark)));
    for (const listener of this.listeners) listener(source);
  }

  get isEmpty() {
    return !this.nodes.size && !this.origins.size;
  }

  /** 2 where a line is what is selected, 1 where it is of the same node, else 0. */
  level(mark) {
    if (this.origins.size && mark.origins.length) {
      if (mark.origins.some((origin) => this.origins.has(origin))) return 2;
      return mark.nodes.some((node) => this.nodes.has(node)) ? 1 : 0;
    }
    return mark.nodes.some((node) => this.nodes.has(node)) ? 2 : 0;
  }
}
