// The selected node: its prediction, its neighbours by factor, and its latent neighbours.

function nodeCard(node) {
  const id = data.ids[node];
  const card = element("article", { className: "card", id: "node-card" },
    cardHead(quiet("node "), nameOf(id)), nodeTags(node));
  if (id.length > SHOWN_LETTERS) {
    const whole = element("p", { className: "whole" }, nameOf(id, MOST_LETTERS));
    card.append(element("details", {}, element("summary", {}, "whole id"), whole));
  }
  for (const { name, values } of data.texts) {
    if (!values[node].trim()) continue;
    const text = nameOf(values[node], MOST_LETTERS);
    card.append(element("p", { className: "whole node-text" }, quiet(nameOf(name, 60)), " ", text));
  }
  if (data.predicted) card.append(probabilities(node));
  if (data.truth) {
    const what = data.raw.multiLabel ? "true labels" : "true class";
    card.append(element("p", { className: "truth" }, labelled(what, truthOf(node))));
  }
  const by = data.unrouted ? "factor of the highest share" : `explaining ${data.noun}`;
  if (data.without) card.append(...withoutFactors(node));
  card.append(element("h4", {}, `Neighbours, by ${by}`), ...neighbourLists(node));
  if (data.raw.latent) {
    card.append(element("h4", {}, "Alike in one factor, but no neighbours"), ...latentLists(node));
  }
  return card;
}

function nodeTags(node) {
  const factor = data.dominant[node];
  const tags = [tag("", count(edgesOf(node).length, "neighbour"))];
  if (data.predicted) tags.unshift(verdict(node), tag("", PARTS[data.part[node]]));
  if (hasFactors) {
    tags.push(tag("", swatch(css(hue(factor)), "line"), `decided by factor ${factor + 1}`));
  }
  return element("p", { className: "tags" }, ...tags);
}

function verdict(node) {
  const truth = data.truth ? truthOf(node) : [];
  if (truth.length === 0) return tag("", "no label");
  const predicted = new Set(predictionOf(node));
  const hits = truth.filter((label) => predicted.has(label)).length;
  const right = hits === truth.length && hits === predicted.size;
  if (data.raw.multiLabel && !right) return tag("bad", `${hits} of ${truth.length} labels right`);
  return tag(right ? "good" : "bad", right ? "right" : "wrong");
}

function probabilities(node) {
  const truth = new Set(data.truth ? truthOf(node) : []);
  const predicted = new Set(predictionOf(node));
  const rows = [];
  for (let j = node * data.topWidth; j < (node + 1) * data.topWidth; j++) {
    const [label, share] = [data.top[j], data.topProbability[j]];
    if (label < 0) continue;
    const title = rowHead(nameOf(className(label), 34));
    if (predicted.has(label)) title.append(tag("", "predicted"));
    if (truth.has(label)) title.append(tag("true", "true"));
    rows.push(row(title, cell(bar(share, css(classHue(label)))), numberCell(percent(share, 1))));
  }
  return table("bars", "Classes by probability", null, rows);
}

function factorHeading(m, said) {
  return element("h5", {}, ...factorName(m), quiet(said));
}

function neighbourLists(node) {
  const parts = [];
  neighboursByFactor(node).forEach((group, m) => {
    if (group.length === 0) return;
    parts.push(factorHeading(m, count(group.length, "neighbour")));
    parts.push(nodeList(group, ({ share }) => sharePercent(share)));
  });
  return parts.length ? parts : [note("This node has no neighbours.")];
}

function latentLists(node) {
  const parts = [];
  for (let m = 0; m < data.factors; m++) {
    const links = latentNeighbours(node, m);
    if (links.length === 0) continue;
    parts.push(factorHeading(m, "distance in its units"));
    parts.push(nodeList(links, ({ distance }) => figure(distance < 5e-5 ? 0 : distance)));
  }
  return parts.length ? parts : [note("There are none.")];
}
