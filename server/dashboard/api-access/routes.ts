import type { Router } from "@koa/router";
import type { Context } from "koa";
import { z } from "zod";
import type { Storage } from "../../../adapters/index.ts";
import type { PublicUrls } from "../../../resources/access/resource-metadata.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { showClient } from "../../clients/client-view.ts";
import { validateRedirectUris } from "../../clients/redirect-uris.ts";
import { prefersHtml, textFieldOf } from "../../http/request-body.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { MANAGERS, membershipOf, signedInUserOf } from "../access.ts";
import {
  formFieldsOf,
  isForm,
  redisplayForm,
  respondToChange,
  type Show,
  showPage,
  switchFieldsOf,
} from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { clientOf } from "./client.ts";
import { addSwitchRoutes } from "./client-switch.ts";
import { addCredentialRoutes } from "./credentials.ts";
import { endpointsOf } from "./endpoints.ts";
import { clientPage, noClientPage } from "./page.ts";
import { addRotationRoutes } from "./rotation.ts";

const dpopSetting = z.strictObject({ require_dpop: z.boolean({ error: "must be true or false" }) });

const PATH = `${ORGANIZATION}/client`;

const uriList = z.strictObject({
  redirect_uris: z.array(z.string({ error: "must be text" }), { error: "must be a list" }),
});

type Clients = Storage["clients"];

/** Adds the routes of the organization's OAuth client: its secrets, redirect URIs and endpoints. */
export const clientRoutes: RouteModule = (router, options) => {
  const { storage, urls, allow } = options;
  const { clients, dpopRequirement } = storage;
  const managers = allow(...MANAGERS);
  const show = createShow(storage, urls);

  router.get(PATH, managers, async (ctx) => {
    if (prefersHtml(ctx)) return show(ctx);
    const { id } = membershipOf(ctx);
    const client = await clientOf(clients, id);
    const require_dpop = await dpopRequirement.isRequired(id);
    ctx.body = { ...showClient(client), require_dpop, endpoints: endpointsOf(urls) };
  });

  addRotationRoutes(router, options);
  addCredentialRoutes(router, options);
  addDpopRoutes(router, options);
  addSwitchRoutes(router, options);

  const secret = `${PATH}/secrets/:secret_id`;
  const showAgain = redisplayForm((ctx, error) => show(ctx, error));
  router.delete(secret, managers, (ctx) => revokeSecret(ctx, clients));
  router.post(`${secret}/delete`, managers, showAgain, (ctx) => revokeSecret(ctx, clients));

  const redirectUris = `${PATH}/redirect-uris`;
  const showUrisAgain: Show = async (ctx, error) =>
    show(ctx, error, (await uriFieldsOf(ctx)).redirect_uris as string[]);
  router.put(redirectUris, managers, (ctx) => saveRedirectUris(ctx, clients));
  router.post(redirectUris, managers, redisplayForm(showUrisAgain), (ctx) => saveRedirectUris(ctx, clients));
};

function createShow({ clients, dpopRequirement }: Storage, urls: PublicUrls) {
  return async function show(ctx: Context, error?: string, uris?: string[]) {
    const membership = membershipOf(ctx);
    const page = { title: "API access", section: "client" as const, error };
    const found = await clients.findByOrganization(membership.id);
    if (!found) return showPage(ctx, page, noClientPage(membership.id));
    const client = { ...found, redirectUris: uris ?? found.redirectUris };
    const requiresDpop = await dpopRequirement.isRequired(membership.id);
    const { csrf } = signedInUserOf(ctx);
    showPage(ctx, page, clientPage({ membership, client, requiresDpop, endpoints: endpointsOf(urls), csrf }));
  };
}

async function revokeSecret(ctx: Context, clients: Clients): Promise<void> {
  const { id } = membershipOf(ctx);
  const refusal = await clients.revokeSecret(id, ctx.params.secret_id as string, signedInUserOf(ctx).actor);
  if (refusal === "missing") throw notFound("secret");
  if (refusal === "newest") {
    throw new Problem(409, "newest_secret", "You can't revoke the newest secret. Rotate it first.");
  }
  respondToChange(ctx, { to: sectionPath(id, "client"), done: "secret-ended" });
}

async function saveRedirectUris(ctx: Context, clients: Clients): Promise<void> {
  const { id } = membershipOf(ctx);
  requireRecentSignIn(ctx, sectionPath(id, "client"));
  const { redirect_uris } = validate(uriList, await uriFieldsOf(ctx));
  assertRedirectUris(redirect_uris);
  const { clientId: client_id } = await clientOf(clients, id);
  await clients.setRedirectUris(id, redirect_uris, signedInUserOf(ctx).actor);
  const body = { client_id, redirect_uris };
  respondToChange(ctx, { to: sectionPath(id, "client"), done: "uris-saved", body });
}

/** @throws Problem that lists every invalid URI */
function assertRedirectUris(uris: string[]): void {
  const invalid = validateRedirectUris(uris);
  if (invalid.length === 0) return;
  const detail = invalid.map(({ index, message }) => `${uris[index] ?? ""}: ${message}`).join("; ");
  const errors = invalid.map(({ index, message }) => ({ field: `redirect_uris.${index}`, message }));
  throw new Problem(422, "invalid_redirect_uris", detail, { errors });
}

/** Returns the submitted fields; a form has one URI per line. */
async function uriFieldsOf(ctx: Context) {
  const fields = await formFieldsOf(ctx);
  if (!isForm(ctx)) return fields;
  const lines = textFieldOf(fields.redirect_uris).split("\n");
  return { ...fields, redirect_uris: lines.map((line) => line.trim()).filter(Boolean) };
}

/** Adds the routes that let owners require DPoP. */
function addDpopRoutes(router: Router, { storage, allow }: Parameters<RouteModule>[1]): void {
  const path = `${ORGANIZATION}/client/require-dpop`;
  const change = async (ctx: Context) => {
    const { id } = membershipOf(ctx);
    const to = sectionPath(id, "client");
    requireRecentSignIn(ctx, to);
    const { require_dpop } = validate(dpopSetting, await switchFieldsOf(ctx, "require_dpop"));
    const { actor } = signedInUserOf(ctx);
    if (!(await storage.dpopRequirement.set(id, require_dpop, actor))) throw notFound("organization");
    respondToChange(ctx, {
      to,
      done: require_dpop ? "dpop-required" : "dpop-optional",
      body: { require_dpop },
    });
  };
  router.put(path, allow("owner"), change);
  router.post(path, allow("owner"), change);
}
