// Search: nodes by id or by their text, classes by name.

const MOST_MATCHES = 12;
const searchKeys = data.ids.map((id) => id.slice(0, MOST_LETTERS).toLowerCase());
const textKeys = data.ids.map((id, node) =>
  data.texts.map(({ values }) => values[node].toLowerCase()).join("\n"));
const classKeys = data.classes.map((title) => title.slice(0, MOST_LETTERS).toLowerCase());
let matches = [];
let active = -1;

/** How well a key fits: 0 the same, 1 begins so, 2 contains it, 3 not at all. */
function misfit(key, wanted) {
  if (key === wanted) return 0;
  const at = key.indexOf(wanted);
  return at === 0 ? 1 : at > 0 ? 2 : 3;
}

function best(keys, wanted, most) {
  const found = [[], [], []];
  for (let i = 0; i < keys.length && found[0].length < most; i++) {
    const rank = misfit(keys[i], wanted);
    if (rank < 3 && found[rank].length < most) found[rank].push(i);
  }
  return found.flat().slice(0, most);
}

function findMatches(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const byText = data.texts.length ? best(textKeys, wanted, MOST_MATCHES) : [];
  const nodes = [...new Set([...best(searchKeys, wanted, MOST_MATCHES), ...byText])];
  const labels = best(classKeys, wanted, 4);
  const found = nodes.map((node) => ({ node }));
  const exact = nodes.length > 0 && searchKeys[nodes[0]] === wanted;
  found.splice(exact ? 1 : 0, 0, ...labels.map((label) => ({ label })));
  return found.slice(0, MOST_MATCHES);
}

function matchText({ node, label }) {
  if (label !== undefined) return [...labelName(label, 48), quiet("all nodes of this class")];
  const labels = predictionOf(node);
  const predicted = quiet(labels.length ? nameOf(className(labels[0]), 24) : "");
  return [swatch(nodeCss(node)), nameOf(data.ids[node], 48), predicted];
}

function showMatches() {
  const input = byId("search");
  const list = byId("matches");
  const typed = input.value.trim() !== "";
  list.hidden = !typed;
  input.setAttribute("aria-expanded", String(typed));
  input.setAttribute("aria-activedescendant", active >= 0 ? `match-${active}` : "");
  list.replaceChildren(...matches.map((match, i) => {
    const traits = { id: `match-${i}`, role: "option", "aria-selected": String(i === active) };
    const option = element("li", traits, ...matchText(match));
    option.addEventListener("pointerdown", (event) => {
      event.preventDefault(); // the field keeps the focus
      take(match);
    });
    return option;
  }));
  if (typed && matches.length === 0) list.append(element("li", {}, "Nothing has this name"));
}

function closeMatches() {
  byId("matches").hidden = true;
  byId("search").setAttribute("aria-expanded", "false");
  byId("search").setAttribute("aria-activedescendant", "");
}

function take({ node, label }) {
  closeMatches();
  if (label !== undefined) selectGroup({ kind: "class", label });
  else select(node);
}

function buildSearch() {
  const input = byId("search");
  input.addEventListener("input", () => {
    matches = findMatches(input.value);
    active = matches.length ? 0 : -1;
    showMatches();
  });
  input.addEventListener("focus", () => {
    if (input.value.trim()) showMatches();
  });
  input.addEventListener("blur", closeMatches);
  input.addEventListener("keydown", (event) => {
    const step = new Map([["ArrowDown", 1], ["ArrowUp", -1]]).get(event.key);
    if (step && matches.length) {
      active = (active + step + matches.length) % matches.length;
      showMatches();
    } else if (event.key === "Enter" && matches[active]) {
      take(matches[active]);
    } else if (event.key === "Escape" && !byId("matches").hidden) {
      closeMatches();
      event.stopPropagation();
    } else {
      return;
    }
    event.preventDefault();
  });
}
