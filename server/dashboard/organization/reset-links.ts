import type { Router } from "@koa/router";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { RESET_LINK_MS, resetUrl } from "../../credentials/reset-links.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { membershipOf, signedInUserOf } from "../access.ts";
import { showAlreadyShown } from "../one-time-view.ts";
import { redisplayForm, type Show, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { resetLinkPage } from "./members-page.ts";

const PATH = `${ORGANIZATION}/members/:user_id/reset-link`;

type Options = Parameters<RouteModule>[1];

/** Adds the routes with which an owner creates a member's password reset link. */
export function addResetLinkRoutes(router: Router, options: Options, show: Show): void {
  const { storage, urls, allow, oneTimeView } = options;
  const { members, accounts } = storage;
  const newLinks = oneTimeView<{ username: string; url: string }>();

  router.post(PATH, allow("owner"), redisplayForm(show), async (ctx) => {
    const { id } = membershipOf(ctx);
    requireRecentSignIn(ctx, sectionPath(id, "members"));
    const userId = ctx.params.user_id as string;
    const member = (await members.list(id)).find((one) => one.id === userId);
    if (!member) throw notFound("member");
    const owner = { actor: signedInUserOf(ctx).actor, organizationId: id };
    const created = await accounts.createResetTokenAsOwner(userId, RESET_LINK_MS, owner);
    if ("refused" in created) throw REFUSALS[created.refused]();
    const url = resetUrl(urls.base, created.token);
    if (!prefersHtml(ctx)) {
      ctx.body = { url };
      return;
    }
    const path = `${sectionPath(id, "members")}/${userId}/reset-link`;
    newLinks.redirect(ctx, path, { username: member.username, url });
  });

  router.get(`${PATH}/:view`, allow("owner"), (ctx) => {
    const { id } = membershipOf(ctx);
    const link = newLinks.open(ctx);
    if (link) {
      return showPage(ctx, { title: "Password reset link", section: "members" }, resetLinkPage(id, link));
    }
    showAlreadyShown(ctx, "members", {
      kind: "link",
      name: "A password reset link",
      advice: "If you didn’t copy it, create a new one.",
      back: { href: sectionPath(id, "members"), text: "Back to members" },
    });
  });
}

// A user has one password for all organizations.
const REFUSALS = {
  not_owner: () =>
    new Problem(
      403,
      "shared_account",
      "This user belongs to an organization that you don't own. Ask the operator of this service for a reset link.",
    ),
  no_password: () =>
    new Problem(409, "no_password", "This user signs in with SSO and has no password to reset."),
};
