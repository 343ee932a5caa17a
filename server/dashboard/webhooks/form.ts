import { WEBHOOK_EVENTS, type WebhookEvent } from "../../../resources/events/types.ts";
import { csrfField, field, formButton, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import type { FieldErrors } from "../responses.ts";

type FormOptions = {
  /** The action of the form and the target of Cancel: the path of the webhook, or of the list. */
  path: string;
  isNew: boolean;
  /** The current values. */
  form: { url: string; events: string[] };
  errors: FieldErrors;
  csrf: string | undefined;
};

const MEANINGS: Record<WebhookEvent, string> = {
  "link.created": "A link is created",
  "link.updated": "A link is updated or archived",
  "link.deleted": "A link is deleted",
  "link.clicked": "A visitor follows a link",
  "client.secret_rotated": "The client secret is rotated",
  "authorization.granted": "A user authorizes an app",
  "authorization.revoked": "An app loses its access",
  "token.replay_detected": "A code or token is used again",
  "webhook.test": "Any webhook is tested",
};

/** Renders the form of a webhook with its current values and errors. */
export function webhookForm({ path, isNew, form, errors, csrf }: FormOptions): Html {
  const events = WEBHOOK_EVENTS.filter((event) => event !== "webhook.test" || form.events.includes(event));
  const error = errors.events;
  return html`<form method="post" action="${path}" class="panel stack">${csrfField(csrf)}
${field({
  name: "url",
  label: "Endpoint URL",
  type: "url",
  value: form.url,
  error: errors.url,
  hint: "A public https URL on port 443 or 8443.",
  attributes: html`required maxlength="2048" placeholder="https://example.com/hook" autocomplete="off"`,
})}
<fieldset${error ? html` aria-describedby="events-error"` : html``}><legend>Events to send</legend>
${error ? html`<p class="error" id="events-error">Select at least one event.</p>` : html``}
${events.map((event) => eventCheckbox(event, form.events.includes(event)))}
</fieldset>
<div class="actions"><button type="submit">${isNew ? "Create webhook" : "Save webhook"}</button>${linkButton(path, "Cancel", "quiet")}</div>
</form>`;
}

function eventCheckbox(event: WebhookEvent, isSelected: boolean): Html {
  return html`<label class="option"><input type="checkbox" name="events" value="${event}"${
    isSelected ? html` checked` : html``
  }><span>${MEANINGS[event]} <code class="soft">${event}</code></span></label>
`;
}

type Deletion = { url: string; path: string; csrf: string | undefined };

/** Asks for confirmation and lists the consequences. */
export function webhookDeletionForm({ url, path, csrf }: Deletion): Html {
  return html`<div class="panel danger">
<p>No more events will be sent to <strong>${url}</strong>, including pending retries. Its secret and delivery log will be deleted.</p>
<div class="actions">${formButton({ action: `${path}/delete`, csrf, text: "Delete webhook", look: "danger" })}${linkButton(path, "Cancel", "quiet")}</div>
</div>`;
}
