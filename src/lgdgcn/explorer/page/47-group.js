// A group of nodes: inside a lasso, in a cell of the confusion matrix, or with one label.

let groupMask = null;
let maskOf = null;

/** 1 for each node of the present group; null without a group. */
function groupMembers() {
  if (maskOf !== state.group) {
    maskOf = state.group;
    groupMask = maskOf && maskFor(maskOf);
  }
  return groupMask;
}

function maskFor(group) {
  const mask = new Uint8Array(data.nodes);
  if (group.kind === "lasso") {
    const corners = group.corners.map((corner) => corner / LASSO_STEP);
    for (const node of views[group.view].grid.inside(corners)) mask[node] = 1;
    return mask;
  }
  for (let i = 0; i < data.nodes; i++) mask[i] = belongs(group, i) ? 1 : 0;
  return mask;
}

function belongs(group, node) {
  if (group.kind === "cell") {
    const [truth, predicted] = [truthOf(node)[0], predictionOf(node)[0]];
    return inConfusion(node) && truth === group.truth && predicted === group.predicted;
  }
  return (data.truth ? truthOf(node) : predictionOf(node)).includes(group.label);
}

/** Whether the confusion matrix counts a node. */
function inConfusion(node) {
  const only = PARTS.indexOf(data.raw.confusion?.parts);
  return data.truth !== null && (only < 0 || data.part[node] === only);
}

function groupTitle(group) {
  if (group.kind === "lasso") return ["Lasso"];
  if (group.kind === "class") return [nameOf(className(group.label))];
  const [truth, predicted] = [className(group.truth), className(group.predicted)];
  return [nameOf(truth, 40), " predicted as ", nameOf(predicted, 40)];
}

function groupNodes() {
  const nodes = [];
  groupMembers().forEach((member, node) => {
    if (member) nodes.push(node);
  });
  return nodes;
}

function selectGroup(group) {
  change({ group, node: -1, edge: -1, panel: "details" });
  const found = groupNodes().length;
  announce(`${count(found, "node")} in the group`);
}
