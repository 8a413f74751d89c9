// The same pictures on a plain canvas, for browsers without WebGL (remote desktops, old machines).

class FlatPainter {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
  }

  resize(width, height, ratio) {
    this.ratio = ratio;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
  }

  setNodes(colours, order) {
    this.nodes = { colours, order };
  }

  setEdges(colours) {
    this.edges = colours;
  }

  draw(view, ground, fade) {
    const { context, ratio } = this;
    const { x, y, width, height } = view.box;
    context.save();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    context.fillStyle = css(ground);
    context.fillRect(x, y, width, height);
    if (view.index === 0) this.drawEdges(view, fade);
    this.drawNodes(view);
    context.restore();
  }

  /** One path per colour: a few hundred strokes instead of one per edge. */
  drawEdges(view, fade) {
    const { context, edges } = this;
    const paths = new Map();
    const words = new Uint32Array(edges.buffer);
    edgeOrder.forEach((edge, at) => {
      if (edges[8 * at + 3] === 0) return;
      if (!paths.has(words[2 * at])) paths.set(words[2 * at], { at, path: new Path2D() });
      const { path } = paths.get(words[2 * at]);
      path.moveTo(...view.place(data.ends[edge]));
      path.lineTo(...view.place(data.ends[data.edges + edge]));
    });
    context.lineWidth = edgeWidth(view);
    for (const { at, path } of paths.values()) {
      context.strokeStyle = css(edges.subarray(8 * at), (fade * edges[8 * at + 3]) / 255);
      context.stroke(path);
    }
  }

  drawNodes(view) {
    const { context } = this;
    const { order } = this.nodes;
    const colours = this.nodes.colours[view.index];
    const { radius } = view;
    for (const node of order) {
      const [left, top] = view.place(node);
      context.fillStyle = css(colours.subarray(4 * node), colours[4 * node + 3] / 255);
      context.beginPath();
      context.arc(left, top, radius, 0, 2 * Math.PI);
      context.fill();
    }
  }
}
