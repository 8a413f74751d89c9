// Parts of the details panel: bars, lists of nodes, the overview.

const FIRST_LINKS = 10;
const MOST_LINKS = 400;

function bar(share, colour) {
  const fill = element("span", { className: "fill" });
  fill.style.width = `${100 * Math.min(Math.max(share, 0), 1)}%`;
  fill.style.backgroundColor = colour;
  return element("span", { className: "track", "aria-hidden": "true" }, fill);
}

/** A button that leads to a node, and marks it in all views while it is pointed at. */
function nodeButton(node, said) {
  const mark = (marked) => () => {
    hovered = marked;
    overlayNextFrame();
  };
  return element("button", {
    type: "button",
    className: "node-link",
    onclick: () => select(node),
    onpointerenter: mark(node),
    onpointerleave: mark(-1),
    onfocus: mark(node),
    onblur: mark(-1),
  }, swatch(nodeCss(node)), nameOf(data.ids[node], 26), quiet(said));
}

/** A button that explains the edge to a neighbour; none where there is no edge. */
function whyButton({ edge, node }) {
  if (edge === undefined) return null;
  const why = plainButton("why", () => selectEdge(edge));
  why.className += " why";
  why.setAttribute("aria-label", `Why there is an edge to ${shorten(data.ids[node], 60)}`);
  return why;
}

/** A list of node buttons, the first of them at once and the rest when asked for. */
function nodeList(links, noteOf) {
  const item = (link) => element("li", {}, nodeButton(link.node, noteOf(link)), whyButton(link));
  const list = element("ul", { className: "node-links" }, ...links.slice(0, FIRST_LINKS).map(item));
  const rest = links.slice(FIRST_LINKS, MOST_LINKS);
  if (rest.length) {
    const more = element("li", {}, plainButton(`${rest.length} more`, () => {
      more.replaceWith(...rest.map(item));
    }));
    list.append(more);
  }
  return list;
}

function cardHead(...title) {
  const heading = element("h3", {}, ...title);
  return element("div", { className: "card-head" }, heading, plainButton("clear", clearSelection));
}

/** What there is to see before anything is selected. */
function overview() {
  const { raw } = data;
  const facts = [
    ["Nodes", data.nodes.toLocaleString("en")],
    ["Edges", data.edges.toLocaleString("en")],
    [raw.multiLabel ? "Labels" : "Classes", data.classes.length],
    [`${nounOf()}s`, hasFactors
      ? `${data.factors}, of ${count(raw.channels, "channel")} each` : data.factors],
  ];
  if (data.classes.length === 0) facts.splice(2, 1);
  for (const [name, value] of Object.entries(raw.scores)) {
    facts.push([nameOf(readable(name)), figure(value)]);
  }
  const rows = facts.map(([name, value]) => row(rowHead(name), numberCell(value)));
  const key = (name) => element("kbd", {}, name);
  const linked = data.viewCount > 1 ? " What is selected in one view is marked in all." : "";
  return element("article", { className: "card" },
    element("h3", {}, "Select a node or an edge"),
    element("p", {}, "Click a node or a line, search for one with ", key("/"), ", or draw a lasso with ",
      key("Shift"), ` and drag.${linked}`),
    table("facts", "The run", null, rows),
    ...raw.warnings.map((warning) => element("p", {}, `Warning: ${warning}`)));
}

function showDetails() {
  const cards = [];
  if (state.node >= 0) cards.push(nodeCard(state.node));
  if (state.edge >= 0) cards.push(edgeCard(state.edge));
  if (state.group) cards.push(groupCard(state.group));
  if (cards.length === 0) cards.push(overview());
  byId("panel-details").replaceChildren(...cards);
}

onChange(["node", "edge", "group", "colour", "hiddenClasses", "theme"], showDetails);
