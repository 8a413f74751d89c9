// Confusion: truth against prediction, or right and wrong per label.

const MOST_CELLS_READ = 12; // a wider matrix shows colours only
const MOST_CLASSES_DRAWN = 100;
const MOST_CONFUSIONS = 12;

function buildConfusion(panel) {
  const { confusion } = data.raw;
  if (!confusion) {
    panel.append(note("There is nothing to compare: no known labels, or too many classes."));
    return;
  }
  const parts = confusion.matrix ? confusionParts : labelParts;
  const show = () => panel.replaceChildren(...parts(confusion));
  show();
  onChange(["theme"], show);
}

function countedNodes(parts) {
  return parts === "all" ? "All labelled nodes" : `Nodes of the ${parts} part`;
}

function confusionParts({ parts, matrix }) {
  const size = data.classes.length;
  const counts = valuesOf(matrix);
  const rows = "Rows are true classes, columns predicted ones; a cell selects its nodes.";
  const made = [note(`${countedNodes(parts)}. ${rows}`)];
  if (size <= MOST_CLASSES_DRAWN) {
    made.push(element("div", { className: "rolling" }, confusionTable(counts, size)));
  }
  return [...made, element("h4", {}, "Most frequent confusions"), confusionList(counts, size)];
}

function cellTitle(truth, predicted, number) {
  const [from, to] = [truth, predicted].map((label) => shorten(className(label), 40));
  return `${from} predicted as ${to}: ${number}`;
}

function cellButton(truth, predicted, number) {
  const title = cellTitle(truth, predicted, number);
  const onclick = () => selectGroup({ kind: "cell", truth, predicted });
  return element("button", { type: "button", "aria-label": title, title, onclick }, String(number));
}

function confusionTable(counts, size) {
  const readable = size <= MOST_CELLS_READ;
  const labels = [...Array(size).keys()];
  const head = (scope, letters) => (label) => {
    const title = readable ? labelName(label, letters) : [swatch(css(classHue(label)))];
    return element("th", { scope, title: shorten(className(label)) }, ...title);
  };
  const rows = labels.map((truth) => {
    const own = counts.subarray(truth * size, (truth + 1) * size);
    const total = own.reduce((sum, number) => sum + number, 0) || 1;
    const cells = labels.map((predicted) => {
      const number = own[predicted];
      const made = shaded(numberCell(), 0.92 * (number / total));
      if (readable && number) made.append(cellButton(truth, predicted, number));
      else made.title = cellTitle(truth, predicted, number);
      return made;
    });
    return row(head("row", 16)(truth), ...cells);
  });
  const heads = element("thead", {}, row(cell(), ...labels.map(head("col", 9))));
  const made = table(readable ? "matrix" : "matrix dense", "Confusion matrix", heads, rows);
  if (!readable) made.onclick = ({ target }) => selectCell(target.closest("tbody td"));
  return made;
}

function selectCell(made) {
  if (!made) return;
  selectGroup({ kind: "cell", truth: made.parentNode.rowIndex - 1, predicted: made.cellIndex - 1 });
}

function confusionList(counts, size) {
  const wrong = [];
  counts.forEach((number, at) => {
    const [truth, predicted] = [Math.floor(at / size), at % size];
    if (number && truth !== predicted) wrong.push({ truth, predicted, number });
  });
  if (wrong.length === 0) return note("None: every node is predicted right.");
  wrong.sort((a, b) => b.number - a.number);
  const rows = wrong.slice(0, MOST_CONFUSIONS).map(({ truth, predicted, number }) => row(
    cell(...labelName(truth, 24)),
    cell(...labelName(predicted, 24)),
    numberCell(cellButton(truth, predicted, number)),
  ));
  const head = tableHead(["true", "predicted"], ["nodes"]);
  return table("numbers", "Most frequent confusions", head, rows);
}

function labelParts({ parts, labels }) {
  const counts = valuesOf(labels);
  const rows = data.classes.map((_, label) => {
    const [right, extra, missed] = counts.subarray(3 * label, 3 * label + 3);
    const share = (whole) => (whole ? right / whole : null);
    const shown = (value) => (value === null ? "–" : value.toFixed(2));
    const f1 = share(right + 0.5 * (extra + missed));
    const onclick = () => selectGroup({ kind: "class", label });
    const traits = { type: "button", className: "node-link", onclick };
    return row(
      rowHead(element("button", traits, ...labelName(label, 18))),
      numberCell(right + missed),
      numberCell(shown(share(right + extra))),
      numberCell(shown(share(right + missed))),
      shaded(numberCell(shown(f1)), 0.85 * (f1 ?? 0)),
    );
  });
  const head = tableHead(["label"], ["nodes", "precision", "recall", "F1"]);
  const made = table("numbers", "Right and wrong per label", head, rows);
  const about = `${countedNodes(parts)}; each label on its own. A label selects its nodes.`;
  return [note(about), element("div", { className: "rolling" }, made)];
}
