import type { Context } from "koa";
import { z } from "zod";
import { notFound, Problem } from "../../resources/problem.ts";
import { validate } from "../../resources/validate.ts";
import { showClient, showRotation } from "../client-view.ts";
import { prefersHtml, textOf } from "../people/input.ts";
import { requireRecentSignIn } from "../people/person.ts";
import { refuseRedirectUris } from "../redirect-uris.ts";
import { clientPage, noClientPage, rotationForm } from "../views/dashboard/client.ts";
import { sectionPath } from "../views/dashboard/layout.ts";
import { type NewSecret, newSecretPage } from "../views/dashboard/secret.ts";
import { MANAGERS, membershipOf, personOf } from "./access.ts";
import { again, answerDone, fieldsOf, isForm, type Show, showPage } from "./answers.ts";
import { endpointsOf } from "./endpoints.ts";
import { showAlreadyShown } from "./one-time-view.ts";
import { ORGANIZATION, type Subject } from "./subject.ts";

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
const uriList = z.strictObject({
  redirect_uris: z.array(z.string({ error: "must be text" }), { error: "must be a list" }),
});

/** API access: the client of the organization, its secrets and redirect URIs. */
export const client: Subject = (router, { storage, addresses, allow, oneTimeView }) => {
  const { clients } = storage;
  const managers = allow(...MANAGERS);
  const newSecrets = oneTimeView<NewSecret>();

  const find = async (ctx: Context) => {
    const found = await clients.ofOrganization(membershipOf(ctx).id);
    if (found) return found;
    throw new Problem(404, "no_client", "The organization gets its client with the first paid plan.");
  };

  const show = async (ctx: Context, error?: string, uris?: string[]) => {
    const membership = membershipOf(ctx);
    const page = { title: "API access", section: "client" as const, error };
    const found = await clients.ofOrganization(membership.id);
    if (!found) return showPage(ctx, page, noClientPage(membership.id));
    const endpoints = endpointsOf(addresses);
    const { csrf } = personOf(ctx);
    const redirectUris = uris ?? found.redirectUris;
    showPage(ctx, page, clientPage({ membership, client: { ...found, redirectUris }, endpoints, csrf }));
  };
  router.get(PATH, managers, async (ctx) => {
    if (prefersHtml(ctx)) return show(ctx);
    ctx.body = { ...showClient(await find(ctx)), endpoints: endpointsOf(addresses) };
  });

  const showRotationForm: Show = async (ctx, error) => {
    requireRecentSignIn(ctx);
    const { id } = membershipOf(ctx);
    await find(ctx);
    const body = rotationForm(id, personOf(ctx).csrf);
    showPage(ctx, { title: "New secret", section: "client", error }, body);
  };
  router.get(`${PATH}/rotate`, managers, (ctx) => showRotationForm(ctx));

  router.post(`${PATH}/rotate`, managers, again(showRotationForm), async (ctx) => {
    const { id } = membershipOf(ctx);
    requireRecentSignIn(ctx, `${sectionPath(id, "client")}/rotate`);
    const { overlap_hours, compromised } = validate(rotation, await rotationFields(ctx));
    if (compromised && overlap_hours !== undefined && !isForm(ctx)) {
      const message = "A compromised secret has no overlap: it ends at once.";
      throw new Problem(422, "invalid_overlap_hours", message, {
        errors: [{ field: "overlap_hours", message }],
      });
    }
    await find(ctx);
    const overlapMs = (overlap_hours ?? DEFAULT_OVERLAP_HOURS) * HOUR_MS;
    const rotated = await clients.rotateSecret(id, { overlapMs, compromised }, personOf(ctx).by);
    if (!rotated) throw notFound("client");
    if (!prefersHtml(ctx)) {
      ctx.body = showRotation(rotated);
      return;
    }
    const { clientId, clientSecret } = rotated;
    const previousExpiresAt = compromised ? null : rotated.previousExpiresAt;
    newSecrets.redirect(ctx, newSecretPath(id), { clientId, clientSecret, previousExpiresAt });
  });

  router.get(`${PATH}/new-secret/:view`, managers, (ctx) => {
    const { id } = membershipOf(ctx);
    const path = sectionPath(id, "client");
    const secret = newSecrets.open(ctx);
    if (secret) {
      const title =
        secret.previousExpiresAt === undefined ? "Your OAuth client is ready" : "New client secret";
      return showPage(ctx, { title, section: "client" }, newSecretPage(id, secret));
    }
    showAlreadyShown(ctx, "client", {
      kind: "secret",
      name: "A client secret",
      advice: "If you didn’t save it, rotate the secret to get a new one.",
      back: { href: path, text: "Back to API access" },
      renew: { href: `${path}/rotate`, text: "Rotate secret" },
    });
  });

  const endSecret = async (ctx: Context) => {
    const { id } = membershipOf(ctx);
    const refusal = await clients.endSecret(id, ctx.params.secret_id as string, personOf(ctx).by);
    if (refusal === "missing") throw notFound("secret");
    if (refusal === "newest") {
      throw new Problem(409, "newest_secret", "This is the newest secret: make a new one first.");
    }
    answerDone(ctx, { to: sectionPath(id, "client"), done: "secret-ended" });
  };
  router.delete(`${PATH}/secrets/:secret_id`, managers, endSecret);
  router.post(
    `${PATH}/secrets/:secret_id/delete`,
    managers,
    again((ctx, error) => show(ctx, error)),
    endSecret,
  );

  const saveUris = async (ctx: Context) => {
    const { id } = membershipOf(ctx);
    const { redirect_uris } = validate(uriList, await uriFields(ctx));
    const wrong = refuseRedirectUris(redirect_uris);
    if (wrong.length > 0) {
      const detail = wrong.map(({ index, message }) => `${redirect_uris[index] ?? ""}: ${message}`).join(" ");
      const errors = wrong.map(({ index, message }) => ({ field: `redirect_uris.${index}`, message }));
      throw new Problem(422, "invalid_redirect_uris", detail, { errors });
    }
    const { clientId: client_id } = await find(ctx);
    await clients.setRedirectUris(id, redirect_uris, personOf(ctx).by);
    const done = "uris-saved";
    answerDone(ctx, { to: sectionPath(id, "client"), done, body: { client_id, redirect_uris } });
  };
  const showUrisAgain: Show = async (ctx, error) =>
    show(ctx, error, (await uriFields(ctx)).redirect_uris as string[]);
  router.put(`${PATH}/redirect-uris`, managers, saveUris);
  router.post(`${PATH}/redirect-uris`, managers, again(showUrisAgain), saveUris);
};

/** Where a new secret of the client is shown. */
export function newSecretPath(organizationId: string): string {
  return `${sectionPath(organizationId, "client")}/new-secret`;
}

async function rotationFields(ctx: Context) {
  const fields = await fieldsOf(ctx);
  if (!isForm(ctx)) return fields;
  const { overlap_hours: hours, kind, ...others } = fields;
  const isCompromised = kind === "compromised";
  return { ...others, compromised: isCompromised, ...(!isCompromised && { overlap_hours: toNumber(hours) }) };
}

/** A number as it was typed; nothing typed is no zero. */
function toNumber(text: unknown): number {
  return textOf(text).trim() === "" ? Number.NaN : Number(text);
}

/** One URI a line, in a form. */
async function uriFields(ctx: Context) {
  const fields = await fieldsOf(ctx);
  if (!isForm(ctx)) return fields;
  const lines = textOf(fields.redirect_uris).split("\n");
  return { ...fields, redirect_uris: lines.map((line) => line.trim()).filter(Boolean) };
}
