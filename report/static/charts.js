// Charts: times, the roofline, the arena, sparse patterns, schedules.

const MARGIN = { left: 56, right: 16, top: 14, bottom: 40 };

/** A chart that is drawn again when its size changes. */
function chart(label, draw) {
  const canvas = svg("svg", { class: "chart", role: "img", "aria-label": label });
  const redraw = () => {
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!width || !height) return;
    const parts = () => [...canvas.querySelectorAll("[tabindex]")];
    const focused = parts().indexOf(document.activeElement);
    canvas.replaceChildren(...draw(width, height).filter(Boolean));
    parts()[focused]?.focus();
  };
  new ResizeObserver(redraw).observe(canvas);
  return canvas;
}

/** The axes of a chart, with their labels. */
function axes(width, height, x, y, labels, formats) {
  const bottom = svg("g", { class: "axis", transform: `translate(0,${height - MARGIN.bottom})` });
  const left = svg("g", { class: "axis", transform: `translate(${MARGIN.left},0)` });
  d3.select(bottom).call(d3.axisBottom(x).ticks(6).tickSizeOuter(0).tickFormat(formats.x));
  d3.select(left).call(
    d3.axisLeft(y).ticks(5).tickValues(formats.ticks ?? null).tickSizeOuter(0).tickFormat(formats.y));
  return [bottom, left,
    svg("text", { class: "label", x: width - MARGIN.right, y: height - 6, "text-anchor": "end" }, labels[0]),
    svg("text", { class: "label", transform: `translate(12,${MARGIN.top}) rotate(-90)`, "text-anchor": "end" },
      labels[1])];
}

/** The labels of a logarithmic axis: 1, 2 and 5 of each power of ten. */
function logarithmic(value) {
  const first = Math.round(value / 10 ** Math.floor(Math.log10(value) + 1e-9));
  return [1, 2, 5].includes(first) ? digits(value) : "";
}

/** The time of a run: by kernel, by node, and beside what the machine can do. */
class ProfileView {
  constructor(model, selection) {
    this.model = model;
    this.selection = selection;
    this.profile = model.report.profile;
    this.rows = "kernels";
    const threads = count(this.profile.threads, "thread");
    const heads = ["", "time", "", "", "calls", "GFLOP/s", "GB/s", "of the limit"];
    this.body = el("tbody");
    const table = el("table", { class: "times" },
      el("thead", {}, el("tr", {}, heads.map((head) => el("th", {}, head)))), this.body);
    const left = el("section", { class: "pane half" },
      el("div", { class: "tools" },
        choice("rows", [["kernels", "kernels"], ["nodes", "nodes"]], "kernels", (value) => {
          this.rows = value;
          this.draw();
        }),
        el("span", { class: "muted" },
          `${seconds(this.profile.seconds)} per run, over ${count(this.profile.runs, "run")} on ${threads}; `
          + `${percent(this.profile.attributed)} of it attributed to nodes`)),
      el("div", { class: "scroll", tabindex: "0", "aria-label": "times" }, table));
    const right = el("section", { class: "pane grow" },
      el("div", { class: "tools" }, el("b", {}, "roofline"),
        el("span", { class: "muted" }, "each kernel beside the limits of this machine")),
      el("div", { class: "body" },
        chart("roofline of all kernels", (width, height) => this.roofline(width, height))),
      this.profile.refused ? el("p", { class: "note refused" }, this.profile.refused) : null);
    this.element = el("div", { class: "row" }, left, splitter(left, true), right);
    this.draw();
    selection.onchange(() => this.mark());
  }

  kernel(row) {
    return this.model.report.kernels.findIndex(({ name }) => name === row.name);
  }

  draw() {
    const rows = this.profile[this.rows];
    const most = Math.max(...rows.map((row) => row.seconds), 1e-12);
    this.body.replaceChildren(...rows.map((row) => el("tr", { "data-name": row.name },
      el("td", {}, el("button", { type: "button", class: "link", onclick: () => this.select(row) },
        breakable(row.name))),
      el("td", { class: "right" }, seconds(row.seconds)),
      el("td", { class: "bar-cell" }, el("div", {
        class: "bar", style: `width:${(100 * row.seconds) / most}%;background:${this.paint(row)}` })),
      el("td", { class: "right muted" }, percent(row.part)),
      el("td", { class: "right" }, String(row.calls)),
      el("td", { class: "right" }, digits(row.gflops)),
      el("td", { class: "right" }, digits(row.gbytes)),
      el("td", { class: "right" }, row.limit ? `${percent(row.limit)} of ${row.bound}` : ""))));
    this.mark();
  }

