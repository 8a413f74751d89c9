// The selected edge: its reasons with what speaks for each, and what its ends have in common.

const MOST_TRAITS = 12;

/** Expected number of edges of factor m at a node. */
function activityOf(node, m) {
  const sum = edgesOf(node).reduce((all, [, edge]) => all + data.edgeShares[edge * data.factors + m], 0);
  return sum / WHOLE_SHARE;
}

/** Nodes that both ends are linked with, those of few edges first: they say more. */
function commonNeighbours(first, second) {
  const around = new Set(edgesOf(first).map(([other]) => other));
  const both = edgesOf(second).map(([other]) => other).filter((other) => around.has(other));
  const degree = (node) => edgesOf(node).length;
  return [...new Set(both)].sort((a, b) => degree(a) - degree(b) || a - b);
}

function traitsOf(node) {
  const { start, of } = data.traits;
  return of.subarray(start[node], start[node + 1]);
}

let traitCounts = null;

/** How many nodes have each trait. */
function nodesWithTrait(trait) {
  if (!traitCounts) {
    traitCounts = new Uint32Array(data.traits.names.length);
    for (const one of data.traits.of) traitCounts[one]++;
  }
  return traitCounts[trait];
}

/** What both ends have, the rarest first. */
function sharedTraits(first, second) {
  if (!data.traits) return [];
  const own = new Set(traitsOf(first));
  const both = [...traitsOf(second)].filter((trait) => own.has(trait));
  return both.sort((a, b) => nodesWithTrait(a) - nodesWithTrait(b)).slice(0, MOST_TRAITS);
}

/** What speaks for factor m as the reason of an edge, as text. */
function evidenceFor(ends, m) {
  const [first, second] = ends.map((end) => activityOf(end, m).toFixed(1));
  const said = [`edges of the ends in it: ${first} and ${second}`];
  if (data.factorClasses) {
    const [one, other] = ends.map((end) => classIn(m, end));
    const named = labelsByClass[m][one].map(className).join(", ") || `class ${one + 1}`;
    said.push(one === other ? `both are ${shorten(named, 40)} in it` : "different classes in it");
  }
  const about = data.about[m];
  if (about && about.stable !== null) said.push(about.stability);
  return said.join(" · ");
}

/** The range of a probability over the seeds, where there are several. */
function rangeOf(edge, m) {
  if (!data.edgeLow) return null;
  const [low, high] = [data.edgeLow, data.edgeHigh].map((of) => of[edge * data.factors + m] / 255);
  return quiet(` ${percent(low)} to ${percent(high)}`);
}

function reasonRows(edge, ends) {
  const share = (m) => data.edgeShares[edge * data.factors + m] / WHOLE_SHARE;
  const order = [...Array(data.factors).keys()].sort((a, b) => share(b) - share(a) || a - b);
  return order.flatMap((m) => {
    const title = rowHead(...factorName(m));
    if (data.known?.[edge * data.factors + m]) title.append(tag("true", "given"));
    const bars = cell(bar(share(m), css(edgeHue(m))));
    const numbers = numberCell(sharePercent(share(m)), rangeOf(edge, m));
    const evidence = element("td", { colSpan: 3 }, quiet(evidenceFor(ends, m)));
    return [row(title, bars, numbers), element("tr", { className: "about" }, evidence)];
  });
}

function edgeCard(edge) {
  const ends = [data.ends[edge], data.ends[data.edges + edge]];
  const common = commonNeighbours(...ends);
  const card = element("article", { className: "card", id: "edge-card" },
    cardHead(quiet("edge "), nameOf(data.ids[ends[0]], 30), " – ", nameOf(data.ids[ends[1]], 30)));
  const tags = [tag("", count(common.length, "common neighbour"))];
  if (data.unknown?.[edge]) tags.push(tag("bad", "unknown: little of it is explained"));
  card.append(element("p", { className: "tags" }, ...tags),
    table("bars reasons", "Reasons by probability", null, reasonRows(edge, ends)));
  if (data.edgeLow) card.append(note(`Ranges are over ${count(data.raw.fits, "fit")}.`));
  else if (data.raw.fits === 1 && data.about.length) card.append(note(data.about[0].stability));
  card.append(element("h4", {}, "Its ends"), nodeList(ends.map((node) => ({ node })),
    ({ node }) => count(edgesOf(node).length, "neighbour")));
  if (common.length) {
    const degree = ({ node }) => count(edgesOf(node).length, "neighbour");
    card.append(element("h4", {}, "Common neighbours"),
      nodeList(common.map((node) => ({ node })), degree));
  }
  const shared = sharedTraits(...ends);
  if (data.traits) card.append(element("h4", {}, "Both have"));
  if (shared.length) {
    card.append(element("ul", { className: "node-links" }, ...shared.map((trait) =>
      element("li", {}, tag("", nameOf(data.traits.names[trait], 40),
        quiet(`${nodesWithTrait(trait).toLocaleString("en")} nodes`))))));
  } else if (data.traits) {
    card.append(note("Nothing that is known."));
  }
  return card;
}
