import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { ClientProfile } from "../../../adapters/oauth/clients.ts";
import { found } from "../../../resources/http/problem.ts";
import { NAME_MAX } from "../../credentials/names.ts";
import { type Input, textFieldOf } from "../../http/request-body.ts";
import { getClientProfile, HOMEPAGE_MAX, setClientProfile } from "../../operations/client.ts";
import { CSRF_FIELD, field } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type FieldErrors, formFieldsOf, splitFieldErrors } from "../forms.ts";
import { addOperation } from "../operation-routes.ts";
import type { RouteOptions } from "../route.ts";
import { addTab, tabPath } from "./tabs.ts";

export function addProfileRoutes(router: Router, options: RouteOptions): void {
  const { clients } = options.storage;
  const to = (ctx: Context) => tabPath(ctx, "client/profile");
  const show = addTab(
    router,
    options,
    "client/profile",
    getClientProfile,
    async (ctx, { clientId }, problem) => {
      const profile = found(await clients.findProfile(clientId), "client");
      const { errors } = splitFieldErrors(problem);
      return profilePage(to(ctx), profile, problem && (await formFieldsOf(ctx)), errors);
    },
  );
  addOperation(router, options, setClientProfile, { show, to });
}

function profilePage(
  path: string,
  { name, organizationName, homepage }: ClientProfile,
  submitted: Input | undefined,
  errors: FieldErrors,
): Html {
  const values = submitted ?? { client_name: name, client_uri: homepage };
  return html`<form method="post" action="${path}" class="panel stack">${CSRF_FIELD}
<h2>Name and homepage</h2>
<p class="soft">Users see them when your app asks for access.</p>
${field({
  name: "client_name",
  label: "App name (optional)",
  value: textFieldOf(values.client_name),
  error: errors.client_name,
  hint: `Without one, users see ${organizationName}. With one, they see both.`,
  attributes: html`maxlength="${NAME_MAX}" autocomplete="off" placeholder="${organizationName}"`,
})}
${field({
  name: "client_uri",
  label: "Homepage (optional)",
  value: textFieldOf(values.client_uri),
  isWide: true,
  error: errors.client_uri,
  hint: "Where users can read about your app.",
  attributes: html`maxlength="${HOMEPAGE_MAX}" placeholder="https://" inputmode="url" autocapitalize="none" autocomplete="off" spellcheck="false"`,
})}
<button type="submit">Save</button>
</form>`;
}
