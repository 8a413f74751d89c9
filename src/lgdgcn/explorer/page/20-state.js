// The view as a value: what is selected, coloured, filtered and open. It fits into a link.

const COLOURINGS = new Map([
  ["class", "Class"],
  ["predicted", "Prediction"],
  ["confidence", "Confidence"],
  ["factor", hasFactors ? "Dominant factor" : `Most frequent ${data.noun}`],
]);
if (!data.truth) COLOURINGS.delete("class");
if (!data.predicted) for (const mode of ["predicted", "confidence"]) COLOURINGS.delete(mode);
const PANELS = new Map([
  ["details", "Details"],
  ["factors", `${data.noun[0].toUpperCase()}${data.noun.slice(1)}s`],
  ["training", "Training"],
  ["correlation", "Correlation"],
  ["confusion", "Confusion"],
  ["measures", "Measures"],
]);
if (data.about.length === 0) PANELS.delete("factors");
if (!data.predicted) for (const name of ["training", "confusion"]) PANELS.delete(name);
if (!hasFactors) PANELS.delete("correlation");
if (!hasFactors && data.raw.measures.length === 0) PANELS.delete("measures");
const WHOLE_VIEW = Object.freeze({ x: 0, y: 0, zoom: 1 });
const ZOOMS = [0.5, 200];
const LASSO_STEP = 1000; // corners of a lasso are kept to a thousandth, in the link and before it

const strengthRange = [WHOLE_SHARE, 0];
for (const share of data.edgeShare) {
  strengthRange[0] = Math.min(strengthRange[0], share);
  strengthRange[1] = Math.max(strengthRange[1], share);
}
if (data.edges === 0) strengthRange.fill(0);

function initialState() {
  return {
    node: -1,
    edge: -1,
    colour: data.truth ? "class" : data.predicted ? "predicted" : "factor",
    mapClasses: true, // maps in the colours of their factors' classes, where these have any
    strength: strengthRange[0], // of WHOLE_SHARE
    hiddenFactors: new Set(),
    hiddenClasses: new Set(),
    group: null,
    main: 0,
    cameras: Array.from({ length: data.viewCount }, () => WHOLE_VIEW),
    theme: null, // as the system has it
    panel: "details",
  };
}

let state = initialState();
const listeners = [];

/** Call the action after any change of the named parts of the state. */
function onChange(names, action) {
  listeners.push({ names, action });
}

function change(parts) {
  const names = Object.keys(parts).filter((name) => parts[name] !== state[name]);
  if (names.length === 0) return;
  state = { ...state, ...parts };
  changed(names);
  rememberInLink();
}

function changed(names) {
  for (const listener of listeners) {
    if (listener.names.some((name) => names.includes(name))) listener.action();
  }
}

function setCamera(view, camera) {
  const cameras = state.cameras.slice();
  cameras[view] = camera;
  change({ cameras });
}

function toggled(set, member) {
  const copy = new Set(set);
  if (!copy.delete(member)) copy.add(member);
  return copy;
}

function groupText(group) {
  if (group.kind === "lasso") return `l${group.view}:${group.corners.join(",")}`;
  if (group.kind === "cell") return `c${group.truth},${group.predicted}`;
  return `k${group.label}`;
}

/** The state as the fragment of a link, without what is as at the start. */
function linkText() {
  const start = initialState();
  const parts = [];
  if (state.node >= 0) parts.push(`n=${state.node}`);
  if (state.edge >= 0) parts.push(`e=${state.edge}`);
  if (state.colour !== start.colour) parts.push(`c=${state.colour}`);
  if (!state.mapClasses) parts.push("o=0");
  if (state.strength > strengthRange[0]) {
    parts.push(`s=${(state.strength / WHOLE_SHARE).toFixed(5)}`);
  }
  if (state.hiddenFactors.size) {
    const shown = [];
    for (let m = 0; m < data.factors; m++) if (!state.hiddenFactors.has(m)) shown.push(m + 1);
    parts.push(`f=${shown.join(",")}`);
  }
  if (state.hiddenClasses.size) parts.push(`h=${[...state.hiddenClasses].join(",")}`);
  if (state.group) parts.push(`g=${groupText(state.group)}`);
  if (state.main) parts.push(`m=${state.main}`);
  const zooms = [];
  state.cameras.forEach(({ x, y, zoom }, view) => {
    if (x !== 0 || y !== 0 || zoom !== 1) {
      zooms.push(`${view}:${x.toFixed(4)},${y.toFixed(4)},${zoom.toFixed(3)}`);
    }
  });
  if (zooms.length) parts.push(`z=${zooms.join(";")}`);
  if (state.theme) parts.push(`t=${state.theme}`);
  if (state.panel !== start.panel) parts.push(`p=${state.panel}`);
  return parts.join("&");
}

