// The page: a bar with the search and the tabs, and the view of each tab.

const THEMES = ["auto", "light", "dark"];

class Page {
  constructor(report) {
    const model = (this.model = new Model(report));
    this.selection = new Selection(model);
    this.tabs = this.views().filter(Boolean);
    this.main = el("main", {});
    this.buttons = this.tabs.map(([name], number) => el("button", {
      type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "view", tabindex: number ? "-1" : "0",
      "aria-selected": "false",
      onclick: () => this.show(number),
      onkeydown: (event) => this.pressed(event, number),
    }, name));
    this.search = new Search(model, this.selection, () => this.showSelection());
    this.main.id = "view";
    this.main.setAttribute("role", "tabpanel");
    const bar = el("header", {},
      el("h1", { title: report.inputs.join(", ") }, report.title),
      el("nav", { role: "tablist", "aria-label": "views" }, this.buttons),
      el("span", { class: "spring" }), this.search.element, this.themes());
    document.getElementById("app").replaceChildren(bar, this.main);
    document.addEventListener("keydown", (event) => this.shortcut(event));
    this.show(0);
  }

  /** The name of each view with what makes it, where the report has something to show in it. */
  views() {
    const { model, selection } = this;
    const { profile, memory, patterns, trials, passes, decisions, against } = model.report;
    return [
      ["Staircase", () => new Staircase(model, selection)],
      passes.length ? ["Passes", () => new Passes(model, selection)] : null,
      decisions.length ? ["Decisions", () => new Decisions(model, selection)] : null,
      profile ? ["Profile", () => new ProfileView(model, selection)] : null,
      memory ? ["Memory", () => new MemoryView(model, selection)] : null,
      patterns.length ? ["Sparsity", () => new SparsityView(model)] : null,
      trials.length ? ["Tuning", () => new TuningView(model, selection)] : null,
      against ? ["Comparison", () => new ComparisonView(model, selection)] : null,
    ];
  }

  show(number) {
    const tab = this.tabs[number];
    if (!tab[2]) {
      tab[2] = tab[1]();
      this.main.append(tab[2].element);
    }
    this.current = number;
    this.tabs.forEach(([, , view], other) => view && (view.element.hidden = other !== number));
    this.buttons.forEach((button, other) => {
      button.setAttribute("aria-selected", String(other === number));
      button.setAttribute("tabindex", other === number ? "0" : "-1");
    });
    this.main.setAttribute("aria-labelledby", this.buttons[number].id);
    tab[2].shown?.();
  }

  /** Show the view in which what was searched for is marked. */
  showSelection() {
    if (!["Staircase", "Profile", "Memory"].includes(this.tabs[this.current][0])) this.show(0);
  }

  pressed(event, number) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (number + step + this.tabs.length) % this.tabs.length;
    this.show(next);
    this.buttons[next].focus();
    event.preventDefault();
  }

  shortcut(event) {
    const typing = event.target.closest("input, select, textarea");
    if (event.key === "/" && !typing) {
      this.search.input.focus();
      this.search.input.select();
      event.preventDefault();
    } else if (event.key === "Escape") this.selection.clear(null);
  }

  /** The switch between light, dark, and what the system says. */
  themes() {
    const stored = remembered("theme");
    const apply = (theme) => {
      document.documentElement.dataset.theme = theme;
      remember("theme", theme);
    };
    const chosen = THEMES.includes(stored) ? stored : "auto";
    document.documentElement.dataset.theme = chosen;
    return choice("theme", THEMES.map((theme) => [theme, theme]), chosen, apply);
  }
}

// Pages from disk may be denied a store.
function remember(key, value) {
  try {
    localStorage.setItem(`stepwell-${key}`, value);
  } catch {}
}

function remembered(key) {
  try {
    return localStorage.getItem(`stepwell-${key}`);
  } catch {
    return null;
  }
}

readDocument().then((report) => {
  window.stepwellReport = new Page(report);
});
