import type { Router } from "@koa/router";
import type { Context } from "koa";
import { textFieldOf } from "../../http/request-body.ts";
import {
  addRedirectUri,
  listRedirectUris,
  removeRedirectUri,
  setRedirectUris,
} from "../../operations/redirect-uris.ts";
import { breakable, CSRF_FIELD, field, formButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState, table } from "../../ui/table.ts";
import { type FieldErrors, formFieldsOf, splitFieldErrors } from "../forms.ts";
import { addOperation } from "../operation-routes.ts";
import type { RouteOptions } from "../route.ts";
import { addTab, tabPath } from "./tabs.ts";

/** Programs replace the whole list, or add and remove one URI as the forms do. */
export function addRedirectUriRoutes(router: Router, options: RouteOptions): void {
  const to = (ctx: Context) => tabPath(ctx, "client/redirect-uris");
  const show = addTab(
    router,
    options,
    "client/redirect-uris",
    listRedirectUris,
    async (ctx, { redirectUris }, problem) => {
      const { redirect_uri } = problem ? await formFieldsOf(ctx) : {};
      return urisPage(to(ctx), redirectUris, textFieldOf(redirect_uri), splitFieldErrors(problem).errors);
    },
  );
  addOperation(router, options, setRedirectUris);
  addOperation(router, options, addRedirectUri, { show, to });
  addOperation(router, options, removeRedirectUri, { show, to });
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
  return html`<section class="group"><div class="title"><div><h2>Redirect URIs</h2>
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
