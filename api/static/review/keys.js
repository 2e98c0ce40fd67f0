// The keyboard. A key that is held down does its work once: it must not judge several pictures.

const MOVES = { ArrowLeft: [80, 0], ArrowRight: [-80, 0], ArrowUp: [0, 80], ArrowDown: [0, -80] }; // with Shift

/** Calls `acts` by the keys pressed: {judge(label or place), skip, undo, redo, …}; see below. */
export function listenToKeys(acts) {
  document.addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]")) return;
    if (isTyped(event)) return;
    const act = event.ctrlKey || event.metaKey ? withControl(event, acts) : event.altKey ? null : plain(event, acts);
    const again = event.repeat && event.target.closest?.("#verdicts, #moves"); // Enter on a button
    if (!act && !again) return;
    event.preventDefault();
    if (act && (!event.repeat || act.repeats)) act();
  });
}

/** Whether a text field has the focus; what leaves it does so here. */
function isTyped(event) {
  const field = event.target.closest?.("input:not([type=radio], [type=range], [type=checkbox])");
  if (field && ["Escape", "Enter"].includes(event.key)) {
    event.preventDefault();
    field.blur();
  }
  return Boolean(field);
}

function withControl({ key, shiftKey }, acts) {
  const letter = key.toLowerCase();
  if (letter === "z") return shiftKey ? acts.redo : acts.undo;
  if (letter === "y") return acts.redo;
  return "[]".includes(key) ? plain({ key }, acts) : null; // AltGr, which is Ctrl and Alt
}

function plain({ key, code, shiftKey, target }, acts) {
  const digit = /^(?:Digit|Numpad)([1-9])$/.exec(code)?.[1]; // on a French keyboard they come with Shift
  if (key.startsWith("Arrow") && target.closest?.("input")) return null; // they move sliders, and choose tools
  if (MOVES[key] && shiftKey) return Object.assign(() => acts.move(...MOVES[key]), { repeats: true });
  if (/^[1-9]$/.test(key) || digit) return () => acts.judgeDefect(Number(/^[1-9]$/.test(key) ? key : digit));
  return {
    g: () => acts.judge("good"),
    u: () => acts.judge("unsure"),
    n: acts.skip,
    ArrowRight: acts.skip,
    z: acts.undo,
    y: acts.redo,
    m: acts.toggleMask,
    r: acts.reason,
    k: acts.toggleRight,
    v: () => acts.tool("look"),
    Escape: () => acts.tool("look"),
    b: () => acts.tool("brush"),
    e: () => acts.tool("eraser"),
    p: () => acts.tool("polygon"),
    c: acts.nextClass,
    "[": Object.assign(() => acts.resize(-1), { repeats: true }),
    "]": Object.assign(() => acts.resize(1), { repeats: true }),
    "+": acts.zoomIn,
    "=": acts.zoomIn,
    "-": acts.zoomOut,
    0: acts.fit,
    Enter: target?.closest?.("button, a") ? null : acts.close,
  }[key.length === 1 ? key.toLowerCase() : key];
}