function wholeNumber(text, from, below) {
  const number = /^\d{1,9}$/.test(text ?? "") ? Number(text) : NaN;
  return number >= from && number < below ? number : null;
}

function wholeNumbers(text, from, below) {
  return text.split(",").map((part) => wholeNumber(part, from, below)).filter((n) => n !== null);
}

function groupFrom(text) {
  const [kind, rest] = [text[0], text.slice(1)];
  if (kind === "l") {
    const [view, corners] = rest.split(":");
    const numbers = (corners ?? "").split(",").map(Number);
    const index = wholeNumber(view, 0, data.viewCount);
    if (index === null || numbers.length < 6 || numbers.length % 2) return null;
    if (!numbers.every(Number.isInteger)) return null;
    return { kind: "lasso", view: index, corners: numbers };
  }
  const labels = wholeNumbers(rest, 0, data.classes.length);
  if (kind === "c" && labels.length === 2 && !data.raw.multiLabel) {
    return { kind: "cell", truth: labels[0], predicted: labels[1] };
  }
  return kind === "k" && labels.length === 1 ? { kind: "class", label: labels[0] } : null;
}

function camerasFrom(text) {
  const cameras = initialState().cameras;
  for (const part of text.split(";")) {
    const [view, numbers] = part.split(":");
    const index = wholeNumber(view, 0, cameras.length);
    const [x, y, zoom] = (numbers ?? "").split(",").map(Number);
    if (index === null || ![x, y, zoom].every(Number.isFinite)) continue;
    cameras[index] = cameraWithin({ x, y, zoom });
  }
  return cameras;
}

function cameraWithin({ x, y, zoom }) {
  const limited = (value, low, high) => Math.min(Math.max(value, low), high);
  return { x: limited(x, -2, 2), y: limited(y, -2, 2), zoom: limited(zoom, ...ZOOMS) };
}

/** Read a fragment; whatever in it makes no sense here is as at the start. */
function stateFrom(text) {
  const found = new Map(text.split("&").map((part) => part.split(/=(.*)/s).slice(0, 2)));
  const read = initialState();
  read.node = wholeNumber(found.get("n"), 0, data.nodes) ?? -1;
  if (read.node < 0) read.edge = wholeNumber(found.get("e"), 0, data.edges) ?? -1;
  if (COLOURINGS.has(found.get("c"))) read.colour = found.get("c");
  read.mapClasses = found.get("o") !== "0";
  const strength = Math.round(WHOLE_SHARE * Number(found.get("s")));
  if (strength >= strengthRange[0] && strength <= strengthRange[1]) read.strength = strength;
  if (found.has("f")) {
    const shown = new Set(wholeNumbers(found.get("f"), 1, data.factors + 1));
    for (let m = 0; m < data.factors; m++) if (!shown.has(m + 1)) read.hiddenFactors.add(m);
  }
  if (found.has("h")) {
    read.hiddenClasses = new Set(wholeNumbers(found.get("h"), 0, data.classes.length + 1));
  }
  if (found.has("g")) read.group = groupFrom(found.get("g"));
  read.main = wholeNumber(found.get("m"), 0, data.viewCount) ?? 0;
  if (found.has("z")) read.cameras = camerasFrom(found.get("z"));
  if (["light", "dark"].includes(found.get("t"))) read.theme = found.get("t");
  if (PANELS.has(found.get("p"))) read.panel = found.get("p");
  return read;
}

let linkTimer = 0;

function writeLink() {
  clearTimeout(linkTimer);
  linkTimer = 0;
  try {
    history.replaceState(null, "", `#${linkText()}`);
  } catch {
    // a page embedded elsewhere may have no address of its own
  }
}

function rememberInLink() {
  if (!linkTimer) linkTimer = setTimeout(writeLink, 250);
}

/** Show the view of a pasted address: of the event, since writeLink may have replaced it by now. */
function restoreFromLink({ newURL }) {
  change(stateFrom(new URL(newURL).hash.slice(1)));
}
