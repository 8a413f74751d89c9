// Nodes and edges with WebGL: all views share one canvas, each in its own rectangle of it.

const NODE_VERTEX = `#version 300 es
in vec2 place; in vec4 colour;
uniform vec2 centre; uniform vec2 scale; uniform float size;
out vec4 shade;
void main() {
  gl_Position = vec4((place - centre) * scale, 0.0, 1.0);
  gl_PointSize = size;
  shade = colour;
}`;

// a disc with a rim in the ground's colour, which keeps touching nodes apart
const NODE_FRAGMENT = `#version 300 es
precision highp float;
in vec4 shade;
uniform float size; uniform float rim; uniform vec3 ground;
out vec4 pixel;
void main() {
  float out_by = length(gl_PointCoord - 0.5) * size - 0.5 * size + 0.5;
  float inside = clamp(0.5 - out_by, 0.0, 1.0) * shade.a;
  float core = clamp(0.5 - out_by - rim, 0.0, 1.0);
  pixel = vec4(mix(ground, shade.rgb, core) * inside, inside);
}`;

// a line is a thin rectangle with soft sides; one with alpha 0 collapses
const EDGE_VERTEX = `#version 300 es
in vec2 corner; in vec4 ends; in vec4 colour;
uniform vec2 centre; uniform vec2 scale; uniform vec2 pixels; uniform float width;
out vec4 shade; out float side;
void main() {
  vec2 from = (ends.xy - centre) * scale;
  vec2 to = (ends.zw - centre) * scale;
  vec2 along = (to - from) * pixels;
  vec2 across = vec2(-along.y, along.x) / max(length(along), 1e-6);
  float reach = colour.a > 0.0 ? 0.5 * width + 0.5 : 0.0;
  side = corner.y * reach;
  gl_Position = vec4(mix(from, to, corner.x) + across * side * 2.0 / pixels, 0.0, 1.0);
  shade = colour;
}`;

const EDGE_FRAGMENT = `#version 300 es
precision highp float;
in vec4 shade; in float side;
uniform float width; uniform float fade;
out vec4 pixel;
void main() {
  float alpha = shade.a * fade * clamp(0.5 * width + 0.5 - abs(side), 0.0, 1.0);
  pixel = vec4(shade.rgb * alpha, alpha);
}`;

// the same as a line one pixel wide: with jagged sides, but far less work without a graphics card
const LINE_VERTEX = `#version 300 es
in vec2 place; in vec4 colour;
uniform vec2 centre; uniform vec2 scale; uniform float fade;
out vec4 shade;
void main() {
  gl_Position = colour.a > 0.0 ? vec4((place - centre) * scale, 0.0, 1.0) : vec4(2.0);
  shade = vec4(colour.rgb, 1.0) * colour.a * fade;
}`;

const LINE_FRAGMENT = `#version 300 es
precision highp float;
in vec4 shade;
out vec4 pixel;
void main() { pixel = shade; }`;

const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;
const MOST_SOFT_EDGES = 6000; // that a processor draws with soft sides in one frame or two

