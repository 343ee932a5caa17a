import type { Context } from "koa";
import { z } from "zod";
import { Problem } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { showClient } from "../../clients/client-view.ts";
import { validateRedirectUris } from "../../clients/redirect-uris.ts";
import { prefersHtml, textFieldOf } from "../../http/request-body.ts";
import { actorOf, MANAGERS, membershipOf, pathTo } from "../access.ts";
import { formFieldsOf, isForm, respondToChange, type Show, showPage } from "../responses.ts";
import { addChange, addOwnerSwitch, type RouteModule } from "../route.ts";
import { CLIENT, clientOf, refuseConflict } from "./client.ts";
import { addSwitchRoutes } from "./client-switch.ts";
import { addKeyRoutes } from "./keys.ts";
import { clientPage, endpointsOf, noClientPage } from "./page.ts";
import { addSecretRoutes } from "./secrets.ts";

const uriList = z.strictObject({
  redirect_uris: z.array(z.string({ error: "must be text" }), { error: "must be a list" }),
});

export const clientRoutes: RouteModule = (router, options) => {
  const { storage, urls, allow } = options;
  const { clients, dpopRequirement } = storage;
  const managers = allow(...MANAGERS);
  const endpoints = endpointsOf(urls);

  async function show(ctx: Context, error?: string, uris?: string[]) {
    const membership = membershipOf(ctx);
    const page = { title: "API access", section: "client" as const, error };
    const found = await clients.findByOrganization(membership.id);
    if (!found) return showPage(ctx, { ...page, body: noClientPage(membership.id) });
    const client = { ...found, redirectUris: uris ?? found.redirectUris };
    const requiresDpop = await dpopRequirement.isRequired(membership.id);
    showPage(ctx, { ...page, body: clientPage({ membership, client, requiresDpop, endpoints }) });
  }

  router.get(CLIENT, managers, async (ctx) => {
    if (prefersHtml(ctx)) return show(ctx);
    const client = await clientOf(ctx, clients);
    const require_dpop = await dpopRequirement.isRequired(membershipOf(ctx).id);
    ctx.body = { ...showClient(client), require_dpop, endpoints };
  });

  addSecretRoutes(router, options, (ctx, error) => show(ctx, error));
  addKeyRoutes(router, options);
  addOwnerSwitch(router, allow, {
    path: `${CLIENT}/require-dpop`,
    section: "client",
    field: "require_dpop",
    set: (_, isRequired, { organizationId, actor }) => dpopRequirement.set(organizationId, isRequired, actor),
    done: ["dpop-required", "dpop-optional"],
  });
  addOwnerSwitch(router, allow, {
    path: `${CLIENT}/fapi`,
    section: "client",
    field: "fapi",
    set: (_, isOn, { organizationId, actor }) =>
      clients.setFapi(organizationId, isOn, actor).catch(refuseConflict),
    done: ["fapi-on", "fapi-off"],
    show: (ctx, error) => show(ctx, error),
  });
  addSwitchRoutes(router, options);

  const showUris: Show = async (ctx, error) =>
    show(ctx, error, (await uriFieldsOf(ctx)).redirect_uris as string[]);
  addChange(
    router,
    ["put", `${CLIENT}/redirect-uris`],
    { access: [managers], show: showUris },
    async (ctx) => {
      const to = pathTo(ctx, "client");
      requireRecentSignIn(ctx, to);
      const { redirect_uris } = validate(uriList, await uriFieldsOf(ctx));
      assertRedirectUris(redirect_uris);
      const { clientId: client_id } = await clientOf(ctx, clients);
      const { organizationId, actor } = actorOf(ctx);
      await clients.setRedirectUris(organizationId, redirect_uris, actor).catch(refuseConflict);
      respondToChange(ctx, { to, done: "uris-saved", body: { client_id, redirect_uris } });
    },
  );
};

/** Throws Problem that lists every invalid URI. */
function assertRedirectUris(uris: string[]): void {
  const invalid = validateRedirectUris(uris);
  if (invalid.length === 0) return;
  const detail = invalid.map(({ index, message }) => `${uris[index] ?? ""}: ${message}`).join("; ");
  const errors = invalid.map(({ index, message }) => ({ field: `redirect_uris.${index}`, message }));
  throw new Problem(422, "invalid_redirect_uris", detail, { errors });
}

/** A form has one URI per line. */
async function uriFieldsOf(ctx: Context) {
  const fields = await formFieldsOf(ctx);
  if (!isForm(ctx)) return fields;
  const lines = textFieldOf(fields.redirect_uris).split("\n");
  return { ...fields, redirect_uris: lines.map((line) => line.trim()).filter(Boolean) };
}
