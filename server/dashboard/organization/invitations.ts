import type { Context } from "koa";
import { z } from "zod";
import type { Invitation } from "../../../adapters/organizations/invitations.ts";
import { manageableRoles, ROLES } from "../../../adapters/organizations/store.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { withQuotaProblems } from "../../../resources/http/quota.ts";
import { validate } from "../../../resources/http/validate.ts";
import { limitsOf } from "../../../resources/plans.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { emailAddress } from "../../http/email-address.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { MANAGERS, membershipOf, signedInUserOf } from "../access.ts";
import { mailDisabled, tooManyEmails } from "../account/email.ts";
import { showAlreadyShown } from "../one-time-view.ts";
import { formFieldsOf, respondToChange, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { ownersOnly } from "./member-change.ts";
import { acceptancePage, invitationPage, type NewLink } from "./members-page.ts";

const LIFETIME_MS = 7 * 24 * 60 * 60 * 1000;
const PATH = `${ORGANIZATION}/invitations`;
const LINK = "/dashboard/invitations/:token";

const invitation = z.strictObject({
  role: z.enum(ROLES, { error: "must be owner, admin or member" }).default("member"),
  // A form sends an empty text.
  email: z.preprocess((text) => (text === "" ? undefined : text), emailAddress.optional()),
});

/** Adds the routes that create, list, revoke and accept invitations. An invitation link works once. */
export const invitationRoutes: RouteModule = (router, { settings, storage, urls, allow, oneTimeView }) => {
  const { invitations, organizations } = storage;
  const newLinks = oneTimeView<NewLink>();

  router.get(PATH, allow(...MANAGERS), async (ctx) => {
    const { id } = membershipOf(ctx);
    if (prefersHtml(ctx)) return ctx.redirect(sectionPath(id, "members"));
    ctx.body = { data: (await invitations.list(id)).map(showInvitation) };
  });

  router.post(PATH, allow(...MANAGERS), async (ctx) => {
    const { id, role: ownRole } = membershipOf(ctx);
    const user = signedInUserOf(ctx);
    const { role, email } = validate(invitation, await formFieldsOf(ctx));
    if (!manageableRoles(ownRole).includes(role)) throw ownersOnly();
    if (role !== "member") requireRecentSignIn(ctx, sectionPath(id, "members"));
    if (email && !settings.SMTP_URL) throw mailDisabled();
    const created = email
      ? await withQuotaProblems(invitations.createByMail(id, role, LIFETIME_MS, user.actor, email, limitsOf))
      : await withQuotaProblems(invitations.create(id, role, LIFETIME_MS, user.actor, limitsOf));
    if (!created) throw tooManyEmails();
    const url = `${urls.base}/dashboard/invitations/${created.token}`;
    if (prefersHtml(ctx)) {
      const path = `${sectionPath(id, "overview")}/invitations/new-link`;
      return newLinks.redirect(ctx, path, { url, ...created.invitation });
    }
    const { created_by: _, ...shown } = showInvitation(created.invitation);
    ctx.status = 201;
    ctx.body = { invitation: { ...shown, created_by: user.username }, url };
  });

  router.get(`${PATH}/new-link/:view`, allow(...MANAGERS), (ctx) => {
    const { id } = membershipOf(ctx);
    const link = newLinks.open(ctx);
    if (link)
      return showPage(ctx, { title: "Invitation link", section: "members" }, invitationPage(id, link));
    showAlreadyShown(ctx, "members", {
      kind: "link",
      name: "An invitation link",
      advice: "If you didn’t copy it, revoke the invitation and create a new one.",
      back: { href: sectionPath(id, "members"), text: "Back to members" },
    });
  });

  const revoke = async (ctx: Context) => {
    const { id, role } = membershipOf(ctx);
    const { actor } = signedInUserOf(ctx);
    if (!(await invitations.revoke(id, ctx.params.invitation_id, manageableRoles(role), actor))) {
      throw notFound("invitation");
    }
    respondToChange(ctx, { to: sectionPath(id, "members"), done: "invitation-revoked" });
  };
  router.delete(`${PATH}/:invitation_id`, allow(...MANAGERS), revoke);
  router.post(`${PATH}/:invitation_id/delete`, allow(...MANAGERS), revoke);

  router.get(LINK, async (ctx) => {
    const found = await invitations.find(ctx.params.token as string);
    if (!found) throw invalidInvitation();
    const { organizationId: id, organizationName: name, role, inviter } = found;
    if (!prefersHtml(ctx)) {
      ctx.body = { organization: { id, name }, role, invited_by: inviter };
      return;
    }
    const user = signedInUserOf(ctx);
    const isMember = (await organizations.listByUser(user.id)).some((one) => one.id === id);
    const body = acceptancePage({ action: ctx.path, invitation: found, user, isMember });
    showPage(ctx, { title: isMember ? "Invitation" : `Join ${name}` }, body);
  });

  router.post(LINK, async (ctx) => {
    const accepted = await invitations.accept(ctx.params.token as string, signedInUserOf(ctx).actor);
    if (!accepted) throw invalidInvitation();
    const { organizationId: id, organizationName: name, role, isNew } = accepted;
    const to = sectionPath(id, "overview");
    respondToChange(ctx, {
      to,
      ...(isNew && { done: "joined" }),
      body: { organization: { id, name }, role },
    });
  });
};

function invalidInvitation(): Problem {
  return new Problem(
    404,
    "invitation_invalid",
    "The invitation was used or revoked, or has expired. Ask for a new one.",
  );
}

function showInvitation({ id, role, email, createdBy, createdAt, expiresAt }: Invitation) {
  return {
    id,
    role,
    email,
    created_by: createdBy,
    created_at: new Date(createdAt).toISOString(),
    expires_at: new Date(expiresAt).toISOString(),
  };
}
