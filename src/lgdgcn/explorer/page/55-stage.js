// The stage: lays out the views, and redraws what changed, once per frame.

const stage = byId("stage");
const painter = makePainter();
const unpainted = new Set(views);
let nodesChanged = true;
let edgesChanged = true;
let firstPaintMs = null;

function makePainter() {
  const canvas = byId("drawing");
  try {
    return new GlPainter(canvas);
  } catch {
    const fresh = canvas.cloneNode(); // one that gave WebGL once gives nothing else
    canvas.replaceWith(fresh);
    stage.dataset.painter = "flat";
    return new FlatPainter(fresh);
  }
}

const nextFrame = oncePerFrame(() => {
  paint();
  drawOverlay();
});
const overlayNextFrame = oncePerFrame(drawOverlay);

function paint() {
  if (nodesChanged) {
    colourNodes();
    painter.setNodes(coloursByView(), nodeOrder);
  }
  if (nodesChanged || edgesChanged) {
    colourEdges();
    painter.setEdges(edgeColours);
    showEdgeCount();
  }
  nodesChanged = edgesChanged = false;
  const fade = state.node >= 0 || state.edge >= 0 ? 0.4 : 1;
  for (const view of unpainted) painter.draw(view, GROUNDS[theme()], fade);
  unpainted.clear();
}

function repaint(...which) {
  for (const view of which.length ? which : views) unpainted.add(view);
  nextFrame();
}

/** Draw everything, colours included: the painter has lost what it had. */
function repaintAnew() {
  nodesChanged = edgesChanged = true;
  repaint();
}

/** Measure where the cells lie; the canvases cover the whole stage. */
function layOut() {
  const around = stage.getBoundingClientRect();
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  for (const view of views) {
    const { left, top, width, height } = view.cell.getBoundingClientRect();
    view.box = {
      x: left - around.left,
      y: top - around.top,
      width: Math.max(width, 1),
      height: Math.max(height, 1),
    };
  }
  painter.resize(around.width, around.height, ratio);
  overlay.width = Math.round(around.width * ratio);
  overlay.height = Math.round(around.height * ratio);
  unpainted.clear();
  for (const view of views) unpainted.add(view);
  paint();
  drawOverlay();
}

function arrangeViews() {
  const rows = data.factors <= 6 ? 1 : data.factors <= 16 ? 2 : 3;
  const holder = byId("views");
  holder.style.setProperty("--columns", Math.ceil(data.factors / rows));
  holder.style.setProperty("--rows", rows);
  holder.classList.toggle("single", views.length === 1);
  const main = views[state.main];
  const others = views.filter((view) => view !== main);
  holder.replaceChildren(main.cell, ...others.map((view) => view.cell));
  for (const view of views) view.cell.classList.toggle("main", view === main);
}

function showZooms() {
  for (const view of views) {
    view.resetButton.disabled = view.camera === WHOLE_VIEW;
    if (view.mark) view.mark.style.backgroundColor = css(hue(view.index - 1));
  }
}

onChange(["colour", "mapClasses", "hiddenClasses", "group", "theme"], () => {
  nodesChanged = true;
  repaint();
});
onChange(["strength"], () => {
  edgesChanged = true;
  repaint(views[0]);
});
onChange(["hiddenFactors"], () => {
  edgesChanged = true;
  nodesChanged ||= state.colour === "factor";
  repaint();
});
onChange(["node", "edge"], () => repaint(views[0]));
onChange(["main"], () => {
  arrangeViews();
  layOut();
});
let lastCameras = state.cameras;
onChange(["cameras"], () => {
  repaint(...views.filter((view) => lastCameras[view.index] !== view.camera));
  lastCameras = state.cameras;
  showZooms();
});

/** Select a node, show its details and bring it into sight. */
function select(node) {
  hovered = -1;
  showTip(-1);
  change({ node, edge: -1, panel: "details" });
  if (node < 0) return;
  views[state.main].bringIntoSight(node);
  const labels = predictionOf(node).map((label) => shorten(className(label), 40)).join(", ");
  const around = count(edgesOf(node).length, "neighbour");
  const said = data.predicted ? `predicted ${labels || "nothing"}, ` : "";
  announce(`Selected ${shorten(data.ids[node])}, ${said}${around}`);
}

/** Select an edge and show its reasons. */
function selectEdge(edge) {
  hovered = -1;
  showTip(-1);
  change({ edge, node: -1, panel: "details" });
  const names = [data.ends[edge], data.ends[data.edges + edge]].map((end) => shorten(data.ids[end]));
  announce(`Selected the edge between ${names.join(" and ")}`);
}
