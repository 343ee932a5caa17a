import type { Context } from "koa";
import { z } from "zod";
import { limitsOf, PLANS, type Plan } from "../../resources/plans.ts";
import { notFound, Problem } from "../../resources/problem.ts";
import { validate } from "../../resources/validate.ts";
import { showPlanChange } from "../client-view.ts";
import { prefersHtml } from "../people/input.ts";
import { sectionPath } from "../views/dashboard/layout.ts";
import { capitalized } from "../views/dashboard/organizations.ts";
import { downgradePage, plansPage } from "../views/dashboard/plan.ts";
import type { NewSecret } from "../views/dashboard/secret.ts";
import { MANAGERS, membershipOf, personOf } from "./access.ts";
import { again, answerDone, fieldsOf, type Show, showPage } from "./answers.ts";
import { newSecretPath } from "./client.ts";
import { ORGANIZATION, type Subject } from "./subject.ts";

const PATH = `${ORGANIZATION}/plan`;

const choice = z.strictObject({ plan: z.enum(PLANS, { error: "must be free, growth or premium" }) });

/** The plan: compare, go up, go down. */
export const plan: Subject = (router, { storage, settings, allow, oneTimeView }) => {
  const { organizations, grants, webhooks } = storage;
  const isSelfService = settings.SELF_SERVICE_PLANS;
  const newSecrets = oneTimeView<NewSecret>();

  const show: Show = async (ctx, error) => {
    const membership = membershipOf(ctx);
    if (!prefersHtml(ctx)) {
      const plans = PLANS.map((name) => ({ name, limits: limitsOf(name) }));
      ctx.body = { plan: membership.plan, self_service: isSelfService, plans };
      return;
    }
    const body = plansPage({ membership, isSelfService, csrf: personOf(ctx).csrf });
    const intro = "No payment is taken: a plan is chosen, and nothing is charged.";
    showPage(ctx, { title: "Plan", intro, section: "plan", error }, body);
  };
  router.get(PATH, allow(), (ctx) => show(ctx));

  /** What stops, before it does. */
  router.get(`${PATH}/:plan`, allow(...MANAGERS), async (ctx) => {
    if (!isSelfService) throw managedElsewhere();
    const membership = membershipOf(ctx);
    const to = PLANS.find((name) => name === ctx.params.plan);
    if (!to || PLANS.indexOf(to) >= PLANS.indexOf(membership.plan)) throw notFound("way down");
    const { id } = membership;
    const [apps, hooks] = await Promise.all([
      grants.ofOrganization(id),
      webhooks.list(id, limitsOf(membership.plan).webhooks),
    ]);
    const counts = { apps: apps.length, webhooks: hooks.filter(({ enabled }) => enabled).length };
    const body = downgradePage({ membership, to, counts, csrf: personOf(ctx).csrf });
    showPage(ctx, { title: `Change to ${capitalized(to)}?`, section: "plan" }, body);
  });

  const change = async (ctx: Context) => {
    if (!isSelfService) throw managedElsewhere();
    const { id } = membershipOf(ctx);
    const { plan } = validate(choice, await fieldsOf(ctx));
    const changed = await organizations.setPlan(id, plan as Plan, personOf(ctx).by);
    if (!changed) throw notFound("organization");
    if (changed.client && prefersHtml(ctx)) {
      return newSecrets.redirect(ctx, newSecretPath(id), changed.client);
    }
    const done = "plan-changed";
    answerDone(ctx, { to: sectionPath(id, "plan"), done, body: showPlanChange(changed) });
  };
  router.put(PATH, allow(...MANAGERS), change);
  router.post(PATH, allow(...MANAGERS), again(show), change);
};

function managedElsewhere(): Problem {
  return new Problem(403, "plans_managed_elsewhere", "Plans are changed by whoever runs the service.");
}
