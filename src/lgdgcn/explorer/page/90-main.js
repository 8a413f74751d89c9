// Put everything in its place, restore the view of the link, draw.

const copyTitle = [...byId("copy").childNodes];

async function copyLink() {
  writeLink();
  let copied = true;
  try {
    await navigator.clipboard.writeText(location.href);
  } catch {
    copied = copyBySelection(location.href);
  }
  const said = copied ? "Link copied" : "The address bar has the link";
  byId("copy").replaceChildren(said);
  announce(said);
  setTimeout(() => byId("copy").replaceChildren(...copyTitle), 1800);
}

/** The old way, for pages opened where the clipboard is closed to scripts. */
function copyBySelection(text) {
  const field = element("textarea", { value: text, className: "unseen" });
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  return copied;
}

function showTheme() {
  const dark = theme() === "dark";
  document.documentElement.dataset.theme = theme();
  byId("theme").setAttribute("aria-pressed", String(dark));
  byId("theme").replaceChildren(icon(dark ? "sun" : "moon"));
  showZooms();
}

function buildHeader() {
  const { raw } = data;
  byId("title").append(nameOf(raw.title));
  const names = [raw.dataset, raw.model, raw.variant].filter(Boolean);
  const counted = [[data.nodes, "node"], [data.edges, "edge"], [data.factors, data.noun]];
  const sizes = counted.map(([number, what]) => count(number, what));
  byId("subtitle").textContent = [...names.map((name) => shorten(name, 40)), ...sizes].join(" · ");
  byId("edge-legend").textContent = `Edges by ${data.noun}`;
  byId("copy").addEventListener("click", copyLink);
  byId("theme").addEventListener("click", () => {
    change({ theme: theme() === "dark" ? "light" : "dark" });
  });
  byId("help").addEventListener("click", () => byId("help-text").showModal());
}

/** What the help says of maps, routing and classes is true of a page that has them. */
function fitHelp() {
  if (data.classes.length === 0) {
    document.querySelector("#help-text .of-classes").remove();
    byId("search").placeholder = "Search id";
    byId("search").setAttribute("aria-label", "Search nodes by id");
  }
  if (hasFactors) return;
  byId("help-lines").textContent = `A line has the colour of its most probable ${data.noun}, and is `
    + `grey where no ${data.noun} explains the edge well. Click it for the probability of each `
    + `${data.noun} and what speaks for it.`;
}

function start() {
  state = stateFrom(location.hash.slice(1));
  lastCameras = state.cameras;
  showTheme();
  buildHeader();
  fitHelp();
  buildColourModes();
  buildStrength();
  buildSearch();
  buildTabs();
  arrangeViews();
  for (const view of views) listenTo(view);
  showLegend();
  showFactors();
  showStrength();
  showDetails();
  showPanel();
  document.addEventListener("keydown", pressKey);
  window.addEventListener("hashchange", restoreFromLink);
  darkSystem.addEventListener("change", () => {
    if (!state.theme) changed(["theme"]);
  });
  new ResizeObserver(oncePerFrame(layOut)).observe(stage);
  layOut();
  requestAnimationFrame(() => {
    firstPaintMs = performance.now();
    window.lgdgcn.ready = true;
    setTimeout(() => views.forEach((view) => view.grid), 50); // the first hover need not wait
  });
}

onChange(["theme"], showTheme);
window.lgdgcn = {
  ready: false,
  hoverTimes,
  select,
  selectEdge,
  get firstPaintMs() {
    return firstPaintMs;
  },
  state: () => ({
    ...state,
    hiddenFactors: [...state.hiddenFactors],
    hiddenClasses: [...state.hiddenClasses],
    members: state.group ? groupNodes() : null,
    shownEdges,
    link: linkText(),
  }),
  place: (node, view = 0) => views[view].place(node),
};
start();
