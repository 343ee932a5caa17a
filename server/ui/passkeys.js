// Submits the forms that use a passkey with the response of the authenticator.

const { browserSupportsWebAuthn, startAuthentication, startRegistration } = SimpleWebAuthnBrowser;

const CEREMONIES = { create: startRegistration, get: startAuthentication };
const MESSAGES = {
  NotAllowedError: "The request was canceled or timed out. Try again.",
  InvalidStateError: "This device already has a passkey for your account.",
};

for (const form of document.querySelectorAll("form[data-passkey]")) {
  form.hidden = !browserSupportsWebAuthn();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    event.stopPropagation();
    form.querySelector("[role=alert]")?.remove();
    try {
      const optionsJSON = JSON.parse(form.dataset.options);
      const response = await CEREMONIES[form.dataset.passkey]({ optionsJSON });
      form.elements.passkey.value = JSON.stringify(response);
      form.submit();
    } catch (reason) {
      const error = document.createElement("p");
      error.className = "alert";
      error.setAttribute("role", "alert");
      error.textContent = MESSAGES[reason.name] ?? "Your browser couldn’t use the passkey. Try again.";
      form.append(error);
    }
  });
}

for (const note of document.querySelectorAll("[data-passkey-missing]"))
  note.hidden = browserSupportsWebAuthn();
