// Classes of the factors, where a model has them: their labels, names and colours.

const COLOURS = OKABE_ITO.length * SHADES.light.length; // then they repeat
const labelsByClass = labelsOfClasses();
const classColours = labelsByClass.map(coloursOfClasses);

/** The labels that class k of factor m is, at [m][k]; mostly one or none. */
function labelsOfClasses() {
  const { channels } = data.raw;
  const labels = Array.from({ length: data.factorClasses ? data.factors : 0 }, () =>
    Array.from({ length: channels }, () => []));
  data.factorClasses?.ofLabels.forEach((number, label) => {
    if (number >= 0) labels[Math.floor(number / channels)][number % channels].push(label);
  });
  return labels;
}

/** Numbers of colours: a class that is a label has the label's, others what no label has. */
function coloursOfClasses(labels) {
  const taken = new Set(labels.flat().map((label) => label % COLOURS));
  let free = data.classes.length < COLOURS / 2 ? data.classes.length : 0; // or none here has
  return labels.map(([label]) => {
    if (label !== undefined) return label;
    while (taken.has(free)) free++;
    return free++;
  });
}

/** Whether each map has the colours of its own factor's classes now. */
function mapsShowClasses() {
  const byLabel = state.colour === "class" || state.colour === "predicted";
  return data.factorClasses !== null && state.mapClasses && byLabel;
}

/** The most probable class of a node in factor m. */
function classIn(m, node) {
  return data.factorClasses.ofNodes[node * data.factors + m];
}

/** The colours of factor m's classes, as [red, green, blue] each. */
function classHues(m) {
  return classColours[m].map(hue);
}

/** The colour of class k of factor m, then its name: that of its label, or a number. */
function factorClassName(m, k, letters) {
  const names = labelsByClass[m][k].map(className);
  const name = names.length ? names.join(", ") : `class ${k + 1}`;
  return [swatch(css(hue(classColours[m][k]))), nameOf(name, letters)];
}

/** CSS colour of a node in a view, faint where switched off. */
function nodeCssIn(view, node) {
  if (view.index === 0 || !mapsShowClasses() || !nodeHue(node)) return nodeCss(node);
  const m = view.index - 1;
  return css(hue(classColours[m][classIn(m, node)]));
}
