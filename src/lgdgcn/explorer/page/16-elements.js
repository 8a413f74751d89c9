// The few kinds of elements that the page is made of.

function quiet(...children) {
  return element("span", { className: "quiet" }, ...children);
}

function note(...children) {
  return element("p", { className: "quiet" }, ...children);
}

function tag(kind, ...children) {
  return element("span", { className: `tag ${kind}` }, ...children);
}

function plainButton(title, onclick) {
  return element("button", { type: "button", className: "plain", onclick }, title);
}

function row(...cells) {
  return element("tr", {}, ...cells);
}

function rowHead(...children) {
  return element("th", { scope: "row" }, ...children);
}

function cell(...children) {
  return element("td", {}, ...children);
}

function numberCell(...children) {
  return element("td", { className: "number" }, ...children);
}

/** Head of a table; columns of numbers are aligned like them. */
function tableHead(texts, numbers) {
  const titled = (className) => (title) => element("th", { scope: "col", className }, title);
  return element("thead", {}, row(...texts.map(titled("")), ...numbers.map(titled("number"))));
}

/** A table; its caption is for those who cannot see where it stands. */
function table(className, caption, head, rows) {
  const title = element("caption", { className: "unseen" }, caption);
  return element("table", { className }, title, head, element("tbody", {}, ...rows));
}

function swatch(colour, shape = "dot") {
  const mark = element("span", { className: `swatch ${shape}`, "aria-hidden": "true" });
  mark.style.backgroundColor = colour;
  return mark;
}

/** The colour of a class, then its name. */
function labelName(label, letters) {
  return [swatch(css(classHue(label))), nameOf(className(label), letters)];
}

/** What factors are called in this run: Factor, Reason or Type. */
function nounOf() {
  return data.noun[0].toUpperCase() + data.noun.slice(1);
}

/** A factor by its name, its number, or both; the name of a type says all. */
function factorTitle(m, letters = 32) {
  const name = data.factorNames[m];
  if (!name) return [`${nounOf()} ${m + 1}`];
  return data.noun === "type" ? [nameOf(name, letters)] : [`${nounOf()} ${m + 1}: `, nameOf(name, letters)];
}

function factorName(m) {
  return [swatch(css(hue(m)), "line"), element("span", { className: "name" }, ...factorTitle(m))];
}

/** A bar of a ramp of colours with what its ends mean. */
function rampBar(name, ...ends) {
  const bar = element("canvas", { className: "ramp", width: 256, height: 1, ariaHidden: "true" });
  const context = bar.getContext("2d");
  ramp(name).forEach((colour, i) => {
    context.fillStyle = css(colour);
    context.fillRect(i, 0, 1, 1);
  });
  const below = ends.map((end) => element("span", {}, end));
  return [bar, element("div", { className: "ramp-ends quiet" }, ...below)];
}
