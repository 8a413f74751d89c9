// Pointers: hover, click, drag, pinch, wheel and lasso on every view.

const CLICK_REACH = 4; // a press that moves less is a click
const EDGE_REACH = 4; // pixels from a line where a click still means it
const hoverTimes = []; // from the event to the marks drawn, in milliseconds
const pressed = new Map(); // pointers that are down, by id
let lassoArmed = null; // the view whose lasso button is down
let moved = false;

function placeOf(event) {
  const { left, top } = stage.getBoundingClientRect();
  return [event.clientX - left, event.clientY - top];
}

let pointed = null; // the latest place of a hovering pointer
const hoverNextFrame = oncePerFrame(() => {
  if (!pointed) return;
  const { view, left, top, time } = pointed;
  const node = view.nodeAt(left, top);
  if (node !== hovered) {
    hovered = node;
    drawOverlay();
  }
  view.cell.classList.toggle("on-node", node >= 0);
  showTip(node, left, top, view);
  hoverTimes.push(performance.now() - time);
  if (hoverTimes.length > 500) hoverTimes.shift();
});

function leave() {
  pointed = null;
  hovered = -1;
  showTip(-1);
  overlayNextFrame();
}

function toggleLasso(view) {
  lassoArmed = lassoArmed === view ? null : view;
  for (const other of views) {
    other.lassoButton.setAttribute("aria-pressed", String(other === lassoArmed));
    other.cell.classList.toggle("lassoing", other === lassoArmed);
  }
}

function press(view, event) {
  if (event.button !== 0 || event.target.closest("button")) return;
  view.cell.setPointerCapture(event.pointerId);
  const place = placeOf(event);
  pressed.set(event.pointerId, place);
  moved = false;
  if (event.shiftKey || lassoArmed === view) lasso = { view, corners: [place] };
  if (pressed.size > 1) lasso = null;
  leave();
}

function move(view, event) {
  const place = placeOf(event);
  const before = pressed.get(event.pointerId);
  if (!before) {
    pointed = { view, left: place[0], top: place[1], time: event.timeStamp };
    hoverNextFrame();
    return;
  }
  const [right, down] = [place[0] - before[0], place[1] - before[1]];
  if (!moved && Math.hypot(right, down) < CLICK_REACH) return;
  moved = true;
  if (lasso) {
    lasso.corners.push(place);
    overlayNextFrame();
  } else if (pressed.size === 2) {
    pinch(view, event.pointerId, place);
  } else {
    view.pan(right, down);
  }
  pressed.set(event.pointerId, place);
}

function pinch(view, id, place) {
  const [other] = [...pressed].filter(([key]) => key !== id).map(([, value]) => value);
  const before = pressed.get(id);
  const spread = (at) => Math.max(Math.hypot(at[0] - other[0], at[1] - other[1]), 1);
  view.zoomAt((place[0] + other[0]) / 2, (place[1] + other[1]) / 2, spread(place) / spread(before));
}

function release(view, event) {
  if (!pressed.delete(event.pointerId)) return;
  if (lasso) {
    finishLasso();
  } else if (!moved && event.type === "pointerup") {
    const place = placeOf(event);
    const node = view.nodeAt(...place);
    const edge = node < 0 && view.index === 0 ? edgeAt(view, ...place) : -1;
    if (edge >= 0) selectEdge(edge);
    else select(node);
  }
}

/** The shown edge whose line passes nearest to a place on the stage, -1 where none is near. */
function edgeAt(view, left, top) {
  let [found, least] = [-1, EDGE_REACH];
  for (let edge = 0; edge < data.edges; edge++) {
    if (!isShown(edge)) continue;
    const [x, y] = view.place(data.ends[edge]);
    const [toX, toY] = view.place(data.ends[data.edges + edge]);
    const [right, down] = [toX - x, toY - y];
    const along = ((left - x) * right + (top - y) * down) / (right * right + down * down || 1);
    const at = Math.min(Math.max(along, 0), 1);
    const distance = Math.hypot(x + at * right - left, y + at * down - top);
    if (distance < least) [found, least] = [edge, distance];
  }
  return found;
}

/** Corners are rounded first, so that a link brings back exactly these nodes. */
function finishLasso() {
  const { view, corners } = lasso;
  lasso = null;
  if (lassoArmed) toggleLasso(lassoArmed);
  overlayNextFrame();
  const kept = [];
  const step = Math.ceil(corners.length / 64);
  corners.forEach((corner, i) => {
    if (i % step) return;
    const limited = view.coordinates(...corner).map((value) => Math.min(Math.max(value, -3), 3));
    kept.push(...limited.map((value) => Math.round(value * LASSO_STEP)));
  });
  if (kept.length >= 6) selectGroup({ kind: "lasso", view: view.index, corners: kept });
}

function turnWheel(view, event) {
  event.preventDefault();
  const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1);
  view.zoomAt(...placeOf(event), Math.exp(-0.0016 * Math.min(Math.max(pixels, -400), 400)));
}

function listenTo(view) {
  const { cell } = view;
  cell.addEventListener("pointerdown", (event) => press(view, event));
  cell.addEventListener("pointermove", (event) => move(view, event));
  cell.addEventListener("pointerup", (event) => release(view, event));
  cell.addEventListener("pointercancel", (event) => release(view, event));
  cell.addEventListener("pointerleave", leave);
  cell.addEventListener("wheel", (event) => turnWheel(view, event), { passive: false });
  cell.addEventListener("dblclick", (event) => {
    if (!event.target.closest("button")) view.zoomAt(...placeOf(event), 2);
  });
}
