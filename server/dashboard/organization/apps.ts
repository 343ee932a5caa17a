import type { Context } from "koa";
import type { AllowedApp } from "../../adapters/grants.ts";
import { notFound, Problem } from "../../resources/problem.ts";
import { allowedByRole, withoutImplied } from "../../resources/scopes.ts";
import { prefersHtml } from "../people/input.ts";
import { appsPage } from "../views/dashboard/apps.ts";
import { sectionPath } from "../views/dashboard/layout.ts";
import { membershipOf, personOf } from "./access.ts";
import { answerDone, showPage } from "./answers.ts";
import { ORGANIZATION, type Subject } from "./subject.ts";

const PATH = `${ORGANIZATION}/apps`;

/** Apps: who may act for the organization, in whose name. */
export const apps: Subject = (router, { storage, allow }) => {
  const { grants } = storage;

  router.get(PATH, allow(), async (ctx) => {
    const membership = membershipOf(ctx);
    const allowed = (await grants.ofOrganization(membership.id)).map((app) => ({
      ...app,
      scopes: withoutImplied(allowedByRole(app.scopes, app.role)),
    }));
    if (!prefersHtml(ctx)) {
      ctx.body = { data: allowed.map(showApp) };
      return;
    }
    const intro =
      "What people let act for this organization. An app that loses its access is refused at once.";
    const body = appsPage({ membership, person: personOf(ctx), apps: allowed, nameOf: appName });
    showPage(ctx, { title: "Apps", intro, section: "apps" }, body);
  });

  const revoke = async (ctx: Context) => {
    const { id, role } = membershipOf(ctx);
    const person = personOf(ctx);
    const grantId = ctx.params.grant_id as string;
    const app = (await grants.ofOrganization(id)).find((one) => one.id === grantId);
    if (!app) throw notFound("app");
    if (role === "member" && app.userId !== person.id) {
      throw new Problem(
        403,
        "role_required",
        "Owners, admins and whoever allowed the app take its access away.",
      );
    }
    if (!(await grants.end(id, grantId, person.by))) throw notFound("app");
    answerDone(ctx, { to: sectionPath(id, "apps"), done: "app-revoked" });
  };
  router.delete(`${PATH}/:grant_id`, allow(), revoke);
  router.post(`${PATH}/:grant_id/delete`, allow(), revoke);
};

/** The organization that offers an app, or the host of its metadata document. */
function appName({ appName: name, clientId }: AllowedApp): string {
  return name ?? URL.parse(clientId)?.host ?? clientId;
}

function showApp(app: AllowedApp) {
  const { id, clientId, userId, username, scopes, grantedAt, expiresAt, lastUsedAt } = app;
  return {
    id,
    app: appName(app),
    client_id: clientId,
    user: { id: userId, username },
    scopes,
    granted_at: new Date(grantedAt).toISOString(),
    expires_at: new Date(expiresAt).toISOString(),
    last_used_at: lastUsedAt === null ? null : new Date(lastUsedAt).toISOString(),
  };
}