/** Whether the processor draws, not a graphics card. */
function drawsInSoftware(gl) {
  const names = gl.getExtension("WEBGL_debug_renderer_info");
  return SOFTWARE.test(gl.getParameter(names ? names.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
}

class GlPainter {
  /** @throws where the browser has no WebGL 2 */
  constructor(canvas) {
    // what is not redrawn must stay: most changes concern one view
    const gl = canvas.getContext("webgl2", { antialias: false, preserveDrawingBuffer: true });
    if (!gl) throw new Error("no WebGL 2");
    this.gl = gl;
    this.canvas = canvas;
    this.build();
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.build();
      repaintAnew();
    });
  }

  build() {
    const { gl } = this;
    this.nodeProgram = this.program(NODE_VERTEX, NODE_FRAGMENT, ["place", "colour"]);
    this.plainLines = data.edges > MOST_SOFT_EDGES && drawsInSoftware(gl);
    this.edgeProgram = this.plainLines
      ? this.program(LINE_VERTEX, LINE_FRAGMENT, ["place", "colour"])
      : this.program(EDGE_VERTEX, EDGE_FRAGMENT, ["corner", "ends", "colour"]);
    this.nodeColours = views.map(() => gl.createBuffer());
    this.edgeColours = gl.createBuffer();
    this.nodeOrder = gl.createBuffer();
    this.corners = this.filled(new Float32Array([0, -1, 1, -1, 0, 1, 1, 1]));
    this.edgeEnds = this.filled(edgeEnds());
    this.places = views.map((view) => this.filled(view.places));
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.enable(gl.SCISSOR_TEST);
  }

  program(vertex, fragment, attributes) {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [type, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(type);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    attributes.forEach((name, at) => gl.bindAttribLocation(program, at, name));
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
      throw new Error(gl.getProgramInfoLog(program));
    }
    const uniforms = new Map();
    const number = gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS) ?? 0;
    for (let i = 0; i < number; i++) {
      const { name } = gl.getActiveUniform(program, i);
      uniforms.set(name, gl.getUniformLocation(program, name));
    }
    return { program, uniforms };
  }

  filled(values) {
    const { gl } = this;
    const buffer = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
    return buffer;
  }

  attribute(at, buffer, size, type, { perInstance = 0, stride = 0 } = {}) {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, size, type, type === gl.UNSIGNED_BYTE, stride, 0);
    gl.vertexAttribDivisor(at, perInstance);
  }

  resize(width, height, ratio) {
    this.ratio = ratio;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
  }

  /** @param {Uint8Array[]} colours red, green, blue, alpha of every node, for each view */
  setNodes(colours, order) {
    const { gl } = this;
    colours.forEach((own, view) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, this.nodeColours[view]);
      gl.bufferData(gl.ARRAY_BUFFER, own, gl.DYNAMIC_DRAW);
    });
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.nodeOrder);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, order, gl.DYNAMIC_DRAW);
  }

  setEdges(colours) {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.edgeColours);
    gl.bufferData(gl.ARRAY_BUFFER, colours, gl.DYNAMIC_DRAW);
  }

  draw(view, ground, fade) {
    const { gl, ratio } = this;
    const { x, y, width, height } = view.box;
    const below = this.canvas.height / ratio - y - height;
    const place = [x, below, width, height].map((pixels) => Math.round(pixels * ratio));
    gl.viewport(...place);
    gl.scissor(...place);
    gl.clearColor(...ground.map((part) => part / 255), 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    const camera = {
      centre: view.coordinates(x + width / 2, y + height / 2),
      scale: [(2 * view.scale) / width, (2 * view.scale) / height],
    };
    if (view.index === 0 && data.edges > 0) this.drawEdges(view, camera, place, fade);
    this.drawNodes(view, camera, ground);
  }

  drawEdges(view, camera, place, fade) {
    const { gl } = this;
    const { program, uniforms } = this.edgeProgram;
    gl.useProgram(program);
    gl.uniform2f(uniforms.get("centre"), ...camera.centre);
    gl.uniform2f(uniforms.get("scale"), ...camera.scale);
    gl.uniform1f(uniforms.get("fade"), fade);
    if (this.plainLines) {
      this.attribute(0, this.edgeEnds, 2, gl.FLOAT);
      this.attribute(1, this.edgeColours, 4, gl.UNSIGNED_BYTE);
      gl.drawArrays(gl.LINES, 0, 2 * data.edges);
      return;
    }
    gl.uniform2f(uniforms.get("pixels"), place[2], place[3]);
    gl.uniform1f(uniforms.get("width"), edgeWidth(view) * this.ratio);
    this.attribute(0, this.corners, 2, gl.FLOAT);
    this.attribute(1, this.edgeEnds, 4, gl.FLOAT, { perInstance: 1 });
    this.attribute(2, this.edgeColours, 4, gl.UNSIGNED_BYTE, { perInstance: 1, stride: 8 });
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, data.edges);
    gl.disableVertexAttribArray(2);
  }

  drawNodes(view, camera, ground) {
    const { gl, ratio } = this;
    const { program, uniforms } = this.nodeProgram;
    gl.useProgram(program);
    gl.uniform2f(uniforms.get("centre"), ...camera.centre);
    gl.uniform2f(uniforms.get("scale"), ...camera.scale);
    gl.uniform1f(uniforms.get("size"), 2 * view.radius * ratio + 1);
    gl.uniform1f(uniforms.get("rim"), view.radius > 2.5 ? 0.9 * ratio : 0);
    gl.uniform3f(uniforms.get("ground"), ...ground.map((part) => part / 255));
    this.attribute(0, this.places[view.index], 2, gl.FLOAT);
    this.attribute(1, this.nodeColours[view.index], 4, gl.UNSIGNED_BYTE);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.nodeOrder);
    gl.drawElements(gl.POINTS, data.nodes, gl.UNSIGNED_INT, 0);
  }
}
