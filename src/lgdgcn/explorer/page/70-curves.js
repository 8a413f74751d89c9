// Training curves: one small chart per term, a line per seed.

const CHART = { width: 360, height: 96, left: 46, right: 8, top: 6, bottom: 16 };
const CHART_FLOOR = CHART.height - CHART.bottom;

/** Points [epoch, value] of every seed, by term. */
function curveTerms() {
  const terms = new Map();
  for (const { seed, epochs, terms: values } of data.raw.curves) {
    for (const [name, numbers] of Object.entries(values)) {
      const points = epochs.map((epoch, i) => [epoch, numbers[i]]);
      const known = points.filter(([, value]) => typeof value === "number");
      if (known.length) terms.set(name, [...(terms.get(name) ?? []), { seed, points: known }]);
    }
  }
  return terms;
}

function extent(numbers) {
  let [low, high] = [Infinity, -Infinity];
  for (const number of numbers) {
    low = Math.min(low, number);
    high = Math.max(high, number);
  }
  return [low, high];
}

/** A scale from values to pixels; logarithmic where positive values span many sizes. */
function valueScale(values) {
  const [low, high] = extent(values);
  const logarithmic = low > 0 && high / low > 30;
  const raised = logarithmic ? Math.log10 : (value) => value;
  const span = raised(high) - raised(low) || 1;
  const tall = CHART_FLOOR - CHART.top;
  const pixel = (value) => CHART_FLOOR - (tall * (raised(value) - raised(low))) / span;
  return { low, high, logarithmic, pixel };
}

function lineChart(name, seeds, [first, last]) {
  const scale = valueScale(seeds.flatMap(({ points }) => points.map(([, value]) => value)));
  const right = CHART.width - CHART.right;
  const perEpoch = (right - CHART.left) / (last - first || 1);
  const across = (epoch) => CHART.left + perEpoch * (epoch - first);
  const chart = svg("svg", {
    viewBox: `0 0 ${CHART.width} ${CHART.height}`,
    class: "chart",
    role: "img",
    "aria-label": `${name}, epochs ${first} to ${last}`,
  });
  const label = (x, y, anchor, text) => svg("text", { x, y, "text-anchor": anchor }, text);
  chart.append(
    svg("line", { x1: CHART.left, x2: right, y1: CHART_FLOOR, y2: CHART_FLOOR, class: "axis" }),
    label(CHART.left - 5, CHART.top + 8, "end", figure(scale.high)),
    label(CHART.left - 5, CHART_FLOOR, "end", scale.high > scale.low ? figure(scale.low) : ""),
    label(CHART.left, CHART.height - 3, "start", String(first)),
    label(right, CHART.height - 3, "end", `epoch ${last}`),
  );
  for (const { points } of seeds) {
    const corners = points.map((point) => [across(point[0]), scale.pixel(point[1])]);
    const path = corners.map((corner) => corner.map((at) => at.toFixed(1)).join(",")).join("L");
    chart.append(svg("path", { d: `M${path}`, class: "curve" }));
  }
  const cursor = svg("line", { y1: CHART.top, y2: CHART_FLOOR, class: "cursor" });
  chart.append(cursor);
  return { seeds, chart, scale, across, cursor };
}

/** The recorded point nearest to an epoch. */
function pointNear(points, epoch) {
  let [low, high] = [0, points.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (points[middle][0] <= epoch) low = middle;
    else high = middle;
  }
  return epoch - points[low][0] < points[high][0] - epoch ? points[low] : points[high];
}

/** Read all charts at one epoch; at the last one where none is pointed at. */
function readCharts(charts, epoch) {
  for (const { seeds, across, cursor, reading } of charts) {
    const found = seeds.map(({ points }) => pointNear(points, epoch ?? Infinity));
    const values = found.map(([, value]) => figure(value)).join(", ");
    reading.textContent = epoch === null ? values : `epoch ${found[0][0]}: ${values}`;
    const x = epoch === null ? -9 : across(found[0][0]);
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
  }
}

function curveTable(terms) {
  const rows = [];
  for (const [name, seeds] of terms) {
    for (const { seed, points } of seeds) {
      const values = points.map(([, value]) => value);
      const numbers = [seed, values[0], ...extent(values), values.at(-1)];
      const cells = numbers.map((number) => numberCell(figure(number)));
      rows.push(row(rowHead(nameOf(readable(name), 40)), ...cells));
    }
  }
  const head = tableHead(["term"], ["seed", "first", "lowest", "highest", "last"]);
  const made = table("numbers", "Training curves", head, rows);
  return element("details", {}, element("summary", {}, "As a table"), made);
}

function buildCurves(panel) {
  const terms = curveTerms();
  if (terms.size === 0) {
    panel.append(note("This run recorded no curves."));
    return;
  }
  const every = [...terms.values()].flat().flatMap(({ points }) => points.map(([epoch]) => epoch));
  const [first, last] = extent(every);
  const seeds = count(data.raw.curves.length, "seed");
  panel.append(note(`Every term and score, ${seeds}. Point at an epoch to read it.`));
  const charts = [];
  for (const [name, own] of terms) {
    const drawn = lineChart(shorten(readable(name)), own, [first, last]);
    const reading = element("span", { className: "reading number" });
    const title = element("figcaption", {}, nameOf(readable(name)),
      quiet(drawn.scale.logarithmic ? "logarithmic" : ""), reading);
    panel.append(element("figure", { className: "curve-figure" }, title, drawn.chart));
    charts.push({ ...drawn, reading });
  }
  for (const { chart } of charts) {
    chart.addEventListener("pointermove", (event) => {
      const { left, width } = chart.getBoundingClientRect();
      const x = ((event.clientX - left) / width) * CHART.width - CHART.left;
      const share = x / (CHART.width - CHART.left - CHART.right);
      readCharts(charts, first + Math.min(Math.max(share, 0), 1) * (last - first));
    });
    chart.addEventListener("pointerleave", () => readCharts(charts, null));
  }
  readCharts(charts, null);
  panel.append(curveTable(terms));
}
