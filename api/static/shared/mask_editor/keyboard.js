// Keyboard shortcuts. A held key acts once, so that it cannot label several photographs.

import { showKeys } from "./key_list.js";

const PAN_KEYS = { ArrowLeft: [80, 0], ArrowRight: [-80, 0], ArrowUp: [0, 80], ArrowDown: [0, -80] }; // with Shift

/**
 * Binds keys to `actions` {undo, redo, digit(number), keys}, and others to the tools of `editor`, a MaskEditor. `keys`
 * are further actions by key. A held Enter presses no button inside `buttons`, a selector, again.
 */
export function bindKeys(editor, actions, buttons) {
  const shortcuts = { ...editorKeys(editor, actions), ...actions.keys };
  // After a click of the mouse, Enter is the shortcut, not another click on the same button.
  document.addEventListener("click", ({ detail, target }) => detail && target.closest("button, summary")?.blur());
  document.addEventListener("keydown", (event) => {
    if (document.querySelector(":is(dialog[open], :popover-open)")) return;
    if (isTextInput(event)) return;
    const action = event.ctrlKey || event.metaKey ? withControl(event, shortcuts) : event.altKey ? null : plain(event);
    const again = event.repeat && event.target.closest?.(buttons); // Enter on a button
    if (!action && !again) return;
    event.preventDefault();
    if (action && (!event.repeat || action.repeats)) action();
  });

  function plain({ key, code, shiftKey, target }) {
    const digit = /^(?:Digit|Numpad)([1-9])$/.exec(code)?.[1]; // French keyboards need Shift for digits
    if (key.startsWith("Arrow") && target.closest?.("input")) return null; // arrow keys belong to sliders and radio buttons
    if (PAN_KEYS[key] && shiftKey) return repeating(() => editor.pointer.moveBy(...PAN_KEYS[key]));
    if (/^[1-9]$/.test(key) || digit) return () => actions.digit(Number(/^[1-9]$/.test(key) ? key : digit));
    if (key === "Enter" && (target?.closest?.("button, a") || target?.closest?.("summary"))) return null;
    return shortcuts[key.length === 1 ? key.toLowerCase() : key];
  }
}

function editorKeys(editor, { undo, redo }) {
  const { toolbar, pointer } = editor;
  return {
    z: undo,
    y: redo,
    "?": showKeys,
    f: () => editor.canvas.showMarked(),
    m: () => editor.toggleMask(),
    v: () => toolbar.choose("view"),
    Escape: () => toolbar.choose("view"),
    s: () => toolbar.choose("click"),
    b: () => toolbar.choose("brush"),
    e: () => toolbar.choose("eraser"),
    p: () => toolbar.choose("polygon"),
    x: () => toolbar.choose("box"),
    c: () => toolbar.nextClass(),
    "[": repeating(() => toolbar.resize(-1)),
    "]": repeating(() => toolbar.resize(1)),
    "+": () => pointer.zoom(),
    "=": () => pointer.zoom(),
    "-": () => pointer.zoom(1 / 1.5),
    0: () => pointer.fit(),
    Enter: () => editor.closePolygon(),
  };
}

/** Marks an action that a held key repeats. */
function repeating(action) {
  return Object.assign(action, { repeats: true });
}

/** Whether a text field or a choice has the focus; Escape and Enter leave it. */
function isTextInput(event) {
  if (event.target.closest?.("textarea")) return true;
  const field = event.target.closest?.("select") ?? event.target.closest?.("input:not([type=radio], [type=range], [type=checkbox])");
  if (field && ["Escape", "Enter"].includes(event.key)) {
    event.preventDefault();
    field.blur();
  }
  return Boolean(field);
}

function withControl({ key, shiftKey }, shortcuts) {
  const character = key.toLowerCase();
  if (character === "z") return shiftKey ? shortcuts.y : shortcuts.z;
  if (character === "y") return shortcuts.y;
  return "[]".includes(key) ? shortcuts[key] : null; // AltGr is reported as Ctrl and Alt
}
