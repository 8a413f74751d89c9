// The slider that hides weakly attributed edges, below a histogram of their strength.

const MOST_BINS = 48;
const STEPS = 200; // from one end of the slider to the other, with arrow keys

function buildStrength() {
  const slider = byId("strength");
  [slider.min, slider.max] = strengthRange;
  slider.step = Math.max(1, Math.floor((strengthRange[1] - strengthRange[0]) / STEPS));
  slider.disabled = strengthRange[0] === strengthRange[1];
  slider.addEventListener("input", () => change({ strength: Number(slider.value) }));
}

/** A share of an edge, with more digits where all are much alike. */
function sharePercent(share) {
  return percent(share, strengthRange[1] - strengthRange[0] < 0.15 * WHOLE_SHARE ? 2 : 1);
}

function showStrength() {
  const slider = byId("strength");
  const text = sharePercent(state.strength / WHOLE_SHARE);
  slider.value = state.strength;
  slider.setAttribute("aria-valuetext", text);
  byId("strength-value").textContent = text;
  drawHistogram();
}

function showEdgeCount() {
  const shown = shownEdges.toLocaleString("en");
  byId("edge-count").textContent = `${shown} of ${count(data.edges, "edge")} shown`;
}

/** Edges by strength, in the parts of the factors; heights are roots, so that few are seen too. */
function drawHistogram() {
  const canvas = byId("strength-histogram");
  const [low, high] = strengthRange;
  const bins = Math.min(high - low + 1, MOST_BINS);
  const binOf = (share) => Math.floor(((share - low) / (high - low + 1)) * bins);
  const counts = Array.from({ length: bins }, () => new Uint32Array(data.factors));
  for (let e = 0; e < data.edges; e++) counts[binOf(data.edgeShare[e])][data.edgeFactor[e]]++;
  const totals = counts.map((bin) => bin.reduce((sum, number) => sum + number, 0));
  const highest = Math.max(1, ...totals);
  [canvas.width, canvas.height] = [480, 88];
  const context = canvas.getContext("2d");
  const wide = canvas.width / bins;
  counts.forEach((bin, i) => {
    const height = canvas.height * Math.sqrt(totals[i] / highest);
    let top = canvas.height;
    bin.forEach((number, m) => {
      if (number === 0) return;
      const tall = (height * number) / totals[i];
      const hidden = i < binOf(state.strength) || state.hiddenFactors.has(m);
      context.fillStyle = hidden ? css(FAINT[theme()], 0.7) : css(edgeHue(m));
      context.fillRect(i * wide + 0.5, top - tall, wide - 1, tall);
      top -= tall;
    });
  });
}

onChange(["strength", "hiddenFactors", "theme"], showStrength);
