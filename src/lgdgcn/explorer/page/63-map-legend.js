// The legend of the maps, where factors have classes: whether they are shown, and which they are.

function mapLegend() {
  if (!data.factorClasses) return [];
  const box = element("input", {
    type: "checkbox",
    id: "map-classes",
    checked: state.mapClasses,
    onchange: () => change({ mapClasses: !state.mapClasses }),
  });
  const title = "Maps by their own factor’s classes";
  const parts = [element("label", { className: "legend-row" }, box, title)];
  if (state.mapClasses && state.main > 0) parts.push(...classesOfMap(state.main - 1));
  return [element("div", { className: "map-legend" }, ...parts)];
}

/** The classes of factor m that nodes have, and how many nodes. */
function classesOfMap(m) {
  const counts = new Uint32Array(data.raw.channels);
  for (let i = 0; i < data.nodes; i++) counts[classIn(m, i)]++;
  const rows = [];
  counts.forEach((number, k) => {
    if (number === 0) return;
    const amount = element("span", { className: "quiet number" }, number.toLocaleString("en"));
    rows.push(element("li", { className: "legend-row" }, ...factorClassName(m, k, 48), amount));
  });
  const title = element("span", { className: "legend-row" }, ...factorName(m));
  const head = element("div", { className: "legend-head" }, title,
    quiet(count(rows.length, "class", "classes")));
  return [head, element("ul", { id: "map-class-rows", className: "legend-rows" }, ...rows)];
}
