import type { Router } from "@koa/router";
import { setFallbackUrl } from "../../operations/organizations.ts";
import { CSRF_FIELD, settingPanel } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { pathTo } from "../access.ts";
import type { Show } from "../forms.ts";
import { toUrl, urlField } from "../links/form.ts";
import { addOperation } from "../operation-routes.ts";
import type { RouteOptions } from "../route.ts";

export function addFallbackRoutes(router: Router, options: RouteOptions, show: Show): void {
  addOperation(router, options, setFallbackUrl, {
    show,
    toInput: (fields) => ({ ...fields, fallback_url: toUrl(fields.fallback_url) || null }),
    to: (ctx) => pathTo(ctx, "settings"),
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
