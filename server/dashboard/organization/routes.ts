import type { Router } from "@koa/router";
import type { Context } from "koa";
import { z } from "zod";
import type { Organization } from "../../../adapters/organizations/store.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { withQuotaProblems } from "../../../resources/http/quota.ts";
import { validate } from "../../../resources/http/validate.ts";
import { ORGANIZATIONS_PER_USER } from "../../../resources/plans.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { showPlanChange } from "../../clients/client-view.ts";
import { nameSchema } from "../../credentials/names.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { actorOf, MANAGERS, membershipOf, signedInUserOf } from "../access.ts";
import { showMembership } from "../membership-view.ts";
import {
  formFieldsOf,
  redisplayForm,
  respondToChange,
  type Show,
  showPage,
  splitFieldErrors,
} from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { deletionForm, newOrganizationForm, noOrganizations, organizationChoice, overview } from "./pages.ts";

const COOKIE = "organization"; // the last one the user viewed

const naming = z.strictObject({ name: nameSchema });

type Options = Parameters<RouteModule>[1];

/** Adds the routes that list, create, show, rename and delete organizations. */
export const organizationRoutes: RouteModule = (router, options) => {
  addHomeRoute(router, options);
  addCreationRoutes(router, options);
  addOverviewRoutes(router, options);
  addDeletionRoutes(router, options);
};

function addHomeRoute(router: Router, { storage: { organizations } }: Options): void {
  router.get("/dashboard", async (ctx) => {
    const memberships = await organizations.listByUser(signedInUserOf(ctx).id);
    if (!prefersHtml(ctx)) {
      ctx.body = { organizations: memberships.map(showMembership) };
      return;
    }
    const lastViewed = memberships.find(({ id }) => id === ctx.cookies.get(COOKIE));
    const home = memberships.length === 1 ? memberships[0] : lastViewed;
    if (home) return void ctx.redirect(sectionPath(home.id, "overview"));
    if (memberships.length === 0) {
      return showPage(ctx, { title: "Welcome" }, noOrganizations(signedInUserOf(ctx).csrf));
    }
    ctx.state.memberships = memberships;
    showPage(ctx, { title: "Your organizations" }, organizationChoice(memberships));
  });
}

function addCreationRoutes(router: Router, { storage: { organizations } }: Options): void {
  const showForm: Show = async (ctx, _error, problem) => {
    const { id, csrf } = signedInUserOf(ctx);
    ctx.state.memberships = await organizations.listByUser(id);
    const { error, errors } = splitFieldErrors(problem);
    const name = problem && (await nameIn(ctx));
    const body = newOrganizationForm({ csrf, name, error: errors.name });
    showPage(ctx, { title: "New organization", error }, body);
  };
  router.get("/dashboard/organizations/new", (ctx) => showForm(ctx));

  router.post("/dashboard/organizations", redisplayForm(showForm), async (ctx) => {
    const { name } = validate(naming, await formFieldsOf(ctx));
    const user = signedInUserOf(ctx);
    const change = await withQuotaProblems(
      organizations.create(name, "free", user.actor, user.id, ORGANIZATIONS_PER_USER),
    );
    const to = sectionPath(change.organization.id, "overview");
    respondToChange(ctx, { to, done: "created", status: 201, body: showPlanChange(change) });
  });
}

function addOverviewRoutes(router: Router, options: Options): void {
  const { storage, allow } = options;
  const managers = allow(...MANAGERS);
  const show = createShow(options);

  const rename = async (ctx: Context) => {
    const { id, plan } = membershipOf(ctx);
    const { name } = validate(naming, await formFieldsOf(ctx));
    const isRenamed = await storage.organizations.rename(id, name, signedInUserOf(ctx).actor);
    if (!isRenamed) throw notFound("organization");
    const organization: Organization = { id, name, plan };
    respondToChange(ctx, { to: sectionPath(id, "overview"), done: "renamed", body: { organization } });
  };

  router.get(ORGANIZATION, allow(), (ctx) => show(ctx));
  router.patch(ORGANIZATION, managers, rename);
  router.post(ORGANIZATION, managers, redisplayForm(show), rename);
}

function createShow({ storage: { grants, members }, services }: Options): Show {
  return async function show(ctx, _error, problem) {
    const membership = membershipOf(ctx);
    const { id, name, role } = membership;
    const organization = await services.showOrganization(id);
    if (!prefersHtml(ctx)) {
      ctx.body = { organization: { ...organization, role } };
      return;
    }
    ctx.cookies.set(COOKIE, id, { path: "/dashboard", sameSite: "lax", overwrite: true });
    const [apps, listed, clicks] = await Promise.all([
      grants.listByOrganization(id),
      members.list(id),
      services.links.analytics(actorOf(ctx), undefined, {}),
    ]);
    const counts = { links: organization.usage.links, apps: apps.length, members: listed.length };
    const { error, errors } = splitFieldErrors(problem);
    const rejected = { name: problem && (await nameIn(ctx)), error: errors.name };
    const body = overview({ membership, counts, clicks, csrf: signedInUserOf(ctx).csrf, rejected });
    showPage(ctx, { title: "Overview", heading: name, section: "overview", error }, body);
  };
}

function addDeletionRoutes(router: Router, { storage: { organizations }, allow }: Options): void {
  const owners = allow("owner");

  const remove = async (ctx: Context) => {
    const { id } = membershipOf(ctx);
    if (!(await organizations.remove(id, signedInUserOf(ctx).actor))) throw notFound("organization");
    respondToChange(ctx, { to: "/dashboard", done: "deleted" });
  };
  const showForm: Show = async (ctx, error) => {
    requireRecentSignIn(ctx);
    const membership = membershipOf(ctx);
    const body = deletionForm(membership, signedInUserOf(ctx).csrf);
    const heading = `Delete ${membership.name}`;
    showPage(ctx, { title: "Delete organization", heading, section: "overview", error }, body);
  };

  router.delete(ORGANIZATION, owners, async (ctx) => {
    requireRecentSignIn(ctx);
    await remove(ctx);
  });
  router.get(`${ORGANIZATION}/delete`, owners, (ctx) => showForm(ctx));
  router.post(`${ORGANIZATION}/delete`, owners, redisplayForm(showForm), async (ctx) => {
    const { id, name } = membershipOf(ctx);
    requireRecentSignIn(ctx, `${sectionPath(id, "overview")}/delete`);
    const { name: typed } = await formFieldsOf(ctx);
    if (typed !== name) {
      throw new Problem(422, "invalid_name", "The name doesn't match. Type the organization's exact name.");
    }
    await remove(ctx);
  });
}

/** Returns the submitted name. */
async function nameIn(ctx: Context): Promise<string> {
  return String((await formFieldsOf(ctx)).name ?? "");
}
