// Nodes near a place: a grid of cells, so that a pointer asks a few nodes and never all of them.

class Grid {
  /** @param {Float32Array} places x, y of node 0, x, y of node 1, … */
  constructor(places) {
    const nodes = places.length / 2;
    this.places = places;
    this.side = Math.min(Math.max(Math.ceil(Math.sqrt(nodes / 2)), 1), 256);
    this.start = new Uint32Array(this.side * this.side + 1);
    const cells = new Uint32Array(nodes);
    for (let i = 0; i < nodes; i++) {
      cells[i] = this.line(places[2 * i + 1]) * this.side + this.line(places[2 * i]);
      this.start[cells[i] + 1]++;
    }
    for (let c = 0; c < this.side * this.side; c++) this.start[c + 1] += this.start[c];
    const next = this.start.slice();
    this.members = new Uint32Array(nodes);
    for (let i = 0; i < nodes; i++) this.members[next[cells[i]]++] = i;
  }

  /** Row or column of a coordinate; what lies outside [-1, 1] belongs to the border. */
  line(coordinate) {
    const at = Math.floor(((coordinate + 1) / 2) * this.side);
    return Math.min(Math.max(at, 0), this.side - 1);
  }

  /** Call the action with each node in the cells that touch a rectangle. */
  forEachIn(left, low, right, high, action) {
    const [first, last] = [this.line(left), this.line(right)];
    for (let row = this.line(low); row <= this.line(high); row++) {
      const begin = this.start[row * this.side + first];
      const end = this.start[row * this.side + last + 1];
      for (let j = begin; j < end; j++) action(this.members[j]);
    }
  }

  /** The nearest accepted node within a radius, -1 where none is. */
  nearest(x, y, radius, accepts) {
    let best = -1;
    let least = radius * radius;
    this.forEachIn(x - radius, y - radius, x + radius, y + radius, (i) => {
      const square = (this.places[2 * i] - x) ** 2 + (this.places[2 * i + 1] - y) ** 2;
      if (square <= least && accepts(i)) {
        least = square;
        best = i;
      }
    });
    return best;
  }

  /** Nodes inside a polygon of corners x, y, x, y, … */
  inside(corners) {
    const xs = corners.filter((_, i) => i % 2 === 0);
    const ys = corners.filter((_, i) => i % 2 === 1);
    const found = [];
    this.forEachIn(Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys), (i) => {
      if (surrounds(xs, ys, this.places[2 * i], this.places[2 * i + 1])) found.push(i);
    });
    return found;
  }
}

/** Whether a ray from the point crosses the polygon's sides an odd number of times. */
function surrounds(xs, ys, x, y) {
  let odd = false;
  for (let a = 0, b = xs.length - 1; a < xs.length; b = a++) {
    if (ys[a] > y !== ys[b] > y && x < xs[a] + ((y - ys[a]) / (ys[b] - ys[a])) * (xs[b] - xs[a])) {
      odd = !odd;
    }
  }
  return odd;
}
