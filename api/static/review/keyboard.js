// Keyboard shortcuts. A held key acts once, so that it cannot judge several pictures.

const PAN_KEYS = { ArrowLeft: [80, 0], ArrowRight: [-80, 0], ArrowUp: [0, 80], ArrowDown: [0, -80] }; // with Shift

/** Binds keys to `actions` {judge(label), skip, undo, redo, …}. */
export function bindKeys(actions) {
  document.addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]")) return;
    if (isTextInput(event)) return;
    const action = event.ctrlKey || event.metaKey ? withControl(event, actions) : event.altKey ? null : plain(event, actions);
    const again = event.repeat && event.target.closest?.("#verdicts, #navigation"); // Enter on a button
    if (!action && !again) return;
    event.preventDefault();
    if (action && (!event.repeat || action.repeats)) action();
  });
}

/** Whether a text field has the focus; Escape and Enter leave it. */
function isTextInput(event) {
  const field = event.target.closest?.("input:not([type=radio], [type=range], [type=checkbox])");
  if (field && ["Escape", "Enter"].includes(event.key)) {
    event.preventDefault();
    field.blur();
  }
  return Boolean(field);
}

function withControl({ key, shiftKey }, actions) {
  const character = key.toLowerCase();
  if (character === "z") return shiftKey ? actions.redo : actions.undo;
  if (character === "y") return actions.redo;
  return "[]".includes(key) ? plain({ key }, actions) : null; // AltGr is reported as Ctrl and Alt
}

function plain({ key, code, shiftKey, target }, actions) {
  const digit = /^(?:Digit|Numpad)([1-9])$/.exec(code)?.[1]; // French keyboards need Shift for digits
  if (key.startsWith("Arrow") && target.closest?.("input")) return null; // arrow keys belong to sliders and radio buttons
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
    v: () => actions.tool("view"),
    Escape: () => actions.tool("view"),
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
