import type { Router } from "@koa/router";
import type { Context } from "koa";
import { z } from "zod";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { showRotation } from "../../clients/client-view.ts";
import { prefersHtml, textFieldOf } from "../../http/request-body.ts";
import { csrfField, field, linkButton } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { MANAGERS, membershipOf, signedInUserOf } from "../access.ts";
import { showAlreadyShown } from "../one-time-view.ts";
import { formFieldsOf, isForm, redisplayForm, type Show, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { clientOf } from "./client.ts";
import { type NewSecret, newSecretPage, newSecretPath } from "./secret-page.ts";

const PATH = `${ORGANIZATION}/client`;
const HOUR_MS = 60 * 60 * 1000;
const DEFAULT_OVERLAP_HOURS = 24;
const MAX_OVERLAP_HOURS = 168;

const OVERLAP = `must be 0 to ${MAX_OVERLAP_HOURS} hours`;
const rotation = z.strictObject({
  overlap_hours: z
    .number({ error: OVERLAP })
    .min(0, { error: OVERLAP })
    .max(MAX_OVERLAP_HOURS, { error: OVERLAP })
    .optional(),
  compromised: z.boolean({ error: "must be true or false" }).default(false),
});

type Options = Parameters<RouteModule>[1];

/** Adds the routes that rotate the client secret and show the new one. */
export function addRotationRoutes(router: Router, options: Options): void {
  const { storage, allow, oneTimeView } = options;
  const { clients } = storage;
  const managers = allow(...MANAGERS);
  const newSecrets = oneTimeView<NewSecret>();

  const showForm: Show = async (ctx, error) => {
    requireRecentSignIn(ctx);
    const { id } = membershipOf(ctx);
    const { secrets } = await clientOf(clients, id);
    const { csrf } = signedInUserOf(ctx);
    const [title, body] =
      secrets.length > 0
        ? ["Rotate secret", rotationForm(id, csrf)]
        : ["Create secret", secretCreationForm(id, csrf)];
    showPage(ctx, { title, section: "client", error }, body);
  };
  router.get(`${PATH}/rotate`, managers, (ctx) => showForm(ctx));

  router.post(`${PATH}/rotate`, managers, redisplayForm(showForm), async (ctx) => {
    const { id } = membershipOf(ctx);
    requireRecentSignIn(ctx, `${sectionPath(id, "client")}/rotate`);
    const { overlapMs, compromised } = await rotationOf(ctx);
    await clientOf(clients, id);
    const rotated = await clients.rotateSecret(id, { overlapMs, compromised }, signedInUserOf(ctx).actor);
    if (!rotated) throw notFound("client");
    if (!prefersHtml(ctx)) {
      ctx.body = showRotation(rotated);
      return;
    }
    const { clientId, clientSecret, previousExpiresAt: expiresAt } = rotated;
    const previous = compromised ? "revoked" : expiresAt === null ? "none" : { expiresAt };
    newSecrets.redirect(ctx, newSecretPath(id), { clientId, clientSecret, previous });
  });

  router.get(`${PATH}/new-secret/:view`, managers, (ctx) => {
    const secret = newSecrets.open(ctx);
    if (secret) showSecret(ctx, secret);
    else showSecretAlreadyShown(ctx);
  });
}

function showSecret(ctx: Context, secret: NewSecret): void {
  const isFirst = secret.previous === undefined;
  const title = isFirst ? "Your OAuth client is ready" : "New client secret";
  showPage(ctx, { title, section: "client" }, newSecretPage(membershipOf(ctx).id, secret));
}

function showSecretAlreadyShown(ctx: Context): void {
  const path = sectionPath(membershipOf(ctx).id, "client");
  showAlreadyShown(ctx, "client", {
    kind: "secret",
    name: "A client secret",
    advice: "If you didn’t save it, rotate the secret to get a new one.",
    back: { href: path, text: "Back to API access" },
    renew: { href: `${path}/rotate`, text: "Rotate secret" },
  });
}

/** Returns the requested rotation; `overlapMs` has no effect on a compromised secret. */
async function rotationOf(ctx: Context): Promise<{ overlapMs: number; compromised: boolean }> {
  const { overlap_hours, compromised } = validate(rotation, await rotationFieldsOf(ctx));
  if (compromised && overlap_hours !== undefined) {
    const message = "must be omitted if compromised is true";
    throw new Problem(422, "invalid_overlap_hours", `overlap_hours ${message}.`, {
      errors: [{ field: "overlap_hours", message }],
    });
  }
  return { overlapMs: (overlap_hours ?? DEFAULT_OVERLAP_HOURS) * HOUR_MS, compromised };
}

async function rotationFieldsOf(ctx: Context) {
  const fields = await formFieldsOf(ctx);
  if (!isForm(ctx)) return fields;
  const { overlap_hours: hours, kind, ...others } = fields;
  const compromised = kind === "compromised";
  return { ...others, compromised, ...(!compromised && { overlap_hours: toNumber(hours) }) };
}

/** Parses a number from a form; an empty field is not zero. */
function toNumber(text: unknown): number {
  return textFieldOf(text).trim() === "" ? Number.NaN : Number(text);
}

/** Renders the form that asks for the reason and the overlap of a rotation. */
function rotationForm(organizationId: string, csrf: string | undefined): Html {
  const path = sectionPath(organizationId, "client");
  return html`<form method="post" action="${path}/rotate" class="panel stack">${csrfField(csrf)}
<fieldset><legend>Reason</legend>
<label class="option"><input type="radio" name="kind" value="planned" checked> Scheduled rotation: the old secret stays valid for a while</label>
<label class="option"><input type="radio" name="kind" value="compromised"> Compromised secret: revoke all older secrets, tokens and app authorizations of this client now</label>
</fieldset>
${field({
  name: "overlap_hours",
  label: "Keep the old secret valid for (hours)",
  type: "number",
  value: 24,
  hint: "0 to 168. Ignored if the secret is compromised. Only two secrets can be active: a third one revokes the oldest.",
  attributes: html`min="0" max="168" step="any"`,
})}
<div class="actions"><button type="submit">Rotate secret</button>${linkButton(path, "Cancel", "quiet")}</div>
</form>`;
}

/** Renders the form that creates a secret for a client that has none. */
function secretCreationForm(organizationId: string, csrf: string | undefined): Html {
  const path = sectionPath(organizationId, "client");
  return html`<form method="post" action="${path}/rotate" class="panel stack">${csrfField(csrf)}
<input type="hidden" name="kind" value="planned"><input type="hidden" name="overlap_hours" value="0">
<p>The secret is shown once. Public keys stay valid.</p>
<div class="actions"><button type="submit">Create secret</button>${linkButton(path, "Cancel", "quiet")}</div>
</form>`;
}
