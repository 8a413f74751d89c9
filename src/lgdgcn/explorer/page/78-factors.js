// What every factor is about: a name, three lines and whether other seeds find it.

function factorCard(m) {
  const { lines, stability, stable } = data.about[m];
  let edges = 0;
  for (const factor of data.edgeFactor) if (factor === m) edges++;
  const share = `${count(edges, "edge")}, ${percent(edges / Math.max(data.edges, 1))}`;
  const note = element("p", { className: "tags" }, tag(stable === false ? "bad" : "", stability));
  return element("article", { className: "card factor-card" },
    element("h3", {}, ...factorName(m)), quiet(share), note,
    ...lines.map((line) => element("p", {}, nameOf(line, 500))));
}

function buildFactors(panel) {
  panel.append(...data.about.map((_, m) => factorCard(m)));
}
