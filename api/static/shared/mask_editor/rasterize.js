// Rasterization of strokes and polygons. Pixel x, y is the square from x, y to x + 1, y + 1.

/** Calls `paint(y, start, end)` for the rows of a stroke of `diameter` px between two points {x, y}. */
export function rasterizeLine(from, to, diameter, paint) {
  const [a, b] = [snapToPixels(from, diameter), snapToPixels(to, diameter)];
  const radius = diameter / 2;
  for (let y = Math.floor(Math.min(a.y, b.y) - radius); y <= Math.max(a.y, b.y) + radius; y++) {
    const span = strokeSpan(a, b, radius + 1e-6, y + 0.5);
    if (!span) continue;
    const [start, end] = [Math.ceil(span[0] - 0.5), Math.floor(span[1] - 0.5) + 1];
    if (start < end) paint(y, start, end);
  }
}

/** Calls `paint(y, start, end)` for the pixels whose centres are inside a polygon of points {x, y}. */
export function rasterizePolygon(points, paint) {
  const heights = points.map(({ y }) => y);
  for (let y = Math.floor(Math.min(...heights)); y <= Math.max(...heights); y++) {
    const crossings = crossingsAt(points, y + 0.5);
    for (let at = 0; at + 1 < crossings.length; at += 2) {
      const [start, end] = [Math.ceil(crossings[at] - 0.5), Math.ceil(crossings[at + 1] - 0.5)];
      if (start < end) paint(y, start, end);
    }
  }
}

/** Snaps odd diameters to pixel centres, even ones to pixel corners. */
function snapToPixels({ x, y }, diameter) {
  if (diameter % 2) return { x: Math.floor(x) + 0.5, y: Math.floor(y) + 0.5 };
  return { x: Math.round(x), y: Math.round(y) };
}

/** The interval [start, end] at height `y` within `radius` of the segment a b: two discs and a rectangle. */
function strokeSpan(a, b, radius, y) {
  const spans = [a, b].flatMap((end) => {
    const half = Math.sqrt(radius ** 2 - (y - end.y) ** 2);
    return half >= 0 ? [[end.x - half, end.x + half]] : [];
  });
  const length = Math.hypot(b.x - a.x, b.y - a.y);
  if (length) {
    const [acrossX, acrossY] = [(-(b.y - a.y) / length) * radius, ((b.x - a.x) / length) * radius];
    const corners = [[a, 1], [b, 1], [b, -1], [a, -1]].map(([{ x, y: height }, side]) => ({
      x: x + side * acrossX,
      y: height + side * acrossY,
    }));
    const crossings = crossingsAt(corners, y);
    if (crossings.length === 2) spans.push(crossings);
  }
  return spans.length ? [Math.min(...spans.map(([start]) => start)), Math.max(...spans.map(([, end]) => end))] : null;
}

/** The x where a polygon's edges cross height `y`, sorted. */
function crossingsAt(points, y) {
  const found = [];
  points.forEach((from, at) => {
    const to = points[(at + 1) % points.length];
    if (from.y <= y === to.y <= y) return;
    found.push(from.x + ((to.x - from.x) * (y - from.y)) / (to.y - from.y));
  });
  return found.sort((one, other) => one - other);
}
