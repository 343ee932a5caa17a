import type { Context } from "koa";
import { z } from "zod";
import type { Organization } from "../../adapters/organizations.ts";
import { notFound, Problem } from "../../resources/problem.ts";
import { validate } from "../../resources/validate.ts";
import { showPlanChange } from "../client-view.ts";
import { prefersHtml } from "../people/input.ts";
import { requireRecentSignIn } from "../people/person.ts";
import { sectionPath } from "../views/dashboard/layout.ts";
import {
  deletionForm,
  newOrganizationForm,
  noOrganizations,
  organizationChoice,
  overview,
} from "../views/dashboard/organizations.ts";
import { actorOf, membershipOf, personOf } from "./access.ts";
import { again, answerDone, byField, fieldsOf, type Show, showPage } from "./answers.ts";
import { ORGANIZATION, type Subject } from "./subject.ts";

const COOKIE = "organization"; // the one that was looked at last

const NAME_RULE = { error: "This must have 1 to 100 characters." };
const naming = z.strictObject({ name: z.string(NAME_RULE).trim().min(1, NAME_RULE).max(100, NAME_RULE) });

/** Organizations: make, look, rename, delete. */
export const organizations: Subject = (router, { storage, cores, allow }) => {
  const { organizations, grants, members } = storage;

  router.get("/dashboard", async (ctx) => {
    const memberships = await organizations.ofUser(personOf(ctx).id);
    if (!prefersHtml(ctx)) {
      ctx.body = { organizations: memberships };
      return;
    }
    const last = memberships.find(({ id }) => id === ctx.cookies.get(COOKIE));
    const [only] = memberships.length === 1 ? memberships : [last];
    if (only) return void ctx.redirect(sectionPath(only.id, "overview"));
    if (memberships.length === 0) {
      return showPage(ctx, { title: "Welcome" }, noOrganizations(personOf(ctx).csrf));
    }
    ctx.state.memberships = memberships;
    showPage(ctx, { title: "Your organizations" }, organizationChoice(memberships));
  });

  const showNew: Show = async (ctx, _error, problem) => {
    const { id, csrf } = personOf(ctx);
    ctx.state.memberships = await organizations.ofUser(id);
    const { error, errors } = byField(problem);
    const name = problem && (await nameIn(ctx));
    showPage(
      ctx,
      { title: "New organization", error },
      newOrganizationForm({ csrf, name, error: errors.name }),
    );
  };
  router.get("/dashboard/organizations/new", (ctx) => showNew(ctx));

  router.post("/dashboard/organizations", again(showNew), async (ctx) => {
    const { name } = validate(naming, await fieldsOf(ctx));
    const person = personOf(ctx);
    const change = await organizations.create(name, "free", person.by, person.id);
    const to = sectionPath(change.organization.id, "overview");
    answerDone(ctx, { to, done: "created", status: 201, body: showPlanChange(change) });
  });

  const show: Show = async (ctx, _error, problem) => {
    const membership = membershipOf(ctx);
    const { id, role } = membership;
    const organization = await cores.showOrganization(id);
    if (!prefersHtml(ctx)) {
      ctx.body = { organization: { ...organization, role } };
      return;
    }
    ctx.cookies.set(COOKIE, id, { path: "/dashboard", sameSite: "lax", overwrite: true });
    const [apps, people, clicks] = await Promise.all([
      grants.ofOrganization(id),
      members.list(id),
      cores.links.analytics(actorOf(ctx), undefined, {}),
    ]);
    const counts = { links: organization.usage.links, apps: apps.length, members: people.length };
    const { error, errors } = byField(problem);
    const { csrf } = personOf(ctx);
    const name = problem && (await nameIn(ctx));
    const body = overview({ membership, counts, clicks, csrf, refused: { name, error: errors.name } });
    showPage(ctx, { title: membership.name, section: "overview", error }, body);
  };
  router.get(ORGANIZATION, allow(), (ctx) => show(ctx));

  const rename: Show = async (ctx) => {
    const { id, plan } = membershipOf(ctx);
    const { name } = validate(naming, await fieldsOf(ctx));
    if (!(await organizations.rename(id, name, personOf(ctx).by))) throw notFound("organization");
    const organization: Organization = { id, name, plan };
    answerDone(ctx, { to: sectionPath(id, "overview"), done: "renamed", body: { organization } });
  };
  const managers = allow("owner", "admin");
  router.patch(ORGANIZATION, managers, (ctx) => rename(ctx));
  router.post(ORGANIZATION, managers, again(show), (ctx) => rename(ctx));

  const remove: Show = async (ctx) => {
    const { id } = membershipOf(ctx);
    if (!(await organizations.remove(id, personOf(ctx).by))) throw notFound("organization");
    answerDone(ctx, { to: "/dashboard", done: "deleted" });
  };
  const showDeletion: Show = async (ctx, error) => {
    requireRecentSignIn(ctx);
    const membership = membershipOf(ctx);
    const body = deletionForm(membership, personOf(ctx).csrf);
    showPage(ctx, { title: `Delete ${membership.name}`, section: "overview", error }, body);
  };
  router.delete(ORGANIZATION, allow("owner"), async (ctx) => {
    requireRecentSignIn(ctx);
    await remove(ctx);
  });
  router.get(`${ORGANIZATION}/delete`, allow("owner"), (ctx) => showDeletion(ctx));
  router.post(`${ORGANIZATION}/delete`, allow("owner"), again(showDeletion), async (ctx) => {
    const { id, name } = membershipOf(ctx);
    requireRecentSignIn(ctx, `${sectionPath(id, "overview")}/delete`);
    const { name: typed } = await fieldsOf(ctx);
    if (typed !== name) throw new Problem(422, "invalid_name", "Type the name of the organization exactly.");
    await remove(ctx);
  });
};

/** What was typed as a name. */
async function nameIn(ctx: Context): Promise<string> {
  return String((await fieldsOf(ctx)).name ?? "");
}
