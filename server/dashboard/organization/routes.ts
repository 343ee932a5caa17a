import { createOrganization, getOrganization, listOrganizations } from "../../operations/organizations.ts";
import { initial } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { actorOf, membershipOf, signedInUserOf } from "../access.ts";
import { formFieldsOf, splitFieldErrors } from "../forms.ts";
import { readPrevious } from "../links/analytics.ts";
import { addOperationPage, addReading } from "../operation-routes.ts";
import { respondToChange, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { CHANGE_TYPES } from "./audit-query.ts";
import { overviewPage } from "./overview-page.ts";
import { newOrganizationForm, noOrganizations, organizationChoice } from "./pages.ts";

const COOKIE = "organization"; // the last one the user viewed
const CHECKLIST_COOKIE = "checklist";
const YEAR_MS = 365 * 24 * 60 * 60 * 1000;
const TOP_LINKS = 5;
// The overview shows the latest of them in groups.
const READ_ACTIVITIES = 100;

export const organizationRoutes: RouteModule = (router, options) => {
  const { storage, services, urls, allow } = options;
  const { organizations, grants, members } = storage;

  addReading(router, options, listOrganizations, async (ctx) => {
    const memberships = await organizations.listByUser(signedInUserOf(ctx).id);
    const lastViewed = memberships.find(({ id }) => id === ctx.cookies.get(COOKIE));
    const home = memberships.length === 1 ? memberships[0] : lastViewed;
    if (home) return void ctx.redirect(sectionPath(home.id, "overview"));
    if (memberships.length === 0) return showPage(ctx, { title: "Welcome", body: noOrganizations() });
    ctx.state.memberships = memberships;
    showPage(ctx, { title: "Your organizations", body: organizationChoice(memberships) });
  });

  addOperationPage(router, options, createOrganization, {
    path: "/dashboard/organizations/new",
    to: (_, change) => sectionPath(change.organization.id, "overview"),
    async render(ctx, problem) {
      ctx.state.memberships = await organizations.listByUser(signedInUserOf(ctx).id);
      const { errors, ...error } = splitFieldErrors(problem);
      const name = problem && String((await formFieldsOf(ctx)).name ?? "");
      return { title: "New organization", ...error, body: newOrganizationForm({ name, error: errors.name }) };
    },
  });

  addReading(router, options, getOrganization, async (ctx) => {
    const membership = membershipOf(ctx);
    const { id, name } = membership;
    const organization = await services.showOrganization(id);
    ctx.cookies.set(COOKIE, id, { path: "/dashboard", sameSite: "lax", overwrite: true });
    const caller = actorOf(ctx);
    const isReader = isManager(membership);
    const clicks = await services.links.analytics(caller, undefined, {});
    const range = { from: clicks.days[0]?.date, to: clicks.days.at(-1)?.date };
    const [apps, listed, previous, topLinks, activity, webhooks] = await Promise.all([
      grants.listByOrganization(id),
      members.list(id),
      readPrevious(clicks, (range) => services.links.analytics(caller, undefined, range)),
      services.links.topLinks(caller, range, TOP_LINKS),
      isReader ? storage.audit.list(id, { types: CHANGE_TYPES }, READ_ACTIVITIES) : [],
      isReader ? services.webhooks.list(caller, { limit: 100 }) : undefined,
    ]);
    const { usage } = organization;
    const body = overviewPage({
      membership,
      usage,
      counts: { apps: apps.length, members: listed.length },
      webhooks: webhooks?.webhooks ?? [],
      clicks,
      previous,
      topLinks,
      activity,
      hasMoreActivity: activity.length === READ_ACTIVITIES,
      isChecklistDismissed: ctx.cookies.get(CHECKLIST_COOKIE) !== undefined,
      shortUrl: urls.short,
    });
    const tile = initial(membership.name);
    showPage(ctx, { title: "Overview", heading: name, tile, section: "overview", body });
  });

  router.post(`${ORGANIZATION}/checklist`, allow(), (ctx) => {
    const { id } = membershipOf(ctx);
    const path = sectionPath(id, "overview");
    ctx.cookies.set(CHECKLIST_COOKIE, "dismissed", {
      path,
      sameSite: "lax",
      maxAge: YEAR_MS,
      overwrite: true,
    });
    respondToChange(ctx, { to: path });
  });
};
