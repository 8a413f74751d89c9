"use strict";

// The data of the page: typed arrays, and what follows from them.

const ARRAY_TYPES = new Map([
  ["u8", Uint8Array],
  ["u16", Uint16Array],
  ["u32", Uint32Array],
  ["i32", Int32Array],
  ["f32", Float32Array],
]);

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const letters = atob(base64);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

/** The values of an encoded array, row by row; null stays null. */
function valuesOf(encoded) {
  if (!encoded) return null;
  const bytes = bytesOf(encoded.data);
  const Type = ARRAY_TYPES.get(encoded.type);
  return new Type(bytes.buffer, bytes.byteOffset, bytes.length / Type.BYTES_PER_ELEMENT);
}

function widthOf(encoded) {
  return encoded ? encoded.shape[1] : 0;
}

const WHOLE_SHARE = 65535; // of an edge, that one factor explains alone

/** Edges of each node: those of node i are at[start[i]] … at[start[i + 1] - 1]. */
function incidence(ends, edges, nodes) {
  const start = new Uint32Array(nodes + 1);
  for (let e = 0; e < 2 * edges; e++) start[ends[e] + 1]++;
  for (let i = 0; i < nodes; i++) start[i + 1] += start[i];
  const next = start.slice();
  const at = new Uint32Array(2 * edges);
  for (let e = 0; e < edges; e++) {
    at[next[ends[e]]++] = e;
    at[next[ends[edges + e]]++] = e;
  }
  return { start, at };
}

/** The factor with the highest share of each edge, and that share of WHOLE_SHARE. */
function strongest(shares, edges, factors) {
  const factor = new Uint8Array(edges);
  const share = new Uint16Array(edges);
  for (let e = 0; e < edges; e++) {
    for (let m = 0; m < factors; m++) {
      if (shares[e * factors + m] > share[e]) {
        share[e] = shares[e * factors + m];
        factor[e] = m;
      }
    }
  }
  return { factor, share };
}

function readData() {
  const raw = JSON.parse(document.getElementById("data").textContent);
  const edgeCount = raw.edges.shape[1];
  const ends = valuesOf(raw.edges);
  const shares = valuesOf(raw.edgeFactors);
  const { factor, share } = strongest(shares, edgeCount, raw.factors);
  let latent = null; // large, and needed only once a node is selected
  return {
    raw,
    nodes: raw.nodes,
    factors: raw.factors,
    ids: raw.ids,
    texts: raw.texts ?? [], // columns of free text, { name, values }
    classes: raw.classes,
    edges: edgeCount,
    ends,
    edgeShares: shares, // of WHOLE_SHARE, all factors of each edge
    edgeFactor: factor,
    edgeShare: share,
    unknown: valuesOf(raw.unknown), // 1 for each edge that nothing explains, where that is said
    known: valuesOf(raw.known), // 1 for each given type of each edge, where types were given
    edgeLow: valuesOf(raw.edgeRange?.low), // over seeds, of 255
    edgeHigh: valuesOf(raw.edgeRange?.high),
    noun: raw.noun ?? "factor",
    factorNames: raw.factorNames ?? [],
    about: raw.about ?? [],
    traits: raw.traits && {
      names: raw.traits.names,
      start: valuesOf(raw.traits.start),
      of: valuesOf(raw.traits.of),
    },
    without: raw.without && {
      predicted: valuesOf(raw.without.predicted),
      kept: valuesOf(raw.without.kept),
      probability: valuesOf(raw.without.probability),
      low: valuesOf(raw.without.low),
      high: valuesOf(raw.without.high),
    },
    unrouted: raw.unrouted, // a sentence where factors do not say why edges are there
    incidence: incidence(ends, edgeCount, raw.nodes),
    truth: valuesOf(raw.truth),
    truthWidth: widthOf(raw.truth),
    predicted: valuesOf(raw.predicted),
    predictedWidth: widthOf(raw.predicted),
    top: valuesOf(raw.top),
    topProbability: valuesOf(raw.topProbability),
    topWidth: widthOf(raw.top),
    confidence: valuesOf(raw.confidence),
    dominant: valuesOf(raw.dominant),
    factorClasses: raw.factorClasses && {
      ofNodes: valuesOf(raw.factorClasses.ofNodes),
      ofLabels: valuesOf(raw.factorClasses.ofLabels),
    },
    part: valuesOf(raw.part),
    position: valuesOf(raw.position),
    maps: valuesOf(raw.maps),
    viewCount: raw.maps ? raw.factors + 1 : 1,
    latent() {
      latent ??= {
        width: raw.latent.neighbours.shape[2],
        neighbours: valuesOf(raw.latent.neighbours),
        distance: valuesOf(raw.latent.distance),
      };
      return latent;
    },
  };
}

const data = readData();
const hasFactors = data.raw.channels > 0; // the reasons of edges are the factors of the model
const PARTS = ["no part", "train", "validation", "test"];

function labelsIn(values, width, node) {
  const labels = [];
  for (let j = 0; j < width; j++) {
    const label = values[node * width + j];
    if (label >= 0) labels.push(label);
  }
  return labels.sort((a, b) => a - b);
}

function truthOf(node) {
  return labelsIn(data.truth, data.truthWidth, node);
}

function predictionOf(node) {
  if (!data.predicted) return []; // nothing predicts labels
  return labelsIn(data.predicted, data.predictedWidth, node);
}

/** [neighbour, edge] of each edge of a node. */
function edgesOf(node) {
  const { start, at } = data.incidence;
  const found = [];
  for (let j = start[node]; j < start[node + 1]; j++) {
    const first = data.ends[at[j]];
    found.push([first === node ? data.ends[data.edges + at[j]] : first, at[j]]);
  }
  return found;
}

/** Neighbours in the graph by the factor that explains the edge, strongest first. */
function neighboursByFactor(node) {
  const groups = Array.from({ length: data.factors }, () => []);
  for (const [neighbour, edge] of edgesOf(node)) {
    const share = data.edgeShare[edge] / WHOLE_SHARE;
    groups[data.edgeFactor[edge]].push({ node: neighbour, share, edge });
  }
  for (const group of groups) group.sort((a, b) => b.share - a.share || a.node - b.node);
  return groups;
}

/** Nearest nodes in the space of one factor that are no neighbours in the graph. */
function latentNeighbours(node, factor) {
  if (!data.raw.latent) return [];
  const { width, neighbours, distance } = data.latent();
  const begin = (node * data.factors + factor) * width;
  const found = [];
  for (let j = begin; j < begin + width; j++) {
    if (neighbours[j] >= 0) found.push({ node: neighbours[j], distance: distance[j] });
  }
  return found;
}
