// What if: a node's prediction on the graph without the edges of one reason, and the seeds.

/** The range of a prediction's probability over the seeds, as a sentence. */
function overSeeds(node) {
  const { low, high } = data.without;
  if (!low) return note("One seed: how much this varies over seeds is not known.");
  const [from, to] = [low, high].map((of) => percent(of[node] / WHOLE_SHARE, 1));
  return note(`Over several seeds the prediction has ${from} to ${to}.`);
}

/** What is predicted without reason m. */
function predictedWithout(node, m) {
  const at = node * data.factors + m;
  const before = predictionOf(node);
  if (!data.without.predicted) {
    const kept = data.without.kept[at];
    const text = `${kept} of ${count(before.length, "label")} stay`;
    return kept < before.length ? tag("bad", text) : quiet("stays");
  }
  const after = data.without.predicted[at];
  return after === before[0] ? quiet("stays") : element("span", {}, ...labelName(after, 24));
}

function withoutFactors(node) {
  const rows = Array.from({ length: data.factors }, (_, m) => {
    const share = data.without.probability[node * data.factors + m] / WHOLE_SHARE;
    return row(rowHead(...factorName(m)), cell(predictedWithout(node, m)),
      numberCell(percent(share, 1)));
  });
  const head = tableHead(["without", "prediction"], ["its probability"]);
  const caption = `The prediction on the graph without the edges of each ${data.noun}`;
  return [element("h4", {}, `Without the edges of one ${data.noun}`), overSeeds(node),
    table("numbers without", caption, head, rows)];
}
