// The keyboard: walk along edges, zoom, search, clear.

const DIRECTIONS = new Map([
  ["ArrowLeft", [-1, 0]],
  ["ArrowRight", [1, 0]],
  ["ArrowUp", [0, -1]],
  ["ArrowDown", [0, 1]],
]);

/** The neighbour that lies most in a direction of a view, -1 where none does. */
function neighbourTowards(view, node, [right, down]) {
  const [left, top] = view.place(node);
  let best = -1;
  let least = Infinity;
  for (const [other] of edgesOf(node)) {
    const [x, y] = view.place(other);
    const ahead = (x - left) * right + (y - top) * down;
    const aside = Math.abs((x - left) * down) + Math.abs((y - top) * right);
    const detour = ahead + 2 * aside;
    if (other !== node && ahead > 0.35 * aside && detour < least) {
      least = detour;
      best = other;
    }
  }
  return best;
}

function walk(view, direction) {
  if (state.node < 0) {
    const { x, y } = view.camera;
    select(view.grid.nearest(x, y, 4, isVivid));
    return;
  }
  const next = neighbourTowards(view, state.node, direction);
  if (next >= 0) select(next);
  else announce("No neighbour lies there");
}

function clearSelection() {
  if (lassoArmed) toggleLasso(lassoArmed);
  lasso = null;
  leave();
  change({ node: -1, edge: -1, group: null });
  announce("Selection cleared");
}

function pressKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help-text").open) return;
  const typing = event.target.closest?.("input, textarea, select");
  if (event.key === "Escape") {
    clearSelection();
  } else if (event.key === "/" && !typing) {
    byId("search").focus();
    byId("search").select();
  } else {
    pressKeyOnView(event);
    return;
  }
  event.preventDefault();
}

/** Keys for a focused view; with nothing focused they mean the large one. */
function pressKeyOnView(event) {
  const focused = views.find(({ cell }) => cell === event.target);
  const view = event.target === document.body ? views[state.main] : focused;
  if (!view) return;
  if (DIRECTIONS.has(event.key)) walk(view, DIRECTIONS.get(event.key));
  else if (event.key === "+" || event.key === "=") view.zoomBy(1.6);
  else if (event.key === "-") view.zoomBy(1 / 1.6);
  else if (event.key === "0") view.reset();
  else return;
  event.preventDefault();
}
