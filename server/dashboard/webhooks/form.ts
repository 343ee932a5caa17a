import type { Context } from "koa";
import { MANAGERS } from "../../../resources/access/scopes.ts";
import { WEBHOOK_EVENTS } from "../../../resources/events/delivered-events.ts";
import type { WebhookEvent } from "../../../resources/events/types.ts";
import type { Problem } from "../../../resources/http/problem.ts";
import type { Webhook } from "../../../resources/webhooks/types.ts";
import { type Input, textFieldOf } from "../../http/request-body.ts";
import { checkboxes, field, panelForm } from "../../ui/controls.ts";
import type { PageContent } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { actorOf, pathTo } from "../access.ts";
import type { Done } from "../confirmation.ts";
import { addForm, type FieldErrors, formFieldsOf, inputOf, splitFieldErrors } from "../forms.ts";
import { respondToChange } from "../responses.ts";
import type { RouteModule } from "../route.ts";
import {
  findWebhook,
  requirePlan,
  toDashboardView,
  WEBHOOK,
  WEBHOOKS,
  webhookIdOf,
  webhookPath,
} from "./context.ts";
import { respondWithSecret, type SecretView } from "./secrets.ts";

const DEFAULTS = { url: "", events: ["link.created"] };

/** Adds the forms that create, edit and delete a webhook. */
export const webhookForms: RouteModule = (router, { services, allow, oneTimeView }) => {
  const { webhooks } = services;
  const secretView: SecretView = oneTimeView();
  const common = { access: [allow(...MANAGERS), requirePlan], section: "webhooks" } as const;

  addForm(router, {
    ...common,
    path: `${WEBHOOKS}/new`,
    action: WEBHOOKS,
    render: (ctx, problem) => formPage(ctx, problem),
    async change(ctx) {
      const created = await webhooks.create(actorOf(ctx), await inputOf(ctx, toServiceInput));
      respondWithSecret(ctx, secretView, created, "created");
    },
  });

  addForm(router, {
    ...common,
    path: `${WEBHOOK}/edit`,
    action: WEBHOOK,
    program: ["patch", WEBHOOK],
    render: async (ctx, problem) => formPage(ctx, problem, await findWebhook(ctx, services)),
    async change(ctx) {
      const input = await inputOf(ctx, toServiceInput);
      const before = await findWebhook(ctx, services);
      const after = await webhooks.update(actorOf(ctx), before.id, input);
      const body = toDashboardView(ctx, after);
      respondToChange(ctx, { to: webhookPath(ctx), done: noticeOf(before, after), body });
    },
  });

  addForm(router, {
    path: `${WEBHOOK}/delete`,
    program: ["delete", WEBHOOK],
    access: [allow(...MANAGERS)],
    section: "webhooks",
    async render(ctx) {
      const { url } = await findWebhook(ctx, services);
      const path = webhookPath(ctx);
      const body = panelForm(
        { action: `${path}/delete`, submit: "Delete webhook", cancel: path, danger: "panel" },
        html`<p>No more events will be sent to <strong>${url}</strong>, including pending retries. Its secret and delivery log will be deleted.</p>`,
      );
      return { title: "Delete webhook?", body };
    },
    async change(ctx) {
      await webhooks.remove(actorOf(ctx), webhookIdOf(ctx));
      respondToChange(ctx, { to: pathTo(ctx, "webhooks"), done: "webhook-deleted" });
    },
  });
};

/** Converts form fields to the input of the service; the browser sends only the selected events: none, one or a list. */
function toServiceInput({ enabled, events, ...fields }: Input): Input {
  return {
    ...fields,
    ...("url" in fields && { events: [events ?? []].flat() }),
    ...(enabled !== undefined && { enabled: enabled === "true" }),
  };
}

function toFormValues({ url, events }: { url?: unknown; events?: unknown }) {
  return { url: textFieldOf(url), events: Array.isArray(events) ? events.map(textFieldOf) : [] };
}

function noticeOf(before: Webhook, after: Webhook): Done {
  if (before.enabled === after.enabled) return "webhook-saved";
  return after.enabled ? "webhook-enabled" : "webhook-disabled";
}

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

/** Returns the page with the form of a new webhook, or of the given one; after an error, with the submitted values. */
async function formPage(ctx: Context, problem?: Problem, webhook?: Webhook): Promise<PageContent> {
  const { errors, ...error } = splitFieldErrors(problem);
  const form = toFormValues(problem ? toServiceInput(await formFieldsOf(ctx)) : (webhook ?? DEFAULTS));
  const path = webhook ? webhookPath(ctx) : pathTo(ctx, "webhooks");
  const submit = webhook ? "Save webhook" : "Create webhook";
  const body = panelForm({ action: path, submit, cancel: path }, fields(form, errors));
  return { title: webhook ? "Edit webhook" : "Create webhook", intro: webhook?.url, ...error, body };
}

function fields(form: ReturnType<typeof toFormValues>, errors: FieldErrors): Html {
  const events = WEBHOOK_EVENTS.filter((event) => event !== "webhook.test" || form.events.includes(event));
  return html`${field({
    name: "url",
    label: "Endpoint URL",
    type: "url",
    value: form.url,
    error: errors.url,
    hint: "A public https URL on port 443 or 8443.",
    attributes: html`required maxlength="2048" placeholder="https://example.com/hook" autocomplete="off"`,
  })}
${checkboxes({
  name: "events",
  legend: "Events to send",
  options: events.map((event) => [event, MEANINGS[event]] as const),
  selected: form.events,
  error: errors.events && "Select at least one event.",
})}`;
}
