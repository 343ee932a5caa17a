import type { Context } from "koa";
import { z } from "zod";
import type { Organization } from "../../../adapters/organizations/store.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { withQuotaProblems } from "../../../resources/http/quota.ts";
import { validate } from "../../../resources/http/validate.ts";
import { ORGANIZATIONS_PER_USER } from "../../../resources/plans.ts";
import { showPlanChange } from "../../clients/client-view.ts";
import { nameSchema } from "../../credentials/names.ts";
import { prefersHtml, textFieldOf } from "../../http/request-body.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { actorOf, MANAGERS, membershipOf, pathTo, signedInUserOf } from "../access.ts";
import { showMembership } from "../membership-view.ts";
import {
  formFieldsOf,
  respondToChange,
  type Show,
  sendJson,
  showPage,
  splitFieldErrors,
} from "../responses.ts";
import { addChange, addForm, ORGANIZATION, type RouteModule } from "../route.ts";
import { addFallbackRoutes } from "./fallback-url.ts";
import { deletionForm, newOrganizationForm, noOrganizations, organizationChoice, overview } from "./pages.ts";

const COOKIE = "organization"; // the last one the user viewed

const naming = z.strictObject({ name: nameSchema });

export const organizationRoutes: RouteModule = (router, options) => {
  const { storage, services, allow } = options;
  const { organizations, grants, members } = storage;

  router.get("/dashboard", async (ctx) => {
    const memberships = await organizations.listByUser(signedInUserOf(ctx).id);
    if (!prefersHtml(ctx)) return sendJson(ctx, { organizations: memberships.map(showMembership) });
    const lastViewed = memberships.find(({ id }) => id === ctx.cookies.get(COOKIE));
    const home = memberships.length === 1 ? memberships[0] : lastViewed;
    if (home) return void ctx.redirect(sectionPath(home.id, "overview"));
    if (memberships.length === 0) return showPage(ctx, { title: "Welcome", body: noOrganizations() });
    ctx.state.memberships = memberships;
    showPage(ctx, { title: "Your organizations", body: organizationChoice(memberships) });
  });

  addForm(router, {
    path: "/dashboard/organizations/new",
    action: "/dashboard/organizations",
    async render(ctx, problem) {
      ctx.state.memberships = await organizations.listByUser(signedInUserOf(ctx).id);
      const { errors, ...error } = splitFieldErrors(problem);
      const name = problem && (await nameIn(ctx));
      return { title: "New organization", ...error, body: newOrganizationForm({ name, error: errors.name }) };
    },
    async change(ctx) {
      const { name } = validate(naming, await formFieldsOf(ctx));
      const { id, actor } = signedInUserOf(ctx);
      const change = await withQuotaProblems(
        organizations.create(name, "free", actor, id, ORGANIZATIONS_PER_USER),
      );
      const to = sectionPath(change.organization.id, "overview");
      respondToChange(ctx, { to, done: "created", status: 201, body: showPlanChange(change) });
    },
  });

  const show: Show = async (ctx, _error, problem) => {
    const membership = membershipOf(ctx);
    const { id, name, role } = membership;
    const organization = await services.showOrganization(id);
    if (!prefersHtml(ctx)) return sendJson(ctx, { organization: { ...organization, role } });
    ctx.cookies.set(COOKIE, id, { path: "/dashboard", sameSite: "lax", overwrite: true });
    const [apps, listed, clicks] = await Promise.all([
      grants.listByOrganization(id),
      members.list(id),
      services.links.analytics(actorOf(ctx), undefined, {}),
    ]);
    const counts = { links: organization.usage.links, apps: apps.length, members: listed.length };
    const { errors, ...error } = splitFieldErrors(problem);
    const typed = problem ? await formFieldsOf(ctx) : {};
    const rejected = { name: "name" in typed ? textFieldOf(typed.name) : undefined, error: errors.name };
    const fallback = {
      value: textFieldOf(typed.fallback_url ?? organization.fallback_url),
      error: errors.fallback_url,
    };
    const body = overview({ membership, counts, clicks, rejected, fallback });
    showPage(ctx, { title: "Overview", heading: name, section: "overview", ...error, body });
  };
  router.get(ORGANIZATION, allow(), (ctx) => show(ctx));
  addFallbackRoutes(router, options, show);

  addChange(router, ["patch", ORGANIZATION], { access: [allow(...MANAGERS)], show }, async (ctx) => {
    const { id, plan } = membershipOf(ctx);
    const { name } = validate(naming, await formFieldsOf(ctx));
    const isRenamed = await organizations.rename(id, name, signedInUserOf(ctx).actor);
    if (!isRenamed) throw notFound("organization");
    const organization: Organization = { id, name, plan };
    respondToChange(ctx, { to: pathTo(ctx, "overview"), done: "renamed", body: { organization } });
  });

  addForm(router, {
    path: `${ORGANIZATION}/delete`,
    program: ["delete", ORGANIZATION],
    access: allow("owner"),
    section: "overview",
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

async function nameIn(ctx: Context): Promise<string> {
  return String((await formFieldsOf(ctx)).name ?? "");
}
