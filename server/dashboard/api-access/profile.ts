import type { Router } from "@koa/router";
import { z } from "zod";
import type { ClientProfile } from "../../../adapters/oauth/client-profiles.ts";
import { notFound } from "../../../resources/http/problem.ts";
import { checkText, validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { NAME_MAX, nameSchema } from "../../credentials/names.ts";
import { type Input, textFieldOf } from "../../http/request-body.ts";
import { CSRF_FIELD, field } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { actorOf, MANAGERS } from "../access.ts";
import { type FieldErrors, formFieldsOf, isForm, respondToChange, splitFieldErrors } from "../responses.ts";
import { addChange, type RouteOptions } from "../route.ts";
import { CLIENT, clientOf } from "./client.ts";
import { addTab, tabPath } from "./tabs.ts";

const URI_MAX = 255;
const TAB = "client/profile";

const schema = z.strictObject({
  client_name: nameSchema.nullable().default(null),
  client_uri: z
    .string({ error: "must be an https URL" })
    .check(checkText(validateHomepage))
    .nullable()
    .default(null),
});

function validateHomepage(uri: string): string | undefined {
  if (uri.length > URI_MAX) return `must be at most ${URI_MAX} characters`;
  const url = URL.parse(uri);
  const isHttps = url?.protocol === "https:" && !url.username && !url.password && !/[^!-~]/.test(uri);
  return isHttps ? undefined : "must be an https URL";
}

/** Names are those of RFC 7591 §2. */
export function showProfile(profile: Pick<ClientProfile, "name" | "homepage"> | undefined) {
  return { client_name: profile?.name ?? null, client_uri: profile?.homepage ?? null };
}

export function addProfileRoutes(router: Router, options: RouteOptions): void {
  const { storage, allow } = options;
  const { clients } = storage;
  const access = [allow(...MANAGERS)];

  const show = addTab(router, options, TAB, {
    async body(ctx, { clientId }, problem) {
      const profile = await clients.findProfile(clientId);
      if (!profile) throw notFound("client");
      const { errors } = splitFieldErrors(problem);
      return profilePage(tabPath(ctx, TAB), profile, problem && (await formFieldsOf(ctx)), errors);
    },
    data: async (_, { clientId }) => showProfile(await clients.findProfile(clientId)),
  });

  addChange(router, ["put", `${CLIENT}/profile`], { access, show }, async (ctx) => {
    requireRecentSignIn(ctx, tabPath(ctx, TAB));
    const fields = await formFieldsOf(ctx);
    const input = isForm(ctx) ? withoutEmpty(fields) : fields;
    const { client_name: name, client_uri: homepage } = validate(schema, input);
    const { organizationId, actor } = actorOf(ctx);
    await clientOf(ctx, clients);
    await clients.setProfile(organizationId, { name, homepage }, actor);
    respondToChange(ctx, {
      to: tabPath(ctx, TAB),
      done: "profile-saved",
      body: showProfile({ name, homepage }),
    });
  });
}

/** A form sends an empty text for a value that isn't set. */
function withoutEmpty(fields: Input): Input {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ""));
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
  attributes: html`maxlength="${URI_MAX}" placeholder="https://" inputmode="url" autocapitalize="none" autocomplete="off" spellcheck="false"`,
})}
<button type="submit">Save</button>
</form>`;
}
