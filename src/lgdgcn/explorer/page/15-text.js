// Elements and text. Whatever comes from the data becomes text, never markup.

const SHOWN_LETTERS = 80;
const MOST_LETTERS = 2000;

/** An element with properties (or attributes) and children; strings become text. */
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else if (value !== null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function byId(id) {
  return document.getElementById(id);
}

function shorten(text, letters = SHOWN_LETTERS) {
  if (text.length <= letters) return text;
  return `${text.slice(0, letters - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** A name from the data: cut, and kept apart from the direction of the text around it. */
function nameOf(text, letters = SHOWN_LETTERS) {
  const shown = element("bdi", { className: "name" }, shorten(text, letters));
  if (text.length > letters) shown.title = shorten(text, MOST_LETTERS);
  return shown;
}

function className(label) {
  return label < data.classes.length ? data.classes[label] : "no label";
}

/** A recorded name such as val_micro_f1 as words. */
function readable(name) {
  const words = name.replace(/^val_/, "validation ").replace(/m([ia])cro_f1/, "M$1cro-F1");
  return words.replaceAll("_", " ");
}

function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

function percent(share, digits = 0) {
  return `${(100 * share).toFixed(digits)} %`;
}

/** A number to read: four significant digits at most, a dash for none. */
function figure(number) {
  if (number === null || number === undefined || Number.isNaN(number)) return "–";
  if (Number.isInteger(number)) return String(number);
  const size = Math.abs(number);
  if (size >= 1e5 || size < 5e-5) return number.toExponential(1);
  return number.toFixed(size >= 100 ? 1 : size >= 1e-3 ? 3 : 4);
}

function announce(text) {
  byId("announcement").textContent = text;
}

/** Run an action once in the next frame however often it is asked for. */
function oncePerFrame(action) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      action();
    });
  };
}
