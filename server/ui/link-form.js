// Improves the form of a link, which works without this script.

import { UTM_FIELDS, utmOf, withUtm } from "../../resources/links/utm.js";

const form = document.querySelector("form[data-link-form]");
const { url, domain, slug, title, expires_at: expiry } = form.elements;

keepUtmFields();
enterExpiryInLocalTime();
showPreview();

/** The destination and its UTM parameters follow each other. */
function keepUtmFields() {
  const fields = UTM_FIELDS.map((name) => form.elements[name]);
  url.addEventListener("input", () => {
    const values = utmOf(url.value);
    for (const field of fields) field.value = values[field.name];
  });
  for (const field of fields) {
    field.addEventListener("input", () => {
      url.value = withUtm(url.value.trim(), { [field.name]: field.value.trim() });
    });
  }
}

/** The field is sent in UTC, and what it stood for is sent unchanged unless it was edited. */
function enterExpiryInLocalTime() {
  const sent = document.createElement("input");
  sent.type = "hidden";
  sent.name = expiry.name;
  sent.value = expiry.defaultValue;
  expiry.removeAttribute("name");
  expiry.after(sent);
  expiry.value = toLocal(sent.value);
  expiry.addEventListener("input", () => {
    sent.value = toUtc(expiry.value);
  });
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  // The list of errors has the name of the field, too.
  for (const name of [expiry.labels[0], document.querySelector("#error [href='#expires_at']")])
    if (name) name.textContent = `Expires (your time, ${timeZone})`;
}

function toLocal(utc) {
  const time = new Date(`${utc}Z`);
  return Number.isNaN(time.getTime())
    ? ""
    : new Date(time - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function toUtc(local) {
  return local === "" ? "" : new Date(local).toISOString().slice(0, 16);
}

function showPreview() {
  const shown = (name) => document.querySelector(`[data-preview="${name}"]`);
  const show = (name, text) => {
    const element = shown(name);
    element.textContent = text || element.dataset.empty;
  };
  const update = () => {
    const typed = url.value.trim();
    const parsed = URL.parse(/^[a-z][a-z\d+.-]*:\/\//i.test(typed) ? typed : `https://${typed}`);
    if (domain) show("domain", domain.selectedOptions[0].text);
    show("slug", slug.value.trim());
    show("host", parsed?.host);
    show("path", parsed?.href.slice(parsed.href.indexOf(parsed.host) + parsed.host.length));
    show("title", title.value.trim());
  };
  form.addEventListener("input", update);
  update();
}
