import type { Organization } from "../../../adapters/organizations/store.ts";
import { MANAGERS } from "../../../resources/access/scopes.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import { describeApproval, showApproval } from "../../clients/client-view.ts";
import { prefersHtml, textFieldOf } from "../../http/request-body.ts";
import { initial } from "../../ui/controls.ts";
import { membershipOf, pathTo, signedInUserOf } from "../access.ts";
import {
  formFieldsOf,
  respondToChange,
  type Show,
  sendJson,
  showPage,
  splitFieldErrors,
} from "../responses.ts";
import { addChange, addForm, ORGANIZATION, type RouteModule } from "../route.ts";
import { addPolicyRoutes } from "./app-policy.ts";
import { addFallbackRoutes } from "./fallback-url.ts";
import { naming } from "./routes.ts";
import { addSecondFactorRoutes } from "./second-factor.ts";
import { deletionForm, settingsPage } from "./settings-page.ts";

/** The page of an organization's settings, and the changes that its forms request. */
export const settingsRoutes: RouteModule = (router, options) => {
  const { storage, settings, allow } = options;
  const { organizations, appPolicies, approvedApps, enterpriseAuthorization, secondFactorRequirement } =
    storage;

  const show: Show = async (ctx, error, problem) => {
    const membership = membershipOf(ctx);
    const { id, name } = membership;
    const [policy, listed, isEnterpriseManaged, requiresFactor, fallback_url] = await Promise.all([
      appPolicies.find(id),
      approvedApps.list(id),
      enterpriseAuthorization.isEnabled(id),
      secondFactorRequirement.isRequired(id),
      storage.fallbackUrls.find(id),
    ]);
    if (!policy) throw notFound("organization");
    const approved = listed.map(describeApproval);
    if (!prefersHtml(ctx))
      return sendJson(ctx, {
        name,
        fallback_url,
        allowed_clients: policy.allowedClients,
        member_apps: policy.memberApps,
        approved_apps: approved.map(showApproval),
        enterprise_authorization: isEnterpriseManaged,
        require_second_factor: requiresFactor,
      });
    const { error: rejection = error, errors } = splitFieldErrors(problem);
    const typed = problem ? await formFieldsOf(ctx) : {};
    const body = settingsPage({
      membership,
      user: signedInUserOf(ctx),
      settings,
      policy,
      approved,
      isEnterpriseManaged,
      requiresFactor,
      rejected: { name: "name" in typed ? textFieldOf(typed.name) : undefined, error: errors.name },
      fallback: { value: textFieldOf(typed.fallback_url ?? fallback_url), error: errors.fallback_url },
    });
    const tile = initial(membership.name);
    showPage(ctx, { title: "Settings", tile, section: "settings", error: rejection, body });
  };

  router.get(`${ORGANIZATION}/settings`, allow(), (ctx) => show(ctx));
  addPolicyRoutes(router, options, show);
  addSecondFactorRoutes(router, options, show);
  addFallbackRoutes(router, options, show);

  addChange(router, ["patch", ORGANIZATION], { access: [allow(...MANAGERS)], show }, async (ctx) => {
    const { id, plan } = membershipOf(ctx);
    const { name } = validate(naming, await formFieldsOf(ctx));
    const isRenamed = await organizations.rename(id, name, signedInUserOf(ctx).actor);
    if (!isRenamed) throw notFound("organization");
    const organization: Organization = { id, name, plan };
    respondToChange(ctx, { to: pathTo(ctx, "settings"), done: "renamed", body: { organization } });
  });

  addForm(router, {
    path: `${ORGANIZATION}/delete`,
    program: ["delete", ORGANIZATION],
    access: allow("owner"),
    section: "settings",
    isSensitive: true,
    render(ctx) {
      const membership = membershipOf(ctx);
      const heading = `Delete ${membership.name}`;
      return { title: "Delete organization", heading, body: deletionForm(membership) };
    },
    async change(ctx) {
      const { id, name } = membershipOf(ctx);
      if (ctx.method === "POST" && (await formFieldsOf(ctx)).name !== name) {
        throw new Problem(422, "invalid_name", "The name doesn't match. Type the organization's exact name.");
      }
      if (!(await organizations.remove(id, signedInUserOf(ctx).actor))) throw notFound("organization");
      respondToChange(ctx, { to: "/dashboard", done: "deleted" });
    },
  });
};
