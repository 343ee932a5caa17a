import type { Context, Middleware } from "koa";
import { isPaid } from "../../resources/plans.ts";
import type { Problem } from "../../resources/problem.ts";
import { readQuery } from "../../resources/query.ts";
import type { Webhook } from "../../resources/webhooks/ports.ts";
import { pageQuery, toWebhookView } from "../../resources/webhooks/schema.ts";
import { statusOf } from "../../resources/webhooks/status.ts";
import { planRequired, type WithSecret } from "../../resources/webhooks/webhooks.ts";
import { type Input, prefersHtml, textOf } from "../people/input.ts";
import { sectionPath } from "../views/dashboard/layout.ts";
import { webhookDeletionForm, webhookForm } from "../views/dashboard/webhook-form.ts";
import { rotationForm, webhookSecretPage } from "../views/dashboard/webhook-secret.ts";
import { webhooksPage } from "../views/dashboard/webhooks.ts";
import { actorOf, MANAGERS, membershipOf, personOf } from "./access.ts";
import { again, answerDone, byField, type Done, fieldsOf, isForm, type Show, showPage } from "./answers.ts";
import { showAlreadyShown } from "./one-time-view.ts";
import { ORGANIZATION, type Subject } from "./subject.ts";

/** Where the webhooks of an organization are. */
export const WEBHOOKS = `${ORGANIZATION}/webhooks`;
/** Where one of them is. */
export const WEBHOOK = `${WEBHOOKS}/:webhook_id`;

type NewSecret = Pick<WithSecret, "secret"> & { isNew: boolean };

/** What most webhooks are for. */
const SUGGESTION = { url: "", events: ["link.created"] };

/** Lets those organizations through whose plan has webhooks; the others look at what they had, and delete it. */
export const requirePlan: Middleware = function checkPlan(ctx, next) {
  if (!isPaid(membershipOf(ctx).plan)) throw planRequired();
  return next();
};

