import type { Router } from "@koa/router";
import { z } from "zod";
import { MANAGERS } from "../../../resources/access/scopes.ts";
import { notFound } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import { CSRF_FIELD, settingPanel } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { actorOf, pathTo } from "../access.ts";
import { toUrl, urlField } from "../links/url-field.ts";
import { formFieldsOf, isForm, respondToChange, type Show } from "../responses.ts";
import { addChange, ORGANIZATION, type RouteOptions } from "../route.ts";

export function addFallbackRoutes(
  router: Router,
  { storage, services, allow }: RouteOptions,
  show: Show,
): void {
  const schema = z.strictObject({ fallback_url: services.links.schemas.fallbackUrl });
  const path = `${ORGANIZATION}/fallback-url`;
  addChange(router, ["put", path], { access: [allow(...MANAGERS)], show }, async (ctx) => {
    const { organizationId, actor } = actorOf(ctx);
    const fields = await formFieldsOf(ctx);
    const input = validate(
      schema,
      isForm(ctx) ? { ...fields, fallback_url: toUrl(fields.fallback_url) || null } : fields,
    );
    if (!(await storage.fallbackUrls.set(organizationId, input.fallback_url, actor)))
      throw notFound("organization");
    respondToChange(ctx, { to: pathTo(ctx, "settings"), done: "fallback-url-saved", body: input });
  });
}

/** Renders where visitors of unavailable links go by default. */
export function fallbackPanel(
  organizationId: string,
  { value, error }: { value: string; error: string | undefined },
): Html {
  const text =
    "Visitors of links that are archived, expired, used up or deleted go here, unless the link has its own fallback URL. Leave empty to show a page that says the link is no longer available.";
  return settingPanel(
    { title: "Unavailable links", text },
    html`<form method="post" action="${sectionPath(organizationId, "overview")}/fallback-url" class="row">${CSRF_FIELD}
${urlField({ name: "fallback_url", label: "Fallback URL", value, error })}
<button type="submit" class="quiet">Save fallback URL</button>
</form>`,
  );
}
