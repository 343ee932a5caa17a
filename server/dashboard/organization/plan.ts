import type { Context } from "koa";
import { z } from "zod";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import { limitsOf, PLANS, type Plan } from "../../../resources/plans.ts";
import { showPlanChange } from "../../clients/client-view.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { MANAGERS, membershipOf, signedInUserOf } from "../access.ts";
import { type NewSecret, newSecretPath } from "../api-access/secret-page.ts";
import { formFieldsOf, redisplayForm, respondToChange, type Show, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { capitalized } from "./pages.ts";
import { downgradePage, plansPage } from "./plan-page.ts";

const PATH = `${ORGANIZATION}/plan`;

const choice = z.strictObject({ plan: z.enum(PLANS, { error: "must be free, growth or premium" }) });

/** Adds the routes that compare plans and change the organization's plan. */
export const planRoutes: RouteModule = (router, { storage, settings, allow, oneTimeView }) => {
  const { organizations, grants, links, webhooks } = storage;
  const isSelfService = settings.SELF_SERVICE_PLANS;
  const newSecrets = oneTimeView<NewSecret>();

  const show: Show = async (ctx, error) => {
    const membership = membershipOf(ctx);
    if (!prefersHtml(ctx)) {
      const plans = PLANS.map((name) => ({ name, limits: limitsOf(name) }));
      ctx.body = { plan: membership.plan, self_service: isSelfService, plans };
      return;
    }
    const usage = await links.usage(membership.id);
    const body = plansPage({ membership, usage, isSelfService, csrf: signedInUserOf(ctx).csrf });
    const intro = "Plans set your limits. This server doesn’t charge for them.";
    showPage(ctx, { title: "Plan", intro, section: "plan", error }, body);
  };
  router.get(PATH, allow(), (ctx) => show(ctx));

  router.get(`${PATH}/:plan`, allow(...MANAGERS), async (ctx) => {
    if (!isSelfService) throw selfServiceDisabled();
    const membership = membershipOf(ctx);
    const to = PLANS.find((name) => name === ctx.params.plan);
    if (!to || PLANS.indexOf(to) >= PLANS.indexOf(membership.plan)) throw notFound("plan");
    const { id } = membership;
    const [authorizedApps, hooks] = await Promise.all([
      grants.listByOrganization(id),
      webhooks.list(id, limitsOf(membership.plan).webhooks),
    ]);
    const counts = { apps: authorizedApps.length, webhooks: hooks.filter(({ enabled }) => enabled).length };
    const body = downgradePage({ membership, to, counts, csrf: signedInUserOf(ctx).csrf });
    showPage(ctx, { title: `Downgrade to ${capitalized(to)}?`, section: "plan" }, body);
  });

  const change = async (ctx: Context) => {
    if (!isSelfService) throw selfServiceDisabled();
    const { id } = membershipOf(ctx);
    const { plan } = validate(choice, await formFieldsOf(ctx));
    const changed = await organizations.setPlan(id, plan as Plan, signedInUserOf(ctx).actor);
    if (!changed) throw notFound("organization");
    if (changed.client && prefersHtml(ctx)) {
      return newSecrets.redirect(ctx, newSecretPath(id), changed.client);
    }
    const done = "plan-changed";
    respondToChange(ctx, { to: sectionPath(id, "plan"), done, body: showPlanChange(changed) });
  };
  router.put(PATH, allow(...MANAGERS), change);
  router.post(PATH, allow(...MANAGERS), redisplayForm(show), change);
};

function selfServiceDisabled(): Problem {
  return new Problem(403, "self_service_disabled", "The operator of this service manages plans.");
}
