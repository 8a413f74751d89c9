// Icons as lines on a 16 × 16 square: letters that look like them differ from font to font.

const ICONS = new Map([
  ["lasso", "M8 2.5c3.3 0 6 1.8 6 4s-2.7 4-6 4-6-1.8-6-4 2.7-4 6-4" +
    "M4.6 9.8c-1.6.6-1.6 2.4.2 2.4 1.2 0 1.6.8 1 1.8"],
  ["plus", "M8 3v10M3 8h10"],
  ["minus", "M3 8h10"],
  ["whole", "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10"],
  ["enlarge", "M9.5 2.5h4v4M13.5 2.5L9 7M6.5 13.5h-4v-4M2.5 13.5L7 9"],
  ["moon", "M13.2 9.6A5.7 5.7 0 1 1 6.4 2.8a4.6 4.6 0 0 0 6.8 6.8"],
  ["sun", "M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6M8 1.2v1.6M8 13.2v1.6M1.2 8h1.6M13.2 8h1.6" +
    "M3.2 3.2l1.1 1.1M11.7 11.7l1.1 1.1M3.2 12.8l1.1-1.1M11.7 4.3l1.1-1.1"],
]);

function icon(name) {
  const lines = svg("path", { d: ICONS.get(name) });
  return svg("svg", { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" }, lines);
}
