import type { Router } from "@koa/router";
import type { Context } from "koa";
import { z } from "zod";
import type { ClientProfile } from "../../../adapters/oauth/client-profiles.ts";
import type { PublicUrls } from "../../../resources/access/resource-metadata.ts";
import { notFound } from "../../../resources/http/problem.ts";
import { checkText, invalidField, validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { createLogo } from "../../clients/logos/logo.ts";
import { NAME_MAX, nameSchema } from "../../credentials/names.ts";
import { type Input, textFieldOf } from "../../http/request-body.ts";
import { appLogo, CSRF_FIELD, field, formButton, logoPath } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { actorOf, MANAGERS } from "../access.ts";
import {
  type Done,
  type FieldErrors,
  formFieldsOf,
  isForm,
  respondToChange,
  splitFieldErrors,
} from "../responses.ts";
import { addChange, type RouteOptions } from "../route.ts";
import { CLIENT, clientOf } from "./client.ts";
import { addTab, tabPath } from "./tabs.ts";

const URI_MAX = 255;
const TAB = "client/branding";
const PATH = `${CLIENT}/branding`;
const LOGO = `${PATH}/logo`;

const branding = z.strictObject({
  client_name: nameSchema.nullable().default(null),
  client_uri: z
    .string({ error: "must be an https URL" })
    .check(checkText(validateHomepage))
    .nullable()
    .default(null),
});

function validateHomepage(uri: string): string | undefined {
  const url = URL.parse(uri);
  const isHttps = url?.protocol === "https:" && !url.username && !url.password && !/[^!-~]/.test(uri);
  if (!isHttps) return "must be an https URL";
  return uri.length > URI_MAX ? `must be at most ${URI_MAX} characters` : undefined;
}

/** Names are those of RFC 7591 §2. */
export function showBranding({ base }: PublicUrls, profile: ClientProfile | undefined) {
  const { name = null, homepage = null, logoHash } = profile ?? {};
  return {
    client_name: name,
    client_uri: homepage,
    logo_uri: logoHash ? base + logoPath(logoHash) : null,
  };
}

export function addBrandingRoutes(router: Router, options: RouteOptions): void {
  const { storage, urls, allow } = options;
  const { clients } = storage;
  const access = [allow(...MANAGERS)];

  const show = addTab(router, options, TAB, {
    async body(ctx, { clientId }, problem) {
      const profile = await clients.findProfile(clientId);
      if (!profile) throw notFound("client");
      const { errors } = splitFieldErrors(problem);
      return brandingPage(tabPath(ctx, TAB), profile, problem && (await formFieldsOf(ctx)), errors);
    },
    data: async (_, { clientId }) => showBranding(urls, await clients.findProfile(clientId)),
  });

  async function respond(ctx: Context, done: Done): Promise<void> {
    const { clientId } = await clientOf(ctx, clients);
    const body = showBranding(urls, await clients.findProfile(clientId));
    respondToChange(ctx, { to: tabPath(ctx, TAB), done, body });
  }

  addChange(router, ["put", PATH], { access, show }, async (ctx) => {
    requireRecentSignIn(ctx, tabPath(ctx, TAB));
    const fields = await formFieldsOf(ctx);
    const input = isForm(ctx) ? withoutEmpty(fields) : fields;
    const { client_name: name, client_uri: homepage } = validate(branding, input);
    const { organizationId, actor } = actorOf(ctx);
    await clientOf(ctx, clients);
    await clients.setProfile(organizationId, { name, homepage }, actor);
    await respond(ctx, "branding-saved");
  });

  addChange(router, ["put", LOGO], { access, show }, async (ctx) => {
    requireRecentSignIn(ctx, tabPath(ctx, TAB));
    const { logo: file } = await formFieldsOf(ctx);
    if (!(file instanceof File)) throw invalidField("logo", "must be a file in a multipart form");
    await clientOf(ctx, clients);
    const logo = await createLogo(Buffer.from(await file.arrayBuffer()));
    const { organizationId, actor } = actorOf(ctx);
    await clients.setLogo(organizationId, logo, actor);
    await respond(ctx, "logo-saved");
  });

  addChange(router, ["delete", LOGO], { access, show }, async (ctx) => {
    requireRecentSignIn(ctx, tabPath(ctx, TAB));
    const { organizationId, actor } = actorOf(ctx);
    await clientOf(ctx, clients);
    await clients.setLogo(organizationId, null, actor);
    await respond(ctx, "logo-removed");
  });
}

/** A form sends an empty text for a value that isn't set. */
function withoutEmpty(fields: Input): Input {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ""));
}

function brandingPage(
  path: string,
  profile: ClientProfile,
  submitted: Input | undefined,
  errors: FieldErrors,
): Html {
  const { name, organizationName, homepage, logoHash } = profile;
  // A rejected logo leaves the other form as it is stored.
  const values =
    submitted && "client_name" in submitted ? submitted : { client_name: name, client_uri: homepage };
  const logo = logoHash && logoPath(logoHash);
  return html`<section class="panel"><h2>Logo</h2>
<p class="soft">Users see it when your app asks for access. PNG or JPEG, up to 512 KB and 4096 × 4096 pixels.</p>
<div class="branding">${appLogo(name ?? organizationName, logo)}
<form method="post" action="${path}/logo" enctype="multipart/form-data" class="row">${CSRF_FIELD}
${field({ name: "logo", label: logo ? "Replace logo" : "Logo file", type: "file", error: errors.logo, attributes: html`required accept="image/png,image/jpeg"` })}
<button type="submit" class="quiet">Upload logo</button>
</form>
${logo && formButton({ action: `${path}/logo/delete`, text: "Remove logo", look: "danger" })}
</div></section>
<form method="post" action="${path}" class="panel stack">${CSRF_FIELD}
<h2>Name and homepage</h2>
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
  attributes: html`maxlength="${URI_MAX}" placeholder="https://" inputmode="url" autocapitalize="none" autocomplete="off" spellcheck="false"`,
})}
<button type="submit">Save</button>
</form>`;
}
