// What the painters draw: the colour of every node and edge under the present filters.

const nodeColours = new Uint8Array(4 * data.nodes);
const mapColours = labelsByClass.map(() => new Uint8Array(4 * data.nodes)); // by factor
const vivid = new Uint8Array(data.nodes).fill(1); // neither switched off nor outside the group
const nodeOrder = new Uint32Array(data.nodes);
const edgeColours = new Uint8Array(8 * data.edges); // of both ends, for drawing as lines
const edgeOrder = edgesByStrength(); // the strongest come last, on top
const edgeOpacity = edgeOpacities();
const shuffled = shuffledNodes(); // so that no class covers the others
let shownEdges = 0;

function isVivid(node) {
  return vivid[node] === 1;
}

function shuffledNodes() {
  const order = Uint32Array.from({ length: data.nodes }, (_, i) => i);
  let random = 1;
  for (let i = data.nodes - 1; i > 0; i--) {
    random = (Math.imul(random, 1664525) + 1013904223) >>> 0;
    const other = random % (i + 1);
    [order[i], order[other]] = [order[other], order[i]];
  }
  return order;
}

function edgesByStrength() {
  const order = Uint32Array.from({ length: data.edges }, (_, e) => e);
  return order.sort((a, b) => data.edgeShare[a] - data.edgeShare[b] || a - b);
}

/** x, y, x, y of each edge, in the order of drawing. */
function edgeEnds() {
  const ends = new Float32Array(4 * data.edges);
  edgeOrder.forEach((edge, at) => {
    const [from, to] = [data.ends[edge], data.ends[data.edges + edge]];
    ends[4 * at] = data.position[2 * from];
    ends[4 * at + 1] = data.position[2 * from + 1];
    ends[4 * at + 2] = data.position[2 * to];
    ends[4 * at + 3] = data.position[2 * to + 1];
  });
  return ends;
}

function edgeWidth(view) {
  const crowd = Math.min(Math.max(1.7 - 0.25 * Math.log10(1 + data.edges / 500), 0.9), 1.7);
  return (view.index === state.main ? crowd : 0.7) * Math.min(view.camera.zoom ** 0.25, 2);
}

function colourNodes() {
  const faint = FAINT[theme()];
  const members = groupMembers();
  for (let i = 0; i < data.nodes; i++) {
    const own = members && !members[i] ? null : nodeHue(i);
    vivid[i] = own ? 1 : 0;
    nodeColours.set(own ?? faint, 4 * i);
    nodeColours[4 * i + 3] = own ? 255 : 110;
  }
  let at = 0;
  for (const wanted of [0, 1]) {
    for (const node of shuffled) if (vivid[node] === wanted) nodeOrder[at++] = node;
  }
  if (mapsShowClasses()) mapColours.forEach(colourMap);
}

/** Vivid nodes in the colours of factor m's classes, all others as in the graph. */
function colourMap(colours, m) {
  const hues = classHues(m);
  colours.set(nodeColours);
  for (let i = 0; i < data.nodes; i++) if (vivid[i]) colours.set(hues[classIn(m, i)], 4 * i);
}

/** The colours of the nodes in each view. */
function coloursByView() {
  const own = mapsShowClasses() ? mapColours : [];
  return views.map((view) => own[view.index - 1] ?? nodeColours);
}

function isShown(edge) {
  return data.edgeShare[edge] >= state.strength && !state.hiddenFactors.has(data.edgeFactor[edge]);
}

/** Opacity of each edge: more if stronger than others, less if long where there are many. */
function edgeOpacities() {
  const least = Math.min(Math.max(20 / Math.sqrt(data.edges + 1), 0.3), 1);
  const most = Math.min(Math.max(12000 / Math.sqrt(data.edges + 1), 60), 215);
  const weaker = new Float64Array(WHOLE_SHARE + 2); // share of edges below each strength
  for (const share of data.edgeShare) weaker[share + 1] += 1 / data.edges;
  for (let s = 0; s <= WHOLE_SHARE; s++) weaker[s + 1] += weaker[s];
  const ends = edgeEnds();
  return Float32Array.from(edgeOrder, (edge, at) => {
    const share = data.edgeShare[edge];
    const length = Math.hypot(ends[4 * at] - ends[4 * at + 2], ends[4 * at + 1] - ends[4 * at + 3]);
    const strength = 0.5 * (weaker[share] + weaker[share + 1]);
    return most * (0.45 + 0.55 * strength) * Math.min(Math.max(0.3 / length, least), 1);
  });
}

function colourEdges() {
  const hues = Array.from({ length: data.factors }, (_, m) => edgeHue(m));
  shownEdges = 0;
  edgeOrder.forEach((edge, at) => {
    let alpha = 0;
    if (isShown(edge)) {
      shownEdges++;
      alpha = edgeOpacity[at];
      if (!vivid[data.ends[edge]] || !vivid[data.ends[data.edges + edge]]) alpha *= 0.12;
    }
    const grey = data.unknown?.[edge];
    const [red, green, blue] = grey ? UNKNOWN[theme()] : hues[data.edgeFactor[edge]];
    for (let end = 8 * at; end < 8 * at + 8; end += 4) {
      edgeColours[end] = red;
      edgeColours[end + 1] = green;
      edgeColours[end + 2] = blue;
      edgeColours[end + 3] = alpha;
    }
  });
}
