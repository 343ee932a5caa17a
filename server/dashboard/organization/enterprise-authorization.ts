import type { Context } from "koa";
import { z } from "zod";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { csrfField } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { membershipOf, signedInUserOf } from "../access.ts";
import { respondToChange, switchFieldsOf } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";

const setting = z.strictObject({ enabled: z.boolean({ error: "must be true or false" }) });

/** Adds the route that turns enterprise-managed authorization on and off, which only owners may do. */
export const enterpriseAuthorizationRoutes: RouteModule = (router, { storage, settings, allow }) => {
  const change = async (ctx: Context) => {
    const { id } = membershipOf(ctx);
    const path = sectionPath(id, "apps");
    requireRecentSignIn(ctx, path);
    if (!settings.IDP_ISSUER) {
      throw new Problem(409, "no_identity_provider", "This server has no identity provider.");
    }
    const { enabled } = validate(setting, await switchFieldsOf(ctx, "enabled"));
    const { actor } = signedInUserOf(ctx);
    if (!(await storage.enterpriseAuthorization.set(id, enabled, actor))) throw notFound("organization");
    respondToChange(ctx, { to: path, done: enabled ? "enterprise-on" : "enterprise-off" });
  };
  const path = `${ORGANIZATION}/apps/enterprise-authorization`;
  router.put(path, allow("owner"), change);
  router.post(path, allow("owner"), change);
};

type Panel = { organizationId: string; isEnabled: boolean; idpName: string; csrf: string | undefined };

/** Renders whether the identity provider may authorize apps; the button changes it. */
export function enterpriseAuthorizationPanel({ organizationId, isEnabled, idpName, csrf }: Panel): Html {
  return html`<section class="panel">
<h2>Enterprise-managed authorization</h2>
<p class="soft">${
    isEnabled
      ? html`${idpName} may authorize apps for members of this organization, without asking them. Each app still gets only what the member’s role allows.`
      : html`Members authorize each app themselves. You can let the administrators of ${idpName} do that for them.`
  }</p>
<form method="post" action="${sectionPath(organizationId, "apps")}/enterprise-authorization">${csrfField(csrf)}
<input type="hidden" name="enabled" value="${String(!isEnabled)}">
<button type="submit" class="quiet">${isEnabled ? "Turn off" : `Let ${idpName} authorize apps`}</button>
</form></section>`;
}
