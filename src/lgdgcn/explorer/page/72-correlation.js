// Correlation of the channels: a heat map, and its mean between factors as a table.

function buildCorrelation(panel) {
  const values = valuesOf(data.raw.correlation);
  const side = data.raw.correlation.shape[0];
  const canvas = element("canvas", {
    className: "heat",
    role: "img",
    "aria-label": "Heat map of the correlation between channels; the table below has its means",
  });
  const reading = element("p", { className: "reading" });
  const hint = "Point at the map to read it.";
  canvas.addEventListener("pointermove", (event) => {
    const { left, top, width } = canvas.getBoundingClientRect();
    const line = (pixel) => Math.min(Math.max(Math.floor((pixel / width) * side), 0), side - 1);
    const [down, across] = [line(event.clientY - top), line(event.clientX - left)];
    const value = figure(values[down * side + across] / 255);
    const [one, other] = [channelName(down, side), channelName(across, side)];
    reading.textContent = `${value} between ${one} and ${other}`;
  });
  canvas.addEventListener("pointerleave", () => (reading.textContent = hint));
  reading.textContent = hint;
  const about = note("Channels of one factor may go together, those of two should not.");
  const title = element("h4", {}, "Mean size of the correlation between factors");
  const show = () => {
    drawHeat(canvas, values, side);
    const means = element("div", { className: "rolling" }, factorMeans());
    panel.replaceChildren(about, canvas, reading,
      ...rampBar("heat", "0", "size of the correlation", "1"), title, means);
  };
  show();
  onChange(["theme"], show);
}

/** What stands at a line of the map; a line may be the mean of several channels. */
function channelName(line, side) {
  const perFactor = side / data.factors;
  const step = data.raw.correlationStep;
  const first = (line % perFactor) * step + 1;
  const channels = step > 1 ? `channels ${first}–${first + step - 1}` : `channel ${first}`;
  return `factor ${Math.floor(line / perFactor) + 1}, ${channels}`;
}

function drawHeat(canvas, values, side) {
  const colours = ramp("heat");
  const small = element("canvas", { width: side, height: side });
  const picture = small.getContext("2d").createImageData(side, side);
  values.forEach((value, i) => {
    picture.data.set(colours[value], 4 * i);
    picture.data[4 * i + 3] = 255;
  });
  small.getContext("2d").putImageData(picture, 0, 0);
  canvas.width = canvas.height = side * Math.max(1, Math.round(760 / side));
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, canvas.width, canvas.height);
  context.fillStyle = css(FAINT[theme()]);
  for (let m = 1; m < data.factors; m++) {
    const at = (canvas.width * m) / data.factors - 1.5;
    context.fillRect(at, 0, 3, canvas.height);
    context.fillRect(0, at, canvas.width, 3);
  }
}

function factorMeans() {
  const means = valuesOf(data.raw.correlationMeans);
  const factors = [...Array(data.factors).keys()];
  const short = (m) => [swatch(css(hue(m)), "line"), `F${m + 1}`];
  const heads = factors.map((m) => element("th", { scope: "col" }, ...short(m)));
  const rows = factors.map((a) => row(rowHead(...short(a)), ...factors.map((b) => {
    const mean = means[a * data.factors + b];
    return shaded(numberCell(Number.isNaN(mean) ? "–" : mean.toFixed(2)), mean || 0);
  })));
  const head = element("thead", {}, row(cell(), ...heads));
  return table("matrix", "Mean size of the correlation between factors", head, rows);
}

/** Give a cell the heat of its share, with text that stays readable on it. */
function shaded(made, share) {
  const colour = ramp("heat")[Math.round(255 * Math.min(share, 1))];
  made.style.backgroundColor = css(colour);
  const bright = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2];
  made.style.color = bright > 140 ? "#15191e" : "#f6f7f9";
  return made;
}
