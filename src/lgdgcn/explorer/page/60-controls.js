// The column of controls: colouring, legend and the shown factors.

function buildColourModes() {
  for (const [mode, title] of COLOURINGS) {
    const input = element("input", {
      type: "radio",
      name: "colouring",
      value: mode,
      onchange: () => change({ colour: mode }),
    });
    byId("colour-modes").append(element("label", {}, input, element("span", {}, title)));
  }
}

/** How many nodes have each label, and none of them last. */
function labelCounts(labels) {
  const counts = new Uint32Array(data.classes.length + 1);
  for (let i = 0; i < data.nodes; i++) {
    const own = labels(i);
    for (const label of own) counts[label]++;
    if (own.length === 0) counts[data.classes.length]++;
  }
  return counts;
}

function legendRow(title, number, shown, onchange) {
  const input = element("input", { type: "checkbox", checked: shown, onchange });
  const amount = element("span", { className: "quiet number" }, number);
  const made = element("label", { className: "legend-row" }, input, ...title, amount);
  made.classList.toggle("off", !shown);
  return made;
}

function showLegend() {
  for (const input of byId("colour-modes").querySelectorAll("input")) {
    input.checked = input.value === state.colour;
  }
  byId("legend").replaceChildren(...legendParts());
}

function legendParts() {
  if (state.colour === "confidence") {
    const one = "Probability of the predicted class.";
    const many = "Lowest probability among the predicted labels.";
    const bar = rampBar("confidence", "0 %", "50 %", "100 %");
    return [...bar, note(data.raw.multiLabel ? many : one)];
  }
  if (state.colour === "factor") {
    const most = `The ${data.noun} that most of a node’s edges have, in the colours listed below.`;
    const adds = "The factor that adds most to a node’s prediction, in the colours listed below.";
    return [note(hasFactors ? adds : most)];
  }
  const counts = labelCounts(state.colour === "class" ? truthOf : predictionOf);
  return [...mapLegend(), ...classLegend(counts)];
}

function classLegend(counts) {
  const { hiddenClasses } = state;
  const rows = [];
  counts.forEach((number, label) => {
    if (number === 0 && (label === data.classes.length || data.classes.length > 24)) return;
    const toggle = () => change({ hiddenClasses: toggled(hiddenClasses, label) });
    const shown = !hiddenClasses.has(label);
    rows.push(legendRow(labelName(label, 48), number.toLocaleString("en"), shown, toggle));
  });
  const all = plainButton("all", () => change({ hiddenClasses: new Set() }));
  all.disabled = hiddenClasses.size === 0;
  const none = plainButton("none", () => change({ hiddenClasses: new Set(counts.keys()) }));
  const kinds = data.raw.multiLabel ? ["label", "labels"] : ["class", "classes"];
  const head = element("div", { className: "legend-head" },
    quiet(count(data.classes.length, ...kinds)), element("span", {}, "show ", all, " ", none));
  const parts = [head, element("div", { id: "label-rows", className: "legend-rows" }, ...rows)];
  if (data.raw.multiLabel) parts.push(note("A node shows the first of its labels that is on."));
  return parts;
}

function showFactors() {
  const counts = new Uint32Array(data.factors);
  for (const factor of data.edgeFactor) counts[factor]++;
  const rows = Array.from(counts, (number, m) => {
    const toggle = () => change({ hiddenFactors: toggled(state.hiddenFactors, m) });
    const share = percent(number / Math.max(data.edges, 1));
    return legendRow(factorName(m), share, !state.hiddenFactors.has(m), toggle);
  });
  const said = data.unrouted ? [note(`Warning: ${data.unrouted}`)] : [];
  byId("factor-legend").replaceChildren(...said, ...rows);
}

function scrollingLists(holder) {
  return [...holder.querySelectorAll(".legend-rows")];
}

/** Rebuild a list after one of its boxes was used; focus and scrolling stay where they were. */
function keepingFocus(holder, action) {
  const at = [...holder.querySelectorAll("input")].indexOf(document.activeElement);
  const scrolled = new Map(scrollingLists(holder).map((rows) => [rows.id, rows.scrollTop]));
  action();
  if (at >= 0) holder.querySelectorAll("input")[at]?.focus();
  for (const rows of scrollingLists(holder)) rows.scrollTop = scrolled.get(rows.id) ?? 0;
}

onChange(["colour", "mapClasses", "hiddenClasses", "main", "theme"], () => {
  keepingFocus(byId("legend"), showLegend);
});
onChange(["hiddenFactors", "theme"], () => keepingFocus(byId("factor-legend"), showFactors));
