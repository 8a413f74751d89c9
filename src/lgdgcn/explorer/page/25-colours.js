// Colours: Okabe-Ito, distinct for colour-blind readers; more of them get further shades.

const OKABE_ITO = [
  "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#000000",
];
// on these grounds a pale yellow, black or deep blue would vanish
const INSTEAD = {
  light: new Map([["#f0e442", "#cdb80a"], ["#000000", "#2f3640"]]),
  dark: new Map([["#0072b2", "#2a8fd4"], ["#000000", "#dfe4ea"]]),
};
// towards white, or black where negative: away from the ground first
const SHADES = {
  light: [0, -0.38, 0.4, -0.62, -0.2, 0.22, -0.5],
  dark: [0, 0.45, -0.3, 0.68, 0.22, -0.16, 0.56],
};
const GROUNDS = { light: [255, 255, 255], dark: [24, 28, 34] };
const FAINT = { light: [205, 208, 212], dark: [62, 69, 79] };
const UNKNOWN = { light: [140, 146, 154], dark: [132, 140, 150] };
const RAMPS = {
  confidence: { light: ["#d55e00", "#b9b6b0", "#0072b2"], dark: ["#ff8a3d", "#8d9199", "#4aa8ea"] },
  heat: {
    light: ["#faf9f6", "#f6d9b8", "#ee9c78", "#c9516f", "#74307a", "#241243"],
    dark: ["#1c2128", "#3b2a5a", "#843a7c", "#d4576c", "#f5a271", "#fdeecb"],
  },
};

function rgbOf(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

function mixed(from, to, share) {
  return from.map((part, i) => Math.round(part + share * (to[i] - part)));
}

function css(rgb, alpha = 1) {
  return `rgba(${rgb[0]}, ${rgb[1]}, ${rgb[2]}, ${alpha})`;
}

const darkSystem = matchMedia("(prefers-color-scheme: dark)");

function theme() {
  return state.theme ?? (darkSystem.matches ? "dark" : "light");
}

/** Colour number i as [red, green, blue]. */
function hue(i) {
  const hex = OKABE_ITO[i % OKABE_ITO.length];
  const base = rgbOf(INSTEAD[theme()].get(hex) ?? hex);
  const shades = SHADES[theme()];
  const shade = shades[Math.floor(i / OKABE_ITO.length) % shades.length];
  return mixed(base, shade > 0 ? [255, 255, 255] : [0, 0, 0], Math.abs(shade));
}

function classHue(label) {
  return label < data.classes.length ? hue(label) : UNKNOWN[theme()];
}

const madeRamps = new Map();

/** 256 colours of a ramp from low to high. */
function ramp(name) {
  const stops = RAMPS[name][theme()];
  if (!madeRamps.has(stops)) madeRamps.set(stops, rampThrough(stops.map(rgbOf)));
  return madeRamps.get(stops);
}

function rampThrough(stops) {
  return Array.from({ length: 256 }, (_, i) => {
    const place = (i / 255) * (stops.length - 1);
    const below = Math.min(Math.floor(place), stops.length - 2);
    return mixed(stops[below], stops[below + 1], place - below);
  });
}

/** Colour of the edges of a factor: grey where factors do not say why edges are there. */
function edgeHue(factor) {
  return data.unrouted ? UNKNOWN[theme()] : hue(factor);
}

/** The category that gives a node its colour: the first of its labels that is switched on. */
function shownLabel(labels) {
  if (labels.length === 0) labels = [data.classes.length];
  return labels.find((label) => !state.hiddenClasses.has(label)) ?? -1;
}

/** Colour of a node as the colouring has it now, or null where its category is switched off. */
function nodeHue(node) {
  if (state.colour === "confidence") {
    return ramp("confidence")[Math.round(255 * data.confidence[node])];
  }
  if (state.colour === "factor") {
    const factor = data.dominant[node];
    return state.hiddenFactors.has(factor) ? null : hue(factor);
  }
  const byTruth = state.colour === "class" && data.truth;
  const label = shownLabel(byTruth ? truthOf(node) : predictionOf(node));
  return label < 0 ? null : classHue(label);
}

/** The same as a text of CSS, faint where switched off. */
function nodeCss(node) {
  return css(nodeHue(node) ?? FAINT[theme()]);
}