  paint(row) {
    if (this.rows === "kernels") return colour(this.kernel(row));
    return colour(this.model.kernelsOf(this.model.nodesNamed([row.name]))[0] ?? -1);
  }

  select(row) {
    if (this.rows === "kernels" && this.kernel(row) >= 0) {
      this.selection.selectKernel(this.kernel(row), this);
    } else {
      this.selection.selectNodes(this.model.nodesNamed([row.name]), this);
    }
  }

  mark() {
    const { kernels } = this.model.report;
    const names = this.rows === "nodes" ? this.model.names(this.selection.nodes)
      : this.selection.isEmpty ? [] : [kernels[this.selection.kernel]?.name];
    for (const row of this.body.children) {
      row.classList.toggle("marked", names.includes(row.dataset.name));
    }
    for (const dot of this.element.querySelectorAll(".kernel-dot")) {
      const chosen = !this.selection.isEmpty && Number(dot.dataset.kernel) === this.selection.kernel;
      dot.classList.toggle("marked", chosen);
    }
  }

  /** Operations per second over operations per byte, both logarithmic (Williams et al., 2009). */
  roofline(width, height) {
    const rows = this.profile.kernels.filter((row) => row.flops && row.bytes && row.gflops);
    // Limits that no row is compared with are not drawn: they were measured on a busy machine.
    const believed = !this.profile.refused || this.profile.kernels.some((row) => row.limit);
    const peak = this.profile.limits.gflops;
    const speeds = Object.entries(this.profile.limits.gbytes).sort(([a], [b]) => a - b);
    const work = rows.map((row) => row.flops / row.bytes);
    const slowest = Math.min(...speeds.map(([, speed]) => speed), 10);
    const least = Math.min(0.25, ...work) / 2;
    const most = Math.max(peak / slowest, ...work) * 4;
    const x = d3.scaleLog([least, most], [MARGIN.left, width - MARGIN.right]);
    const rates = rows.map((row) => row.gflops);
    const low = Math.min(...rates, peak / 100);
    // The limit was measured as well: a kernel may exceed it by chance.
    const y = d3.scaleLog([low / 2, 2 * Math.max(...rates, peak)], [height - MARGIN.bottom, MARGIN.top]);
    const labelled = d3.extent(speeds, ([, speed]) => speed);
    const roofs = speeds.map(([size, speed]) => {
      const knee = peak / speed;
      const at = (place) => `${x(place)} ${y(Math.min(peak, place * speed))}`;
      const start = Math.max(least, low / 2 / speed);
      const line = svg("path", { class: "roof", d: `M${at(start)} L${at(Math.min(knee, most))}` },
        svg("title", {}, `${digits(speed)} GB/s from ${bytes(Number(size))}`));
      if (!labelled.includes(speed)) return [line, null];
      // Along the line: that of the fastest memory above it, that of the slowest below it.
      const [left, top] = [x(start), y(start * speed)];
      const turn = (180 / Math.PI) * Math.atan2(y(2 * start * speed) - top, x(2 * start) - left);
      return [line, svg("text", { class: "label", transform: `translate(${left},${top}) rotate(${turn})`,
        x: 24, y: speed === labelled[1] ? -6 : 14 }, `${digits(speed)} GB/s (${bytes(Number(size))})`)];
    });
    const best = Math.min(...speeds.map(([, speed]) => peak / speed), most);
    return [
      ...axes(width, height, x, y, ["FLOP per byte", "GFLOP/s"], { x: logarithmic, y: logarithmic }),
      ...(believed ? [
        svg("path", { class: "roof", d: `M${x(best)} ${y(peak)} L${x(most)} ${y(peak)}` }),
        svg("text", { class: "label", x: x(most), y: y(peak) - 6, "text-anchor": "end" },
          `${digits(peak)} GFLOP/s`),
        ...roofs.map(([line]) => line), ...roofs.map(([, label]) => label),
      ] : []),
      ...rows.map((row, number) => this.dot(row, x(work[number]), y(row.gflops))),
    ];
  }

  dot(row, x, y) {
    const kernel = this.kernel(row);
    const chosen = !this.selection.isEmpty && kernel === this.selection.kernel;
    return svg("circle", {
      class: `kernel-dot${chosen ? " marked" : ""}`, "data-kernel": kernel, tabindex: "0", role: "button",
      "aria-label": row.name, cx: x, cy: y, r: 4 + 14 * Math.sqrt(row.part), style: `--own:${colour(kernel)}`,
      onclick: () => this.selection.selectKernel(kernel, this),
      onkeydown: (event) => event.key === "Enter" && this.selection.selectKernel(kernel, this),
    }, svg("title", {}, `${row.name}: ${seconds(row.seconds)}, ${digits(row.gflops)} GFLOP/s`));
  }
}

