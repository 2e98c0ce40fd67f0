// The keyboard. A key that is held down does its work once: it must not judge several pictures.

const PAN_KEYS = { ArrowLeft: [80, 0], ArrowRight: [-80, 0], ArrowUp: [0, 80], ArrowDown: [0, -80] }; // with Shift

/** Calls `actions` by the keys pressed: {judge(label or place), skip, undo, redo, …}; see below. */
export function bindKeys(actions) {
  document.addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]")) return;
    if (isTextInput(event)) return;
    const action = event.ctrlKey || event.metaKey ? withControl(event, actions) : event.altKey ? null : plain(event, actions);
    const again = event.repeat && event.target.closest?.("#verdicts, #moves"); // Enter on a button
    if (!action && !again) return;
    event.preventDefault();
    if (action && (!event.repeat || action.repeats)) action();
  });
}

/** Whether a text field has the focus; what leaves it does so here. */
function isTextInput(event) {
  const field = event.target.closest?.("input:not([type=radio], [type=range], [type=checkbox])");
  if (field && ["Escape", "Enter"].includes(event.key)) {
    event.preventDefault();
    field.blur();
  }
  return Boolean(field);
}

function withControl({ key, shiftKey }, actions) {
  const letter = key.toLowerCase();
  if (letter === "z") return shiftKey ? actions.redo : actions.undo;
  if (letter === "y") return actions.redo;
  return "[]".includes(key) ? plain({ key }, actions) : null; // AltGr, which is Ctrl and Alt
}

function plain({ key, code, shiftKey, target }, actions) {
  const digit = /^(?:Digit|Numpad)([1-9])$/.exec(code)?.[1]; // on a French keyboard they come with Shift
  if (key.startsWith("Arrow") && target.closest?.("input")) return null; // they move sliders, and choose tools
  if (PAN_KEYS[key] && shiftKey) return Object.assign(() => actions.move(...PAN_KEYS[key]), { repeats: true });
  if (/^[1-9]$/.test(key) || digit) return () => actions.judgeDefect(Number(/^[1-9]$/.test(key) ? key : digit));
  return {
    g: () => actions.judge("good"),
    u: () => actions.judge("unsure"),
    n: actions.skip,
    ArrowRight: actions.skip,
    z: actions.undo,
    y: actions.redo,
    m: actions.toggleMask,
    r: actions.reason,
    k: actions.toggleRight,
    v: () => actions.tool("look"),
    Escape: () => actions.tool("look"),
    b: () => actions.tool("brush"),
    e: () => actions.tool("eraser"),
    p: () => actions.tool("polygon"),
    c: actions.nextClass,
    "[": Object.assign(() => actions.resize(-1), { repeats: true }),
    "]": Object.assign(() => actions.resize(1), { repeats: true }),
    "+": actions.zoomIn,
    "=": actions.zoomIn,
    "-": actions.zoomOut,
    0: actions.fit,
    Enter: target?.closest?.("button, a") ? null : actions.close,
  }[key.length === 1 ? key.toLowerCase() : key];
}
