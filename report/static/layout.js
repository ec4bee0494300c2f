// Places of the boxes of a graph. Groups are laid out from the inside out: each by dagre, and then as
// one box of the group around it, which takes a fraction of the time of one large layout.

const PADDING = 14;
const TITLE = 22;
const TITLE_LETTER = 7.2;
const TITLE_MARGIN = 34;
const LARGE = 400;

/** A part of a group: a box with a size, or another group with `children`. */
class Group {
  constructor(facts, parent) {
    Object.assign(this, facts);
    this.parent = parent;
    this.children = [];
    this.edges = new Map();
  }

  add(child) {
    child.parent = this;
    this.children.push(child);
    return child;
  }

  /** An edge between boxes in this group, as one between its children. */
  connect(edge, from, to) {
    const id = `${this.children.indexOf(from)} ${this.children.indexOf(to)}`;
    if (!this.edges.has(id)) this.edges.set(id, { from, to, drawn: [] });
    this.edges.get(id).drawn.push(edge);
  }
}

/** The groups around a box, the innermost first, and the box itself before them. */
function around(box) {
  const found = [];
  for (let one = box; one; one = one.parent) found.push(one);
  return found;
}

/**
 * Find places for all boxes and points for all edges.
 *
 * @param root the outermost group; its boxes have `width` and `height`, and get `x` and `y`: their
 *   centres.
 * @param edges pairs of boxes, `from` and `to`; they get `points`.
 */
function layOut(root, edges) {
  for (const edge of edges) {
    const [one, other] = [around(edge.from), around(edge.to)];
    while (one.at(-2) && one.at(-2) === other.at(-2)) {
      one.pop();
      other.pop();
    }
    one.at(-1).connect(edge, one.at(-2), other.at(-2));
  }
  measure(root);
  place(root, root.width / 2, root.height / 2);
}

/** Lay out a group: the places of its children within it, and its size. */
function measure(group) {
  for (const child of group.children) if (child.children) measure(child);
  const graph = new dagre.graphlib.Graph();
  const ranker = group.children.length > LARGE ? "longest-path" : "network-simplex";
  graph.setGraph({ ranksep: 30, nodesep: 20, edgesep: 10, ranker });
  group.children.forEach((child, number) =>
    graph.setNode(String(number), { width: child.width, height: child.height }));
  for (const [id, edge] of group.edges) graph.setEdge(...id.split(" "), { edge });
  dagre.layout(graph);
  const { width, height } = graph.graph();
  // A group is wide enough for its title, within reason.
  const title = group.parent ? Math.min(group.label.length, LETTERS) * TITLE_LETTER + TITLE_MARGIN : 0;
  group.inside = (Number.isFinite(width) ? width : 0) + 2 * PADDING;
  group.width = Math.max(group.inside, title);
  group.height = (Number.isFinite(height) ? height : 0) + 2 * PADDING + (group.parent ? TITLE : 0);
  group.inner = graph;
}

/** Move a group to a place, with all that is in it. */
function place(group, x, y) {
  Object.assign(group, { x, y });
  const left = x - group.inside / 2 + PADDING;
  const top = y - group.height / 2 + PADDING + (group.parent ? TITLE : 0);
  const graph = group.inner;
  group.children.forEach((child, number) => {
    const at = graph.node(String(number));
    if (child.children) place(child, left + at.x, top + at.y);
    else Object.assign(child, { x: left + at.x, y: top + at.y });
  });
  for (const id of graph.edges()) {
    const { edge, points } = graph.edge(id);
    const moved = points.map((point) => ({ x: left + point.x, y: top + point.y }));
    for (const drawn of edge.drawn) {
      drawn.points = [...moved];
      fasten(drawn, edge);
    }
  }
}

/** Let an edge between groups begin and end at the boxes in them. */
function fasten(drawn, { from, to }) {
  if (from !== drawn.from) drawn.points.splice(0, 1, below(drawn.from));
  if (to !== drawn.to) drawn.points.splice(-1, 1, above(drawn.to));
}

const above = (box) => ({ x: box.x, y: box.y - box.height / 2 });
const below = (box) => ({ x: box.x, y: box.y + box.height / 2 });
