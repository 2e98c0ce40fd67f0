// Starts the display of one station or of all, or of several side by side.

const stations = new URLSearchParams(location.search).getAll("station");
if (stations.length > 1) {
  const { showSideBySide } = await import("./side_by_side.js");
  await showSideBySide(stations);
} else {
  await import("./line.js");
}
