// Access to the elements of a page.

/** The element with this id. */
export function byId(id) {
  return document.getElementById(id);
}

/** Sets an element's text if it differs: screen readers announce every change. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A new element with a class and children, which are texts or elements. */
export function createElement(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}
