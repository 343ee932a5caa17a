import type { Context } from "koa";
import { z } from "zod";
import type { Invitation } from "../../adapters/invitations.ts";
import { ROLES, rolesWithin } from "../../adapters/organizations.ts";
import { notFound, Problem } from "../../resources/problem.ts";
import { validate } from "../../resources/validate.ts";
import { prefersHtml } from "../people/input.ts";
import { sectionPath } from "../views/dashboard/layout.ts";
import { acceptancePage, invitationPage } from "../views/dashboard/members.ts";
import { MANAGERS, membershipOf, personOf } from "./access.ts";
import { answerDone, fieldsOf, showPage } from "./answers.ts";
import { ownersOnly } from "./members.ts";
import { showAlreadyShown } from "./one-time-view.ts";
import { ORGANIZATION, type Subject } from "./subject.ts";

const LIFETIME_MS = 7 * 24 * 60 * 60 * 1000;
const PATH = `${ORGANIZATION}/invitations`;
const LINK = "/dashboard/invitations/:token";

const invitation = z.strictObject({
  role: z.enum(ROLES, { error: "must be owner, admin or member" }).default("member"),
});

/** Invitations: a manager makes a link, whoever has it joins, once. */
export const invitations: Subject = (router, { storage, addresses, allow, oneTimeView }) => {
  const { invitations } = storage;
  const newLinks = oneTimeView<{ url: string; expiresAt: number }>();

  router.get(PATH, allow(...MANAGERS), async (ctx) => {
    const { id } = membershipOf(ctx);
    if (prefersHtml(ctx)) return ctx.redirect(sectionPath(id, "members"));
    ctx.body = { data: (await invitations.list(id)).map(showInvitation) };
  });

  router.post(PATH, allow(...MANAGERS), async (ctx) => {
    const { id, role: own } = membershipOf(ctx);
    const person = personOf(ctx);
    const { role } = validate(invitation, await fieldsOf(ctx));
    if (!rolesWithin(own).includes(role)) throw ownersOnly();
    const made = await invitations.create(id, role, LIFETIME_MS, person.by);
    const url = `${addresses.base}/dashboard/invitations/${made.token}`;
    if (prefersHtml(ctx)) {
      const path = `${sectionPath(id, "overview")}/invitations/new-link`;
      return newLinks.redirect(ctx, path, { url, expiresAt: made.invitation.expiresAt });
    }
    const { created_by: _, ...shown } = showInvitation(made.invitation);
    ctx.status = 201;
    ctx.body = { invitation: { ...shown, created_by: person.username }, url };
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
    const { by } = personOf(ctx);
    if (!(await invitations.revoke(id, ctx.params.invitation_id, rolesWithin(role), by))) {
      throw notFound("invitation");
    }
    answerDone(ctx, { to: sectionPath(id, "members"), done: "invitation-revoked" });
  };
  router.delete(`${PATH}/:invitation_id`, allow(...MANAGERS), revoke);
  router.post(`${PATH}/:invitation_id/delete`, allow(...MANAGERS), revoke);

  router.get(LINK, async (ctx) => {
    const found = (await invitations.find(ctx.params.token as string)) ?? isOver();
    const { organizationId: id, organizationName: name, role } = found;
    if (!prefersHtml(ctx)) {
      ctx.body = { organization: { id, name }, role };
      return;
    }
    const body = acceptancePage({ action: ctx.path, organization: name, role, person: personOf(ctx) });
    showPage(ctx, { title: `Join ${name}` }, body);
  });

  router.post(LINK, async (ctx) => {
    const accepted = (await invitations.accept(ctx.params.token as string, personOf(ctx).by)) ?? isOver();
    const { organizationId: id, organizationName: name, role, isNew } = accepted;
    const to = sectionPath(id, "overview");
    answerDone(ctx, { to, ...(isNew && { done: "joined" }), body: { organization: { id, name }, role } });
  });
};

function isOver(): never {
  throw new Problem(
    404,
    "invitation_over",
    "This invitation was used, taken back, or is too old. Ask for a new one.",
  );
}

function showInvitation({ id, role, createdBy, createdAt, expiresAt }: Invitation) {
  return {
    id,
    role,
    created_by: createdBy,
    created_at: new Date(createdAt).toISOString(),
    expires_at: new Date(expiresAt).toISOString(),
  };
}
