import type { Router } from "@koa/router";
import type { Context, Middleware } from "koa";
import type { Problem } from "../../../resources/http/problem.ts";
import type { WebhookService } from "../../../resources/webhooks/service.ts";
import type { Webhook } from "../../../resources/webhooks/types.ts";
import { type Input, textFieldOf } from "../../http/request-body.ts";
import { actorOf, signedInUserOf } from "../access.ts";
import {
  type Done,
  formFieldsOf,
  isForm,
  redisplayForm,
  respondToChange,
  type Show,
  showPage,
  splitFieldErrors,
} from "../responses.ts";
import {
  requirePlan,
  toDashboardView,
  WEBHOOK,
  WEBHOOKS,
  webhookIdOf,
  webhookPath,
  webhooksPath,
} from "./context.ts";
import { webhookForm } from "./form.ts";
import type { SecretView } from "./secret-routes.ts";

type FormRouteOptions = { webhooks: WebhookService; managers: Middleware; secretView: SecretView };

/** The initial values of the form for a new webhook. */
const DEFAULTS = { url: "", events: ["link.created"] };

/** Adds the routes that create and update webhooks. */
export function addFormRoutes(router: Router, { webhooks, managers, secretView }: FormRouteOptions): void {
  const find = (ctx: Context) => webhooks.get(actorOf(ctx), webhookIdOf(ctx));
  const showNew: Show = (ctx, _error, problem) => showForm(ctx, problem);
  const showEdit: Show = async (ctx, _error, problem) => showForm(ctx, problem, await find(ctx));

  router.get(`${WEBHOOKS}/new`, managers, requirePlan, (ctx) => showNew(ctx));
  router.post(WEBHOOKS, managers, requirePlan, redisplayForm(showNew), async (ctx) => {
    secretView.respond(ctx, await webhooks.create(actorOf(ctx), await readInput(ctx)), "created");
  });

  const update = async (ctx: Context) => {
    const input = await readInput(ctx);
    const before = await find(ctx);
    const after = await webhooks.update(actorOf(ctx), before.id, input);
    respondToChange(ctx, {
      to: webhookPath(ctx),
      done: noticeOf(before, after),
      body: toDashboardView(ctx, after),
    });
  };
  router.get(`${WEBHOOK}/edit`, managers, requirePlan, (ctx) => showEdit(ctx));
  router.patch(WEBHOOK, managers, requirePlan, update);
  router.post(WEBHOOK, managers, requirePlan, redisplayForm(showEdit), update);
}

/** Shows the form: with the submitted values after an error, otherwise with those of the webhook or the defaults. */
async function showForm(ctx: Context, problem?: Problem, webhook?: Webhook): Promise<void> {
  const { error, errors } = splitFieldErrors(problem);
  const path = webhook ? webhookPath(ctx) : webhooksPath(ctx);
  const form = toFormValues(problem ? toServiceInput(await formFieldsOf(ctx)) : (webhook ?? DEFAULTS));
  const body = webhookForm({ path, isNew: !webhook, form, errors, csrf: signedInUserOf(ctx).csrf });
  const content = webhook ? { title: "Edit webhook", intro: webhook.url } : { title: "Create webhook" };
  showPage(ctx, { ...content, section: "webhooks", error }, body);
}

async function readInput(ctx: Context): Promise<Input> {
  const fields = await formFieldsOf(ctx);
  return isForm(ctx) ? toServiceInput(fields) : fields;
}

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
