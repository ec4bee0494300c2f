// Panes of code: of long texts only the visible lines are in the page.

const LINE = 18;
const TOKEN = new RegExp(
  [
    /(?<comment>\/\/.*|(?<=^|\s)[#;]\s.*)/,
    /(?<string>"(?:[^"\\]|\\.)*")/,
    /(?<value>[%^][\w.#$-]+|%"[^"]*")/,
    /(?<symbol>@[\w.$-]+|@"[^"]*")/,
    /(?<keyword>\b(?:for|in|range|entries|kernel|local|prefetch|to|carry|parallel|reduction|serial|tiles|define|ret|br|label)\b)/,
    /(?<operation>\b(?:graph|loop|rt|scf|memref|vector|arith|math|llvm|func|cf|builtin|x86vector|sparse_tensor)\.[\w.]+)/,
    /(?<type>\b(?:tensor|memref|vector|index|ptr|float|double|[su]?i\d+|b?f\d+)\b)/,
    /(?<number>(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?\b)/,
  ].map((one) => one.source).join("|"),
  "g",
);

/** The parts of a line, each in its colour. */
function highlighted(text) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    if (match.index > end) parts.push(text.slice(end, match.index));
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    parts.push(el("span", { class: kind }, match[0]));
    end = match.index + match[0].length;
  }
  parts.push(text.slice(end));
  return parts;
}

/** A pane that shows the functions of a kernel at one stage. */
class CodePane {
  constructor(model, selection, stage, onclose) {
    this.model = model;
    this.selection = selection;
    this.stage = stage;
    this.active = -1;
    this.id = `active-line-${(CodePane.made = (CodePane.made ?? 0) + 1)}`;
    this.key = null;
    this.rows = [];
    this.lines = el("div", { class: "lines" });
    this.view = el("div", {
      class: "code",
      role: "listbox",
      tabindex: "0",
      onscroll: () => this.draw(),
      onclick: (event) => this.clicked(event),
      onkeydown: (event) => this.pressed(event),
    }, this.lines);
    this.overview = el("canvas", { class: "overview", "aria-hidden": "true" });
    this.overview.addEventListener("click", (event) => {
      this.view.scrollTop =
        (event.offsetY / this.overview.clientHeight) * this.rows.length * LINE - this.height / 2;
    });
    const stages = model.report.stages.map((one) => [one.name, one.name]);
    this.count = el("span", { class: "muted" });
    this.list = dropdown("stage", stages, stage, (value) => this.show(value));
    this.element = el(
      "section",
      { class: "pane" },
      el("div", { class: "tools" }, this.list, this.count, el("span", { class: "spring" }),
        el("button", {
          type: "button", class: "plain", "aria-label": "close pane", title: "close",
          onclick: () => onclose(this),
        }, "×")),
      el("div", { class: "body" }, this.view, this.overview),
    );
    selection.onchange((source) => this.changed(source));
    new ResizeObserver(() => this.draw()).observe(this.view);
    this.fill();
  }

  get height() {
    return this.view.clientHeight;
  }

  show(stage) {
    this.stage = stage;
    this.changed(null);
  }

  /** Take the lines of the functions to show. */
  fill() {
    const key = `${this.stage} ${this.selection.kernel}`;
    if (key === this.key) return;
    this.key = key;
    this.rows = [];
    for (const part of this.model.functions(this.stage, this.selection.kernel)) {
      if (this.rows.length) this.rows.push({ text: "", mark: 0, kernel: -1 });
      const kernel = part.kernels.includes(this.selection.kernel) ? this.selection.kernel : -1;
      part.lines.forEach((text, n) => this.rows.push({ text, mark: part.marks[n], kernel }));
    }
    const longest = this.rows.reduce((most, row) => Math.max(most, row.text.length), 0);
    this.lines.style.height = `${this.rows.length * LINE}px`;
    this.lines.style.minWidth = `${longest + 8}ch`;
    this.count.textContent = count(this.rows.length, "line");
    this.view.setAttribute("aria-label", `${this.stage}, ${this.rows.length} lines`);
    this.view.scrollTop = 0;
    this.active = -1;
    this.drawn = null;
  }

  changed(source) {
    this.fill();
    if (source !== this) this.reveal();
    this.drawn = null;
    this.draw();
    this.drawOverview();
  }

  level(row) {
    return this.selection.levels[row.mark];
  }

  /** Scroll to the first line of what is selected, unless one is visible. */
  reveal() {
    if (this.selection.isEmpty || !this.height) return;
    const first = Math.floor(this.view.scrollTop / LINE);
    const last = first + Math.floor(this.height / LINE);
    const visible = this.rows.slice(first, last).some((row) => this.level(row) === 2);
    const found = this.rows.findIndex((row) => this.level(row) === 2);
    if (!visible && found >= 0) this.view.scrollTop = Math.max(0, found - 3) * LINE;
  }

  /** Put the visible lines into the page. */
  draw() {
    const first = Math.max(0, Math.floor(this.view.scrollTop / LINE) - 20);
    const last = Math.min(this.rows.length, first + Math.ceil(this.height / LINE) + 40);
    if (this.drawn === `${first} ${last} ${this.active}`) return;
    this.drawn = `${first} ${last} ${this.active}`;
    const width = String(this.rows.length).length;
    const shown = this.rows.slice(first, last).map((row, offset) => {
      const number = first + offset;
      const level = this.level(row);
      return el(
        "div",
        {
          class: ["line", ["", "near", "marked"][level], row.mark ? "known" : ""].join(" "),
          role: "option",
          id: number === this.active ? this.id : null,
          "aria-selected": String(level === 2),
          "data-row": number,
          style: `top:${number * LINE}px`,
        },
        el("span", { class: "gutter" }, String(number + 1).padStart(width)),
        ...highlighted(row.text),
      );
    });
    this.lines.replaceChildren(...shown);
    this.lines.querySelector(`[data-row="${this.active}"]`)?.classList.add("active");
    if (this.active >= 0) this.view.setAttribute("aria-activedescendant", this.id);
    if (!this.painted) this.drawOverview();
  }

  /** Draw where in the text marked lines are. */
  drawOverview() {
    const { clientWidth: width, clientHeight: height } = this.overview;
    this.painted = height > 0;
    if (!this.painted) return;
    this.overview.width = width;
    this.overview.height = height;
    const paint = this.overview.getContext("2d");
    const style = getComputedStyle(this.element);
    const scale = Math.min(LINE, height / Math.max(1, this.rows.length));
    for (const level of [1, 2]) {
      paint.fillStyle = style.getPropertyValue(level === 2 ? "--mark" : "--near-line");
      this.rows.forEach((row, number) => {
        if (this.level(row) === level) paint.fillRect(0, number * scale, width, Math.max(2, scale));
      });
    }
  }

  clicked(event) {
    const line = event.target.closest(".line");
    if (line) this.choose(Number(line.dataset.row));
  }

  /** Select what a line stands for. */
  choose(number) {
    const row = this.rows[number];
    this.active = number;
    if (row.mark) this.selection.selectMark(row.mark, row.kernel, this);
    else this.draw();
  }

  pressed(event) {
    const page = Math.max(1, Math.floor(this.height / LINE) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    const ends = { Home: 0, End: this.rows.length - 1 };
    if (event.key in steps) this.move(this.active + steps[event.key]);
    else if (event.key in ends) this.move(ends[event.key]);
    else if (event.key === "Enter" && this.active >= 0) this.choose(this.active);
    else if (event.key === "n" || event.key === "N") this.next(event.key === "n" ? 1 : -1);
    else return;
    event.preventDefault();
  }

  /** Make a line the active one, and scroll to it. */
  move(number) {
    this.active = Math.min(this.rows.length - 1, Math.max(0, number));
    const top = this.active * LINE;
    if (top < this.view.scrollTop) this.view.scrollTop = top;
    if (top + LINE > this.view.scrollTop + this.height) this.view.scrollTop = top + LINE - this.height;
    this.draw();
  }

  /** Go to the next marked line, or the one before. */
  next(step) {
    for (let number = this.active + step; this.rows[number]; number += step) {
      const before = this.rows[number - step];
      if (this.level(this.rows[number]) === 2 && (!before || this.level(before) !== 2)) {
        this.move(number);
        return;
      }
    }
  }
}
