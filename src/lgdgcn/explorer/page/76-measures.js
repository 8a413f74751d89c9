// Measures of disentanglement, each beside its controls.

const BETTER = new Map([["higher", "(higher is better)"], ["lower", "(lower is better)"]]);
const STRIP = { width: 372, height: 18, margin: 7 };
const MOST_WORDS = 400;

function isNumber(value) {
  return typeof value === "number";
}

/** Four digits: of an entropy near 1 only the last ones tell anything. */
function measured(number) {
  return isNumber(number) && Math.abs(number) < 10 ? number.toFixed(4) : figure(number);
}

function exists({ value, untrained, permuted }) {
  return [value, untrained, permuted].some(isNumber);
}

function dot(x, kind) {
  return svg("circle", { cx: x, cy: STRIP.height / 2, r: 4, class: kind });
}

function triangle(x) {
  return svg("path", { d: `M${x - 4},${STRIP.height / 2 + 4}h8l-4,-8z`, class: "permuted" });
}

function level(from, to, kind) {
  const y = STRIP.height / 2;
  return svg("line", { x1: from, x2: to, y1: y, y2: y, class: kind });
}

/** A measure on a line: the value with its interval, and the two controls. */
function strip({ value, low, high, untrained, permuted }) {
  const { width, height, margin } = STRIP;
  const box = { viewBox: `0 0 ${width} ${height}`, class: "strip", "aria-hidden": "true" };
  const numbers = [value, low, high, untrained, permuted].filter(isNumber);
  const [least, most] = extent([0, 1, ...numbers]);
  const across = (number) => margin + ((number - least) / (most - least)) * (width - 2 * margin);
  const parts = [level(margin, width - margin, "axis")];
  if (isNumber(untrained)) parts.push(dot(across(untrained), "untrained"));
  if (isNumber(permuted)) parts.push(triangle(across(permuted)));
  if (isNumber(low) && isNumber(high)) parts.push(level(across(low), across(high), "interval"));
  if (isNumber(value)) parts.push(dot(across(value), "value"));
  return svg("svg", box, ...parts);
}

function measureRows(measure) {
  const { low, high } = measure;
  const known = isNumber(low) && isNumber(high);
  const interval = element("span", { className: "quiet interval-text" });
  if (known) interval.append(`${measured(low)} to ${measured(high)}`);
  const words = `${measure.about ?? ""} ${BETTER.get(measure.better) ?? ""}`;
  const numbers = row(
    rowHead(nameOf(measure.title ?? measure.name, 60)),
    numberCell(element("strong", {}, measured(measure.value)), interval),
    numberCell(measured(measure.untrained)),
    numberCell(measured(measure.permuted)),
  );
  numbers.className = "measure";
  const about = element("td", { colSpan: 4 }, strip(measure), quiet(shorten(words, MOST_WORDS)));
  return [numbers, element("tr", { className: "about" }, about)];
}

function measureKey() {
  const entry = (shape, text) => {
    const box = { viewBox: `0 0 18 ${STRIP.height}`, class: "strip sign", "aria-hidden": "true" };
    return element("span", {}, svg("svg", box, shape), text);
  };
  return element("p", { className: "quiet key" },
    entry(dot(9, "value"), "this run, with its interval"),
    entry(dot(9, "untrained"), "untrained network"),
    entry(triangle(9), "channels permuted"));
}

function buildMeasures(panel) {
  const { measures } = data.raw;
  if (measures.length === 0) {
    panel.append(note("Nothing was measured on this run."));
    return;
  }
  const head = tableHead(["measure"], ["value", "untrained", "permuted"]);
  const rows = measures.filter(exists).flatMap(measureRows);
  const caption = "Measures of disentanglement with their controls";
  panel.append(measureKey(), table("numbers measures", caption, head, rows));
  const missing = measures.filter((measure) => !exists(measure));
  if (missing.length === 0) return;
  const names = missing.map(({ title, name }) => title ?? name).join(", ");
  panel.append(note("These do not exist for this run, mostly as its true factors are not known: ",
    `${shorten(names, MOST_WORDS)}.`));
}
