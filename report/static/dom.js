// Elements, and numbers as people read them. Text is only ever set as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; `on…` are listeners, children are text or elements. */
function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A number with three digits. */
function digits(value) {
  if (value === null || value === undefined) return "";
  if (value === 0) return "0";
  return Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });
}

function seconds(value) {
  if (value >= 1) return `${digits(value)} s`;
  if (value >= 1e-3) return `${digits(value * 1e3)} ms`;
  return `${digits(value * 1e6)} µs`;
}

function bytes(value) {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (value < 1024 || unit === "GiB") return `${digits(value)} ${unit}`;
    value /= 1024;
  }
}

const percent = (value) => `${(100 * value).toFixed(value < 0.0995 ? 1 : 0)} %`;

const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

/** The colour of a kernel: one of ten, which repeat. */
const colour = (kernel) => (kernel < 0 ? "var(--none)" : `var(--kernel-${kernel % 10})`);

/** A name with places at which a long one may be broken into lines. */
const breakable = (name) =>
  name.split(/(?<=[_/.:])/).flatMap((part, place) => (place ? [el("wbr"), part] : [part]));

/** A text in so many letters at most. */
const shortened = (text, letters) => (text.length <= letters ? text : `${text.slice(0, letters - 1)}…`);

/** A button that shows one of several values, as a group. */
function choice(label, options, chosen, onchange) {
  const group = el("div", { class: "choice", role: "group", "aria-label": label });
  for (const [value, text] of options) {
    group.append(
      el("button", {
        type: "button",
        "aria-pressed": String(value === chosen),
        onclick: (event) => {
          for (const other of group.children) {
            other.setAttribute("aria-pressed", String(other === event.currentTarget));
          }
          onchange(value);
        },
      }, text),
    );
  }
  return group;
}

/** A labelled drop-down list. */
function dropdown(label, options, chosen, onchange) {
  const select = el("select", {
    "aria-label": label,
    title: label,
    onchange: (event) => onchange(event.currentTarget.value),
  });
  for (const [value, text] of options) {
    select.append(el("option", { value, selected: String(value) === String(chosen) }, text));
  }
  return select;
}

/** Let the user drag the border between an element and the one after it. */
function splitter(before, horizontal, least = 160) {
  const bar = el("div", {
    class: horizontal ? "splitter across" : "splitter down",
    role: "separator",
    tabindex: "0",
    "aria-orientation": horizontal ? "vertical" : "horizontal",
    "aria-label": "resize",
  });
  const size = () => (horizontal ? before.offsetWidth : before.offsetHeight);
  const resize = (wanted) => {
    before.style.flex = `0 0 ${Math.max(least, wanted)}px`;
    window.dispatchEvent(new Event("resize"));
  };
  bar.addEventListener("pointerdown", (event) => {
    const start = horizontal ? event.clientX : event.clientY;
    const old = size();
    bar.setPointerCapture(event.pointerId);
    const move = (at) => resize(old + (horizontal ? at.clientX : at.clientY) - start);
    bar.addEventListener("pointermove", move);
    bar.addEventListener("lostpointercapture", () => bar.removeEventListener("pointermove", move), {
      once: true,
    });
    event.preventDefault();
  });
  bar.addEventListener("keydown", (event) => {
    const keys = horizontal ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
    const step = 32 * (keys.indexOf(event.key) * 2 - 1);
    if (!keys.includes(event.key)) return;
    resize(size() + step);
    event.preventDefault();
  });
  return bar;
}
