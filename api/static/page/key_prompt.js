// Asks for the API key.

const part = (id) => document.getElementById(id);

/** Shows the prompt with `reason`; the key that was typed, or "" when it was declined. */
export function askKey(reason) {
  const dialog = part("key-dialog");
  part("key-reason").textContent = reason || "The service asks for a key.";
  part("key").value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => resolve(dialog.returnValue);
    dialog.oncancel = () => (dialog.returnValue = "");
    part("key-cancel").onclick = () => dialog.close("");
    dialog.querySelector("form").onsubmit = (event) => {
      event.preventDefault();
      dialog.close(part("key").value.trim());
    };
  });
}
