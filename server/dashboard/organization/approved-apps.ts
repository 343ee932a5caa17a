import type { Context } from "koa";
import { z } from "zod";
import { MAX_APPROVED_APPS } from "../../../adapters/organizations/approved-apps.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { invalidField, validate } from "../../../resources/http/validate.ts";
import { describeApproval, showApproval } from "../../clients/approval-view.ts";
import { findApp } from "../../clients/find-app.ts";
import { createRegisteredClientIds } from "../../clients/registered-client-id.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { MANAGERS, membershipOf, signedInUserOf } from "../access.ts";
import { formFieldsOf, respondToChange, type Show, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { approvalForm, approvalPage } from "./approved-apps-page.ts";

const PATH = `${ORGANIZATION}/apps/approved`;
const NOT_AN_APP = "must be the client ID of an app";
const approval = z.strictObject({ client_id: z.string({ error: NOT_AN_APP }) });

/** Adds the routes that approve apps for members and withdraw approvals. */
export const approvedAppRoutes: RouteModule = (router, { storage, settings, keys, allow }) => {
  const { approvedApps, clients } = storage;
  const registeredIds =
    settings.DYNAMIC_REGISTRATION === "off" ? undefined : createRegisteredClientIds(keys.signing);
  const find = (clientId: string) => findApp(clientId, clients, registeredIds);

  const show: Show = async (ctx, error) => {
    const clientId = String(ctx.query.client_id ?? "");
    const app = await find(clientId);
    if (prefersHtml(ctx) && !app) return showUnknownApp(ctx, clientId);
    if (!app) throw invalidField("client_id", NOT_AN_APP);
    if (!prefersHtml(ctx)) {
      ctx.body = { client_id: clientId, app: app.name, published_by: app.publisher };
      return;
    }
    const membership = membershipOf(ctx);
    const body = approvalPage({ membership, app: { ...app, clientId }, csrf: signedInUserOf(ctx).csrf });
    showPage(ctx, { title: "Approve app", section: "apps", error }, body);
  };
  router.get(`${ORGANIZATION}/apps/approve`, allow(...MANAGERS), (ctx) => show(ctx));

  router.post(PATH, allow(...MANAGERS), async (ctx) => {
    const { id } = membershipOf(ctx);
    const { client_id: clientId } = validate(approval, await formFieldsOf(ctx));
    if (!(await find(clientId))) throw invalidField("client_id", NOT_AN_APP);
    const approved = await approvedApps.approve(id, clientId, signedInUserOf(ctx).actor);
    if (approved === "missing") throw notFound("organization");
    if (approved === "limit") throw limitReached();
    const body = { approved_app: showApproval(describeApproval(approved)) };
    respondToChange(ctx, { to: sectionPath(id, "apps"), done: "app-approved", status: 201, body });
  });

  const withdraw = async (ctx: Context) => {
    const { id } = membershipOf(ctx);
    const { actor } = signedInUserOf(ctx);
    if (!(await approvedApps.remove(id, ctx.params.approval_id as string, actor))) throw notFound("approval");
    respondToChange(ctx, { to: sectionPath(id, "apps"), done: "approval-withdrawn" });
  };
  router.delete(`${PATH}/:approval_id`, allow(...MANAGERS), withdraw);
  router.post(`${PATH}/:approval_id/delete`, allow(...MANAGERS), withdraw);
};

/** Shows the form again, with the error. */
function showUnknownApp(ctx: Context, clientId: string): void {
  ctx.status = 422;
  const form = approvalForm(sectionPath(membershipOf(ctx).id, "apps"), clientId);
  const error = "No app has this client ID. Check it and try again.";
  showPage(ctx, { title: "Approve app", section: "apps", error }, form);
}

function limitReached(): Problem {
  const detail = `An organization can approve at most ${MAX_APPROVED_APPS} apps. Withdraw an approval to add another app.`;
  return new Problem(409, "approved_app_limit", detail);
}
