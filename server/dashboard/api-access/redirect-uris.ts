import type { Router } from "@koa/router";
import type { Context } from "koa";
import { z } from "zod";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { invalidField, validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { validateRedirectUris } from "../../clients/redirect-uris.ts";
import { textFieldOf } from "../../http/request-body.ts";
import { breakable, CSRF_FIELD, field, formButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState, table } from "../../ui/table.ts";
import { actorOf, MANAGERS } from "../access.ts";
import {
  type Done,
  type FieldErrors,
  formFieldsOf,
  redisplayForm,
  respondToChange,
  splitFieldErrors,
} from "../responses.ts";
import { addChange, type RouteOptions } from "../route.ts";
import { CLIENT, clientOf, refuseConflict } from "./client.ts";
import { addTab, tabPath } from "./tabs.ts";

const PATH = `${CLIENT}/redirect-uris`;

const uriList = z.strictObject({
  redirect_uris: z.array(z.string({ error: "must be text" }), { error: "must be a list" }),
});
const oneUri = z.strictObject({ redirect_uri: z.string({ error: "must be text" }).trim() });

/** Programs replace the whole list, or add and remove one URI as the forms do. */
export function addRedirectUriRoutes(router: Router, options: RouteOptions): void {
  const { storage, allow } = options;
  const { clients } = storage;
  const access = [allow(...MANAGERS)];

  const show = addTab(router, options, "client/redirect-uris", {
    async body(ctx, { redirectUris }, problem) {
      const { redirect_uri } = problem ? await formFieldsOf(ctx) : {};
      const path = tabPath(ctx, "client/redirect-uris");
      return urisPage(path, redirectUris, textFieldOf(redirect_uri), splitFieldErrors(problem).errors);
    },
    data: (_, { clientId, redirectUris }) => ({ client_id: clientId, redirect_uris: redirectUris }),
  });

  async function respond(ctx: Context, done: Done, redirect_uris: string[] | undefined) {
    if (!redirect_uris) throw notFound("client");
    const { clientId: client_id } = await clientOf(ctx, clients);
    respondToChange(ctx, {
      to: tabPath(ctx, "client/redirect-uris"),
      done,
      body: { client_id, redirect_uris },
    });
  }

  router.put(PATH, ...access, async (ctx) => {
    requireRecentSignIn(ctx, tabPath(ctx, "client/redirect-uris"));
    const { redirect_uris } = validate(uriList, await formFieldsOf(ctx));
    checkAll(redirect_uris);
    await clientOf(ctx, clients);
    const { organizationId, actor } = actorOf(ctx);
    await clients.setRedirectUris(organizationId, redirect_uris, actor).catch(refuseConflict);
    await respond(ctx, "uris-saved", redirect_uris);
  });

  const change = (kind: "add" | "remove", done: Done) => async (ctx: Context) => {
    requireRecentSignIn(ctx, tabPath(ctx, "client/redirect-uris"));
    const { redirect_uri } = validate(oneUri, await formFieldsOf(ctx));
    const { organizationId, actor } = actorOf(ctx);
    const check = kind === "add" ? checkLast : () => {};
    const uris = await clients
      .changeRedirectUris(organizationId, { [kind]: redirect_uri }, check, actor)
      .catch(refuseConflict);
    await respond(ctx, done, uris);
  };
  router.post(PATH, ...access, redisplayForm(show), change("add", "uri-added"));
  addChange(router, ["delete", PATH], { access, show }, change("remove", "uri-removed"));
}

/** Throws Problem that lists every invalid URI. */
function checkAll(uris: string[]): void {
  const invalid = validateRedirectUris(uris);
  if (invalid.length === 0) return;
  const detail = invalid.map(({ index, message }) => `${uris[index] ?? ""}: ${message}`).join("; ");
  const errors = invalid.map(({ index, message }) => ({ field: `redirect_uris.${index}`, message }));
  throw new Problem(422, "invalid_redirect_uris", detail, { errors });
}

/** Throws Problem if the URI that was added is invalid. */
function checkLast(uris: string[]): void {
  const invalid = validateRedirectUris(uris).find(({ index }) => index === uris.length - 1);
  if (invalid) throw invalidField("redirect_uri", invalid.message);
}

function urisPage(path: string, uris: string[], value: string, errors: FieldErrors): Html {
  const removeButton = (uri: string) =>
    formButton({
      action: `${path}/delete`,
      text: "Remove",
      about: uri,
      look: "danger",
      fields: { redirect_uri: uri },
    });
  const columns = { "Redirect URI": (uri: string) => html`<code>${breakable(uri)}</code>` };
  const list =
    uris.length > 0
      ? table("Redirect URIs", columns, uris, removeButton)
      : emptyState("No redirect URIs yet", "Without one, the client can only use client credentials.");
  return html`<section class="group uris"><div class="title"><div><h2>Redirect URIs</h2>
<p class="intro">Where users return after they have authorized your app.</p></div></div>
${list}
</section>
<form method="post" action="${path}" class="panel stack">${CSRF_FIELD}
${field({
  name: "redirect_uri",
  label: "New redirect URI",
  value,
  isWide: true,
  error: errors.redirect_uri,
  hint: "https URLs must match exactly. http is allowed for localhost, 127.0.0.1 and [::1], on any port. Private-use schemes such as com.example.app:/callback also work.",
  attributes: html`required maxlength="2048" placeholder="https://app.example.com/callback" inputmode="url" autocapitalize="none" autocomplete="off" spellcheck="false"`,
})}
<button type="submit">Add redirect URI</button>
</form>`;
}
