// One view: the graph or the map of a factor, its place on the stage and its camera.

const HEADING = 20; // pixels at the top that a view keeps free at zoom 1

class View {
  /**
   * @param {number} index 0 for the graph, m for the map of factor m
   * @param {Float32Array} places x, y of every node in [-1, 1]
   */
  constructor(index, places) {
    this.index = index;
    this.places = places;
    this.box = { x: 0, y: 0, width: 1, height: 1 }; // on the stage, in CSS pixels
    this.title = index === 0 ? "Graph" : `Factor ${index}`;
    this.cell = this.makeCell();
  }

  get grid() {
    this.madeGrid ??= new Grid(this.places);
    return this.madeGrid;
  }

  get camera() {
    return state.cameras[this.index];
  }

  /** Pixels per unit; at zoom 1 the square [-1, 1] fits below the heading, with a margin. */
  get scale() {
    return 0.47 * Math.min(this.box.width, this.box.height - HEADING) * this.camera.zoom;
  }

  /** Where the camera looks at, in pixels of the stage. */
  get middle() {
    return [this.box.x + this.box.width / 2, this.box.y + (this.box.height + HEADING) / 2];
  }

  /** Radius of a node in pixels: smaller for more of them, growing slowly with the zoom. */
  get radius() {
    const room = Math.min(this.box.width, this.box.height) / Math.sqrt(data.nodes);
    const small = this.index === state.main ? 1.9 : 1.2;
    return Math.min(Math.max(0.26 * room, small), 6) * Math.min(this.camera.zoom ** 0.35, 2.6);
  }

  /** Coordinates to the stage, in pixels. */
  stagePlace(x, y) {
    const { camera, scale } = this;
    const [left, top] = this.middle;
    return [left + (x - camera.x) * scale, top - (y - camera.y) * scale];
  }

  place(node) {
    return this.stagePlace(this.places[2 * node], this.places[2 * node + 1]);
  }

  /** Stage to the coordinates of the nodes. */
  coordinates(left, top) {
    const { x, y } = this.camera;
    const [middle, level] = this.middle;
    return [x + (left - middle) / this.scale, y - (top - level) / this.scale];
  }

  nodeAt(left, top) {
    const reach = Math.max(this.radius + 4, 9);
    return this.grid.nearest(...this.coordinates(left, top), reach / this.scale, isVivid);
  }

  /** Zoom about a place on the stage, which stays where it is. */
  zoomAt(left, top, factor) {
    const [x, y] = this.coordinates(left, top);
    const zoom = Math.min(Math.max(this.camera.zoom * factor, ZOOMS[0]), ZOOMS[1]);
    const share = 1 - this.camera.zoom / zoom;
    setCamera(this.index, cameraWithin({
      x: this.camera.x + share * (x - this.camera.x),
      y: this.camera.y + share * (y - this.camera.y),
      zoom,
    }));
  }

  zoomBy(factor) {
    this.zoomAt(...this.middle, factor);
  }

  pan(right, down) {
    const { x, y, zoom } = this.camera;
    const { scale } = this;
    setCamera(this.index, cameraWithin({ x: x - right / scale, y: y + down / scale, zoom }));
  }

  reset() {
    setCamera(this.index, WHOLE_VIEW);
  }

  /** Move a node that is out of sight, or nearly, to the middle. */
  bringIntoSight(node) {
    const [left, top] = this.place(node);
    const { x, y, width, height } = this.box;
    const margin = 0.06 * Math.min(width, height);
    const within = (at, from, size) => at > from + margin && at < from + size - margin;
    if (within(left, x, width) && within(top, y, height)) return;
    glide(this, { x: this.places[2 * node], y: this.places[2 * node + 1], zoom: this.camera.zoom });
  }

  makeCell() {
    const heading = element("h2", { id: `view-title-${this.index}` });
    if (this.index > 0) heading.append((this.mark = swatch("", "line")));
    heading.append(this.title);
    const tools = element("div", { className: "tools" });
    const tool = (label, sign, onclick) => {
      const button = element("button", {
        type: "button",
        className: sign,
        title: label,
        "aria-label": `${label}: ${this.title}`,
        onclick,
      }, icon(sign));
      tools.append(button);
      return button;
    };
    this.lassoButton = tool("Lasso", "lasso", () => toggleLasso(this));
    this.lassoButton.setAttribute("aria-pressed", "false");
    tool("Zoom in", "plus", () => this.zoomBy(1.6));
    tool("Zoom out", "minus", () => this.zoomBy(1 / 1.6));
    this.resetButton = tool("Show all", "whole", () => this.reset());
    tool("Make large", "enlarge", () => change({ main: this.index }));
    const cell = element("div", {
      className: "view",
      id: this.index === 0 ? "graph-view" : `map-${this.index}`,
      tabIndex: 0,
      role: "application",
      "aria-label": `${this.title}. Arrow keys walk to neighbours, plus and minus zoom.`,
    });
    cell.append(element("div", { className: "view-head" }, heading, tools));
    return cell;
  }
}

let gliding = 0;

/** Move a camera smoothly, or at once for those who want no motion. */
function glide(view, to) {
  cancelAnimationFrame(gliding);
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
    setCamera(view.index, to);
    return;
  }
  const from = view.camera;
  const began = performance.now();
  const step = (now) => {
    const share = Math.min(Math.max((now - began) / 280, 0), 1);
    const eased = share * share * (3 - 2 * share);
    setCamera(view.index, {
      x: from.x + eased * (to.x - from.x),
      y: from.y + eased * (to.y - from.y),
      zoom: to.zoom,
    });
    if (share < 1) gliding = requestAnimationFrame(step);
  };
  gliding = requestAnimationFrame(step);
}

function placesOfMap(factor) {
  return data.maps.subarray(2 * data.nodes * factor, 2 * data.nodes * (factor + 1));
}

const views = [new View(0, data.position)];
for (let m = 0; m < data.viewCount - 1; m++) views.push(new View(m + 1, placesOfMap(m)));
