// The selected group: what classes and factors its nodes have.

const MOST_SHARES = 8;

function tally(nodes, keysOf) {
  const counts = new Map();
  for (const node of nodes) {
    for (const key of keysOf(node)) counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, MOST_SHARES);
}

/** The most frequent keys of nodes with a bar each. */
function shares(title, nodes, keysOf, nameOfKey, hueOfKey) {
  const rows = tally(nodes, keysOf).map(([key, number]) => row(
    rowHead(nameOfKey(key)),
    cell(bar(number / nodes.length, css(hueOfKey(key)))),
    numberCell(number.toLocaleString("en")),
  ));
  const made = table("bars", title, null, rows);
  made.caption.className = "";
  return made;
}

function groupCard(group) {
  const nodes = groupNodes();
  const card = element("article", { className: "card", id: "group-card" },
    cardHead(...groupTitle(group), `: ${count(nodes.length, "node")}`));
  if (nodes.length === 0) return card;
  const name = (label) => nameOf(className(label), 34);
  if (data.truth) card.append(shares("True classes", nodes, truthOf, name, classHue));
  if (data.predicted) {
    card.append(shares("Predicted classes", nodes, predictionOf, name, classHue));
  }
  const factorOf = (node) => [data.dominant[node]];
  const title = hasFactors ? "Deciding factors" : `Most frequent ${data.noun}`;
  card.append(shares(title, nodes, factorOf, (m) => element("span", {}, ...factorTitle(m)), hue));
  const links = nodes.map((node) => ({ node }));
  const sure = ({ node }) => (data.predicted ? percent(data.confidence[node]) : "");
  card.append(element("h4", {}, "Nodes"), nodeList(links, sure));
  return card;
}
