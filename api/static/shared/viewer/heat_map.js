// The heat map: where the network responded, and how strongly.

const COLORS = [[255, 237, 74], [255, 140, 26], [214, 24, 24]]; // of low, middle and high scores
const MAX_ALPHA = 210;

/** An image of scores {width, height, pixels}; the higher a score, the redder and the less transparent it is. */
export function drawHeatMap({ width, height, pixels }) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  pixels.forEach((value, index) => image.data.set([...colorOf(value / 255), (value / 255) ** 0.7 * MAX_ALPHA], 4 * index));
  context.putImageData(image, 0, 0);
  return canvas;
}

function colorOf(score) {
  const place = Math.min(score * (COLORS.length - 1), COLORS.length - 1.001);
  const below = Math.floor(place);
  return COLORS[below].map((value, channel) => value + (COLORS[below + 1][channel] - value) * (place - below));
}
