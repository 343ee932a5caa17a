import type { Context } from "koa";
import { found, Problem } from "../../../resources/http/problem.ts";
import { describeApproval } from "../../clients/client-view.ts";
import { textFieldOf } from "../../http/request-body.ts";
import { deleteOrganization, getSettings, renameOrganization } from "../../operations/organizations.ts";
import { initial } from "../../ui/controls.ts";
import { membershipOf, pathTo, signedInUserOf } from "../access.ts";
import { formFieldsOf, type Show, splitFieldErrors } from "../forms.ts";
import { addOperation, addOperationPage, addReading } from "../operation-routes.ts";
import { showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { addPolicyRoutes } from "./app-policy.ts";
import { addFallbackRoutes } from "./fallback-url.ts";
import { addSecondFactorRoutes } from "./second-factor.ts";
import { deletionForm, settingsPage } from "./settings-page.ts";

/** The page of an organization's settings, and the changes that its forms request. */
export const settingsRoutes: RouteModule = (router, options) => {
  const { storage, settings } = options;
  const to = (ctx: Context) => pathTo(ctx, "settings");

  const show: Show = async (ctx, error, problem) => {
    const membership = membershipOf(ctx);
    const { id } = membership;
    const [policy, listed, isEnterpriseManaged, requiresFactor, fallback_url] = await Promise.all([
      storage.appPolicies.find(id),
      storage.approvedApps.list(id),
      storage.enterpriseAuthorization.isEnabled(id),
      storage.secondFactorRequirement.isRequired(id),
      storage.fallbackUrls.find(id),
    ]);
    const { error: rejection = error, errors } = splitFieldErrors(problem);
    const typed = problem ? await formFieldsOf(ctx) : {};
    const body = settingsPage({
      membership,
      user: signedInUserOf(ctx),
      settings,
      policy: found(policy, "organization"),
      approved: listed.map(describeApproval),
      isEnterpriseManaged,
      requiresFactor,
      rejected: { name: "name" in typed ? textFieldOf(typed.name) : undefined, error: errors.name },
      fallback: { value: textFieldOf(typed.fallback_url ?? fallback_url), error: errors.fallback_url },
    });
    const tile = initial(membership.name);
    showPage(ctx, { title: "Settings", tile, section: "settings", error: rejection, body });
  };

  addReading(router, options, getSettings, (ctx) => show(ctx));
  addPolicyRoutes(router, options, show);
  addSecondFactorRoutes(router, options, show);
  addFallbackRoutes(router, options, show);
  addOperation(router, options, renameOrganization, { show, to });
  addOperationPage(router, options, deleteOrganization, {
    path: `${ORGANIZATION}/delete`,
    section: "settings",
    to: () => "/dashboard",
    async before(ctx, next) {
      if ((await formFieldsOf(ctx)).name === membershipOf(ctx).name) return next();
      throw new Problem(422, "invalid_name", "The name doesn't match. Type the organization's exact name.");
    },
    render(ctx) {
      const membership = membershipOf(ctx);
      const heading = `Delete ${membership.name}`;
      return { title: "Delete organization", heading, body: deletionForm(membership) };
    },
  });
};