/** Webhooks: make, change, delete, and replace their secrets. What they were told is a subject of its own. */
export const webhooks: Subject = (router, { cores, allow, oneTimeView }) => {
  const { webhooks } = cores;
  const managers = allow(...MANAGERS);
  const newSecrets = oneTimeView<NewSecret>();
  const find = (ctx: Context) => webhooks.get(actorOf(ctx), webhookIdOf(ctx));

  router.get(WEBHOOKS, managers, readQuery(pageQuery), async (ctx) => {
    if (!prefersHtml(ctx)) {
      const { webhooks: page, nextCursor } = await webhooks.list(actorOf(ctx), ctx.state.query);
      ctx.body = { data: page.map((webhook) => showWebhook(ctx, webhook)), next_cursor: nextCursor };
      return;
    }
    const { id, plan } = membershipOf(ctx);
    const path = sectionPath(id, "webhooks");
    const { webhooks: all } = await webhooks.list(actorOf(ctx), { limit: 100 });
    const planPath = sectionPath(id, "plan");
    const { body, actions } = webhooksPage({ path, planPath, webhooks: all, plan });
    const intro = "Addresses of yours that are told when something happens, signed as Standard Webhooks are.";
    showPage(ctx, { title: "Webhooks", intro, section: "webhooks", actions }, body);
  });

  const showForm = async (ctx: Context, problem?: Problem, webhook?: Webhook) => {
    const { error, errors } = byField(problem);
    const path = webhook ? pathOf(ctx) : sectionPath(membershipOf(ctx).id, "webhooks");
    const form = formOf(problem ? toInput(await fieldsOf(ctx)) : (webhook ?? SUGGESTION));
    const body = webhookForm({ path, isNew: !webhook, form, errors, csrf: personOf(ctx).csrf });
    const content = webhook ? { title: "Edit webhook", intro: webhook.url } : { title: "New webhook" };
    showPage(ctx, { ...content, section: "webhooks", error }, body);
  };
  const showNew: Show = (ctx, _error, problem) => showForm(ctx, problem);
  const showEdit: Show = async (ctx, _error, problem) => showForm(ctx, problem, await find(ctx));
  router.get(`${WEBHOOKS}/new`, managers, requirePlan, (ctx) => showNew(ctx));

  router.post(WEBHOOKS, managers, requirePlan, again(showNew), async (ctx) => {
    const fields = await fieldsOf(ctx);
    answerSecret(ctx, await webhooks.create(actorOf(ctx), isForm(ctx) ? toInput(fields) : fields), 201);
  });

  router.get(`${WEBHOOK}/edit`, managers, requirePlan, (ctx) => showEdit(ctx));

  const update = async (ctx: Context) => {
    const fields = await fieldsOf(ctx);
    const before = await find(ctx);
    const after = await webhooks.update(actorOf(ctx), before.id, isForm(ctx) ? toInput(fields) : fields);
    answerDone(ctx, { to: pathOf(ctx), done: doneTo(before, after), body: showWebhook(ctx, after) });
  };
  router.patch(WEBHOOK, managers, requirePlan, update);
  router.post(WEBHOOK, managers, requirePlan, again(showEdit), update);

  router.get(`${WEBHOOK}/rotate-secret`, managers, requirePlan, async (ctx) => {
    const { url } = await find(ctx);
    const body = rotationForm(pathOf(ctx), personOf(ctx).csrf);
    showPage(ctx, { title: "New secret", intro: url, section: "webhooks" }, body);
  });
  router.post(`${WEBHOOK}/rotate-secret`, managers, requirePlan, async (ctx) => {
    answerSecret(ctx, await webhooks.rotateSecret(actorOf(ctx), webhookIdOf(ctx)));
  });

  router.get(`${WEBHOOK}/delete`, managers, async (ctx) => {
    const { url } = await find(ctx);
    const body = webhookDeletionForm({ url, path: pathOf(ctx), csrf: personOf(ctx).csrf });
    showPage(ctx, { title: "Delete webhook?", section: "webhooks" }, body);
  });
  const remove = async (ctx: Context) => {
    await webhooks.remove(actorOf(ctx), webhookIdOf(ctx));
    answerDone(ctx, { to: sectionPath(membershipOf(ctx).id, "webhooks"), done: "webhook-deleted" });
  };
  router.delete(WEBHOOK, managers, remove);
  router.post(`${WEBHOOK}/delete`, managers, remove);

  /** Answers a script with the secret; redirects a browser to the page that shows it once. */
  function answerSecret(ctx: Context, { webhook, secret }: WithSecret, status = 200) {
    if (prefersHtml(ctx)) {
      const path = `${sectionPath(membershipOf(ctx).id, "webhooks")}/${webhook.id}/new-secret`;
      return newSecrets.redirect(ctx, path, { secret, isNew: status === 201 });
    }
    ctx.status = status;
    ctx.body = { ...showWebhook(ctx, webhook), secret };
  }

  router.get(`${WEBHOOK}/new-secret/:view`, managers, async (ctx) => {
    const { url } = await find(ctx);
    const path = pathOf(ctx);
    const found = newSecrets.open(ctx);
    if (found) {
      const title = found.isNew ? "Webhook created" : "New signing secret";
      return showPage(ctx, { title, section: "webhooks" }, webhookSecretPage({ path, url, ...found }));
    }
    showAlreadyShown(ctx, "webhooks", {
      kind: "secret",
      name: "A signing secret",
      advice: "If you didn’t save it, rotate the secret to get a new one.",
      back: { href: path, text: "Back to the webhook" },
      renew: { href: `${path}/rotate-secret`, text: "Rotate secret" },
    });
  });
};

/** The id in the address. */
export function webhookIdOf(ctx: Context): string {
  return ctx.params.webhook_id as string;
}

/** The page of the webhook in the address. */
export function pathOf(ctx: Context): string {
  return `${sectionPath(membershipOf(ctx).id, "webhooks")}/${webhookIdOf(ctx)}`;
}

/** A webhook as the API answers it, with its status and the reasons for it. */
export function showWebhook(ctx: Context, webhook: Webhook) {
  const { failingSince, disabledReason } = webhook;
  return {
    ...toWebhookView(webhook),
    status: statusOf(webhook, membershipOf(ctx).plan),
    failing_since: failingSince === null ? null : new Date(failingSince).toISOString(),
    disabled_reason: disabledReason,
  };
}

/** The fields of a form in the words of the core: of the events those that are ticked, which may be none or a single one. */
function toInput({ enabled, events, ...fields }: Input): Input {
  return {
    ...fields,
    ...("url" in fields && { events: [events ?? []].flat() }),
    ...(enabled !== undefined && { enabled: enabled === "true" }),
  };
}

function formOf({ url, events }: { url?: unknown; events?: unknown }) {
  return { url: textOf(url), events: Array.isArray(events) ? events.map(textOf) : [] };
}

function doneTo(before: Webhook, after: Webhook): Done {
  if (before.enabled === after.enabled) return "webhook-saved";
  return after.enabled ? "webhook-enabled" : "webhook-disabled";
}
