// Marks above the drawing: the selected node with its links, the hovered node, the lasso.

const overlay = byId("overlay");
const marks = overlay.getContext("2d");
let hovered = -1;
let lasso = null; // {view, corners: [[left, top], …]} while it is drawn

function ink(alpha = 1) {
  return theme() === "dark" ? `rgba(240, 243, 247, ${alpha})` : `rgba(23, 28, 34, ${alpha})`;
}

function drawOverlay() {
  const ratio = painter.ratio;
  marks.setTransform(ratio, 0, 0, ratio, 0, 0);
  marks.clearRect(0, 0, overlay.width, overlay.height);
  for (const view of views) {
    const { x, y, width, height } = view.box;
    marks.save();
    marks.beginPath();
    marks.rect(x, y, width, height);
    marks.clip();
    if (state.node >= 0) drawSelected(view, state.node);
    if (state.edge >= 0) drawSelectedEdge(view, state.edge);
    if (hovered >= 0 && hovered !== state.node) drawHovered(view, hovered);
    if (lasso?.view === view) drawLasso(lasso.corners, 0.8);
    else if (state.group?.view === view.index) drawLasso(lassoCorners(view), 0.35);
    marks.restore();
  }
}

function line(view, from, to, colour, width, dashes = []) {
  marks.beginPath();
  marks.moveTo(...view.place(from));
  marks.lineTo(...view.place(to));
  marks.setLineDash(dashes);
  marks.strokeStyle = colour;
  marks.lineWidth = width;
  marks.stroke();
  marks.setLineDash([]);
}

function disc(view, node, radius, rim, rimWidth) {
  marks.beginPath();
  marks.arc(...view.place(node), radius, 0, 2 * Math.PI);
  marks.fillStyle = nodeCssIn(view, node);
  marks.fill();
  marks.strokeStyle = rim;
  marks.lineWidth = rimWidth;
  marks.stroke();
}

/** In the graph all links of a node, in a map those of its factor. */
function drawSelected(view, node) {
  const large = view.index === state.main;
  const factors = view.index === 0 ? [...Array(data.factors).keys()] : [view.index - 1];
  const neighbours = edgesOf(node)
    .filter(([, edge]) => isShown(edge) && factors.includes(data.edgeFactor[edge]))
    .map(([other, edge]) => [other, edgeHue(data.edgeFactor[edge])]);
  for (const m of factors) {
    if (state.hiddenFactors.has(m)) continue;
    for (const link of latentNeighbours(node, m)) {
      line(view, node, link.node, css(hue(m), view.index === 0 ? 0.5 : 0.75), 1, [3, 3]);
      disc(view, link.node, view.radius * 0.9 + 0.5, css(hue(m), 0.9), 1);
    }
  }
  for (const [other, colour] of neighbours) {
    line(view, node, other, css(colour, 0.95), large ? 2.2 : 1.4);
  }
  for (const [other, colour] of neighbours) {
    disc(view, other, view.radius + (large ? 1.5 : 0.7), css(colour), large ? 2 : 1.2);
  }
  disc(view, node, view.radius + (large ? 4 : 2), css(GROUNDS[theme()]), large ? 5 : 3);
  disc(view, node, view.radius + (large ? 4 : 2), ink(), large ? 2.5 : 1.8);
  if (large) drawName(view, node);
}

function drawSelectedEdge(view, edge) {
  const large = view.index === state.main;
  const ends = [data.ends[edge], data.ends[data.edges + edge]];
  line(view, ...ends, ink(), large ? 6 : 3.5);
  line(view, ...ends, css(edgeHue(data.edgeFactor[edge])), large ? 3 : 1.8);
  for (const end of ends) {
    disc(view, end, view.radius + (large ? 3 : 1.5), ink(), large ? 2.2 : 1.5);
    if (large) drawName(view, end);
  }
}

function drawHovered(view, node) {
  const large = view.index === state.main;
  if (view.index === 0) {
    for (const [other, edge] of edgesOf(node)) {
      if (!isShown(edge)) continue;
      line(view, node, other, css(edgeHue(data.edgeFactor[edge]), 0.8), large ? 1.6 : 1);
    }
  }
  disc(view, node, view.radius + (large ? 3 : 2), ink(0.85), large ? 2 : 1.5);
}

function drawName(view, node) {
  const [left, top] = view.place(node);
  const text = shorten(data.ids[node], 32);
  marks.font = "600 13px system-ui, sans-serif";
  marks.textBaseline = "middle";
  marks.lineJoin = "round";
  marks.lineWidth = 4;
  marks.strokeStyle = css(GROUNDS[theme()], 0.9);
  const across = left + marks.measureText(text).width + 24 > view.box.x + view.box.width ? -1 : 1;
  marks.textAlign = across > 0 ? "left" : "right";
  const at = left + across * (view.radius + 10);
  marks.strokeText(text, at, top);
  marks.fillStyle = ink();
  marks.fillText(text, at, top);
}

function lassoCorners(view) {
  const corners = state.group.corners.map((corner) => corner / LASSO_STEP);
  const places = [];
  for (let i = 0; i < corners.length; i += 2) {
    places.push(view.stagePlace(corners[i], corners[i + 1]));
  }
  return places;
}

function drawLasso(corners, strength) {
  marks.beginPath();
  for (const corner of corners) marks.lineTo(...corner);
  marks.closePath();
  marks.fillStyle = ink(0.05);
  marks.fill();
  marks.setLineDash([5, 4]);
  marks.strokeStyle = ink(strength);
  marks.lineWidth = 1.5;
  marks.stroke();
  marks.setLineDash([]);
}

/** The small card at the pointer: whose node this is, and in a map its class there. */
function showTip(node, left, top, view) {
  const tip = byId("tip");
  tip.hidden = node < 0;
  if (node < 0) return;
  const rows = [element("strong", {}, nameOf(data.ids[node], 48))];
  if (data.truth) rows.push(labelled("class", truthOf(node)));
  if (data.predicted) rows.push(labelled("predicted", predictionOf(node)));
  if (data.factorClasses && view.index > 0) {
    const m = view.index - 1;
    const own = factorClassName(m, classIn(m, node), 32);
    rows.push(element("span", {}, quiet(`in factor ${m + 1} `), ...own));
  }
  const said = [count(edgesOf(node).length, "neighbour")];
  if (hasFactors) said.unshift(`decided by factor ${data.dominant[node] + 1}`);
  if (data.predicted) said.unshift(`${percent(data.confidence[node])} sure`);
  rows.push(quiet(said.join(" · ")));
  tip.replaceChildren(...rows);
  const stage = byId("stage").getBoundingClientRect();
  tip.style.left = `${Math.min(left + 14, stage.width - tip.offsetWidth - 6)}px`;
  const below = top + 18 + tip.offsetHeight <= stage.height;
  tip.style.top = `${below ? top + 18 : top - tip.offsetHeight - 10}px`;
}

function labelled(what, labels) {
  const row = element("span", {}, quiet(`${what} `));
  labels.slice(0, 4).forEach((label, i) => {
    row.append(i ? ", " : "", ...labelName(label, 32));
  });
  if (labels.length === 0) row.append("none");
  if (labels.length > 4) row.append(` and ${labels.length - 4} more`);
  return row;
}
