import { WEBHOOK_EVENTS, type WebhookEvent } from "../../../resources/events.ts";
import type { FieldErrors } from "../../dashboard/answers.ts";
import { type Html, html } from "../html.ts";
import { csrfField, field, formButton, linkButton } from "./controls.ts";

type FormOptions = {
  /** Where the form goes, and whoever cancels it: the webhook, or all of them. */
  path: string;
  isNew: boolean;
  /** What was typed and ticked. */
  form: { url: string; events: string[] };
  errors: FieldErrors;
  csrf: string | undefined;
};

const MEANINGS: Record<WebhookEvent, string> = {
  "link.created": "a link was made",
  "link.updated": "a link was changed or archived",
  "link.deleted": "a link was deleted",
  "link.clicked": "somebody followed a link",
  "client.secret_rotated": "your client has a new secret",
  "authorization.granted": "a person let an app act for the organization",
  "authorization.revoked": "an app lost its access",
  "webhook.test": "every test of any webhook",
};

/** A webhook to fill in; what was typed and ticked stays, and what is wrong is said beside it. */
export function webhookForm({ path, isNew, form, errors, csrf }: FormOptions): Html {
  const events = WEBHOOK_EVENTS.filter((event) => event !== "webhook.test" || form.events.includes(event));
  const error = errors.events;
  return html`<form method="post" action="${path}" class="panel stack">${csrfField(csrf)}
${field({
  name: "url",
  label: "Address of the receiver",
  type: "url",
  value: form.url,
  error: errors.url,
  hint: "https, on port 443 or 8443, on the public internet.",
  attributes: html`required maxlength="2048" placeholder="https://example.com/hook" autocomplete="off"`,
})}
<fieldset${error ? html` aria-describedby="events-error"` : html``}><legend>Tell it when</legend>
${error ? html`<p class="error" id="events-error">Tick one at least.</p>` : html``}
${events.map((event) => option(event, form.events.includes(event)))}
</fieldset>
<div class="actions"><button type="submit">${isNew ? "Create webhook" : "Save webhook"}</button>${linkButton(path, "Cancel", "quiet")}</div>
</form>`;
}

function option(event: WebhookEvent, isTicked: boolean): Html {
  return html`<label class="option"><input type="checkbox" name="events" value="${event}"${
    isTicked ? html` checked` : html``
  }><span>${MEANINGS[event]} <code class="soft">${event}</code></span></label>
`;
}

type Deletion = { url: string; path: string; csrf: string | undefined };

/** Says what a deletion ends. */
export function webhookDeletionForm({ url, path, csrf }: Deletion): Html {
  return html`<div class="panel danger">
<p><strong>${url}</strong> is told nothing more, also not what is waiting to be tried again. Its secret and its log are gone.</p>
<div class="actions">${formButton({ action: `${path}/delete`, csrf, text: "Delete webhook", look: "danger" })}${linkButton(path, "Keep it", "quiet")}</div>
</div>`;
}