/** The arena over time: buffers as boxes from their first to their last use. */
class MemoryView {
  constructor(model, selection) {
    this.model = model;
    this.selection = selection;
    this.memory = model.report.memory;
    const { size, slots } = this.memory;
    const sum = slots.reduce((total, slot) => total + slot.size, 0);
    this.element = el("section", { class: "pane" },
      el("div", { class: "tools" }, el("b", {}, "arena"), el("span", { class: "muted" },
        `${bytes(size)} for ${count(slots.length, "buffer")} of ${bytes(sum)} altogether`)),
      el("div", { class: "body" }, chart("arena over time", (width, height) => this.draw(width, height))));
    selection.onchange(() => this.mark());
  }

  draw(width, height) {
    const { size, slots, steps } = this.memory;
    const x = d3.scaleLinear([0, steps.length], [MARGIN.left, width - MARGIN.right]);
    const unit = 1024 ** Math.floor(Math.log(Math.max(1, size)) / Math.log(1024));
    const ticks = d3.ticks(0, size / unit, 6).map((number) => number * unit);
    const y = d3.scaleLinear([0, size], [height - MARGIN.bottom, MARGIN.top]);
    const boxes = slots.map((slot, number) => {
      const chosen = slot.nodes.some((node) => this.selection.nodes.has(node));
      // The first call that uses a buffer writes it.
      const writer = this.model.report.kernels.findIndex(({ name }) => name === steps[slot.first]);
      const kernel = writer >= 0 ? writer : (this.model.kernelsOf(slot.nodes)[0] ?? -1);
      const box = {
        x: x(slot.first), y: y(slot.offset + slot.size),
        width: Math.max(2, x(slot.last + 1) - x(slot.first) - 1),
        height: Math.max(1, y(slot.offset) - y(slot.offset + slot.size) - 0.5),
      };
      const name = this.model.names(slot.nodes).join(", ") || slot.name;
      const letters = Math.floor((box.width - 8) / 6.6);
      const text = letters >= Math.min(name.length, 12) && box.height > 16
        ? svg("text", { x: box.x + 5, y: box.y + 13 }, shortened(name, letters)) : null;
      return svg("g", { class: `slot${chosen ? " marked" : ""}`, "data-slot": number, tabindex: "0", role: "button",
        "aria-label": `${name}, ${bytes(slot.size)}`, style: `--own:${colour(kernel)}`,
        onclick: () => this.selection.selectNodes(slot.nodes, this),
        onkeydown: (event) => event.key === "Enter" && this.selection.selectNodes(slot.nodes, this),
      },
      svg("title", {}, `${name}: ${bytes(slot.size)} at ${bytes(slot.offset)}, `
        + `from ${steps[slot.first]} to ${steps[slot.last]}`),
      svg("rect", { ...box, rx: 3 }), text);
    });
    const formats = { x: (step) => (Number.isInteger(step) ? String(step) : ""), y: bytes, ticks };
    return [...axes(width, height, x, y, ["calls, in order", "bytes"], formats), ...boxes];
  }

  mark() {
    for (const element of this.element.querySelectorAll(".slot")) {
      const { nodes } = this.memory.slots[Number(element.dataset.slot)];
      element.classList.toggle("marked", nodes.some((node) => this.selection.nodes.has(node)));
    }
  }
}

/** Sparse matrices: where entries are, and how long rows are. */
class SparsityView {
  constructor(model) {
    this.element = el("section", { class: "pane" }, el("div", { class: "scroll cards", tabindex: "0",
      "aria-label": "sparse matrices" }, model.report.patterns.map((pattern) => this.card(pattern))));
  }

  card(pattern) {
    const [rows, columns] = pattern.shape;
    const full = rows * columns ? pattern.entries / (rows * columns) : 0;
    return el("article", { class: "card" },
      el("h3", {}, pattern.name),
      el("p", { class: "muted" },
        `${rows} × ${columns}, ${count(pattern.entries, "entry").replace("entrys", "entries")} `
        + `(${digits(100 * full)} %), at most ${pattern.longest} in a row`),
      this.spy(pattern),
      chart(`lengths of the rows of ${pattern.name}`, (width, height) =>
        this.histogram(pattern, width, height)));
  }

  spy({ cells, columns, name }) {
    const rows = cells.length / columns;
    const scale = Math.max(1, Math.floor(288 / Math.max(columns, rows)));
    const canvas = el("canvas", { class: "spy", role: "img", "aria-label": `entries of ${name}`,
      width: columns * scale, height: rows * scale });
    const paint = canvas.getContext("2d");
    const most = Math.log1p(cells.reduce((a, b) => Math.max(a, b), 1));
    paint.fillStyle = "#4c78d8";
    cells.forEach((entries, place) => {
      if (!entries) return;
      paint.globalAlpha = 0.25 + (0.75 * Math.log1p(entries)) / most;
      paint.fillRect((place % columns) * scale, Math.floor(place / columns) * scale, scale, scale);
    });
    return canvas;
  }

  histogram({ lengths }, width, height) {
    const names = lengths.map(([least]) => String(least));
    const x = d3.scaleBand(names, [MARGIN.left, width - MARGIN.right]).padding(0.15);
    const most = Math.max(1, ...lengths.map(([, rows]) => rows));
    const y = d3.scaleLinear([0, most], [height - MARGIN.bottom, MARGIN.top]);
    const every = Math.ceil(names.length / 12);
    const bottom = svg("g", { class: "axis", transform: `translate(0,${height - MARGIN.bottom})` });
    d3.select(bottom).call(d3.axisBottom(x).tickValues(names.filter((_, n) => n % every === 0)).tickSizeOuter(0));
    const left = svg("g", { class: "axis", transform: `translate(${MARGIN.left},0)` });
    d3.select(left).call(d3.axisLeft(y).ticks(4, "~s").tickSizeOuter(0));
    return [bottom, left,
      svg("text", { class: "label", x: width - MARGIN.right, y: height - 6, "text-anchor": "end" }, "entries in a row"),
      svg("text", { class: "label", transform: `translate(12,${MARGIN.top}) rotate(-90)`, "text-anchor": "end" }, "rows"),
      ...lengths.map(([least, rows]) => svg("rect", { class: "column", x: x(String(least)), y: y(rows),
        width: x.bandwidth(), height: y(0) - y(rows) }, svg("title", {}, `${count(rows, "row")} from ${least}`)))];
  }
}

/** Schedules that tuning measured: estimated against measured, relative to the default. */
class TuningView {
  constructor(model, selection) {
    this.model = model;
    this.selection = selection;
    const trials = (this.trials = model.report.trials);
    this.note = el("pre", { class: "note", "aria-live": "polite" }, "Select a schedule to read it.");
    this.element = el("section", { class: "pane" },
      el("div", { class: "tools" }, el("b", {}, "schedules"), el("span", { class: "muted" },
        `${trials.length} measured; ratios to the default, less is faster`)),
      el("div", { class: "body" }, chart("predicted against measured", (w, h) => this.draw(w, h))),
      this.note);
  }

  draw(width, height) {
    const values = this.trials.flatMap(({ predicted, measured }) => [predicted, measured]);
    const ends = [Math.min(1, ...values) / 1.15, Math.max(1, ...values) * 1.15];
    const x = d3.scaleLog(ends, [MARGIN.left, width - MARGIN.right]);
    const y = d3.scaleLog(ends, [height - MARGIN.bottom, MARGIN.top]);
    const label = ends[1] < 10 * ends[0] ? digits : logarithmic;
    return [...axes(width, height, x, y, ["predicted", "measured"], { x: label, y: label }),
      svg("path", { class: "roof", d: `M${x(ends[0])} ${y(ends[0])} L${x(ends[1])} ${y(ends[1])}` }),
      ...this.trials.map((trial) => this.dot(trial, x(trial.predicted), y(trial.measured)))];
  }

  dot(trial, x, y) {
    const { name } = this.model.report.kernels[trial.kernel];
    const show = () => {
      this.note.textContent = `${name}: ${trial.kept ? "kept, " : ""}measured ${digits(trial.measured)}, `
        + `predicted ${digits(trial.predicted)}\n${trial.trace || "the default"}`;
      this.selection.selectKernel(trial.kernel, this);
    };
    return svg("circle", { class: `kernel-dot${trial.kept ? " marked" : ""}`, cx: x, cy: y, r: 5, tabindex: "0",
      role: "button", "aria-label": `schedule of ${name}`, style: `--own:${colour(trial.kernel)}`, onclick: show,
      onkeydown: (event) => event.key === "Enter" && show() }, svg("title", {}, `${name}\n${trial.trace}`));
  }
}
