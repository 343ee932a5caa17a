import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Storage } from "../../../adapters/index.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { RESET_LINK_MS, resetUrl } from "../../credentials/reset-links.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { copyable, linkButton, panelForm } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { actorOf, membershipOf, pathTo } from "../access.ts";
import { shownOnce } from "../one-time-view.ts";
import { redisplayForm, respondToChange, type Show } from "../responses.ts";
import { addForm, ORGANIZATION, type RouteOptions } from "../route.ts";

const MEMBER = `${ORGANIZATION}/members/:user_id`;

type NewLink = { username: string; url: string };

/** `show` is the page of the members. */
export function addMemberAccountRoutes(router: Router, options: RouteOptions, show: Show): void {
  const { storage, urls, allow, oneTimeView } = options;
  const { accounts, disabledAccounts } = storage;
  const newLinks = oneTimeView<NewLink>();

  router.post(`${MEMBER}/reset-link`, allow("owner"), redisplayForm(show), async (ctx) => {
    const members = pathTo(ctx, "members");
    requireRecentSignIn(ctx, members);
    const { id: userId, username } = await findMember(storage, ctx);
    const created = await accounts.createResetTokenAsOwner(userId, RESET_LINK_MS, actorOf(ctx));
    if ("refused" in created) throw new Problem(...REFUSALS[created.refused]);
    const url = resetUrl(urls.base, created.token);
    if (prefersHtml(ctx)) newLinks.redirect(ctx, `${members}/${userId}/reset-link`, { username, url });
    else ctx.body = { url };
  });

  router.get(`${MEMBER}/reset-link/:view`, allow("owner"), (ctx) => {
    const members = pathTo(ctx, "members");
    newLinks.show(ctx, {
      section: "members",
      page: (link) => ({ title: "Password reset link", body: resetLinkPage(members, link) }),
      kind: "link",
      explanation: shownOnce("A password reset link", "If you didn’t copy it, create a new one."),
      back: { href: members, text: "Back to members" },
    });
  });

  addForm(router, {
    path: `${MEMBER}/sign-out`,
    access: allow("owner"),
    section: "members",
    isSensitive: true,
    async render(ctx) {
      const { username } = await findMember(storage, ctx);
      const members = pathTo(ctx, "members");
      const path = `${members}/${ctx.params.user_id}/sign-out`;
      return { title: `Sign out ${username}?`, body: signOutForm(path, members, membershipOf(ctx).name) };
    },
    async change(ctx) {
      const { organizationId, actor } = actorOf(ctx);
      const member = { organizationId, userId: ctx.params.user_id as string };
      const ended = await disabledAccounts.signOutMember(member, actor);
      if (!ended) throw notFound("member");
      respondToChange(ctx, {
        to: pathTo(ctx, "members"),
        done: ended.hasEndedSessions ? "member-signed-out" : "member-apps-revoked",
        body: { sessions_ended: ended.hasEndedSessions },
      });
    },
  });
}

/** Throws Problem 404. */
export async function findMember({ members }: Pick<Storage, "members">, ctx: Context) {
  const member = (await members.list(membershipOf(ctx).id)).find(({ id }) => id === ctx.params.user_id);
  if (!member) throw notFound("member");
  return member;
}

// A user has one password for all organizations.
const REFUSALS: Record<"not_owner" | "no_password", ConstructorParameters<typeof Problem>> = {
  not_owner: [
    403,
    "shared_account",
    "This user belongs to an organization that you don't own. Ask the operator of this service for a reset link.",
  ],
  no_password: [409, "no_password", "This user signs in with SSO and has no password to reset."],
};

function resetLinkPage(members: string, { username, url }: NewLink): Html {
  return html`<div class="panel" data-once>
<p class="alert">Copy the link now. You won’t be able to see it again.</p>
<p>Send it to <strong>${username}</strong>. It works once and expires in an hour. Setting a new password signs ${username} out everywhere and revokes the apps they authorized.</p>
<p>${copyable(url, "link")}</p>
<div class="actions">${linkButton(members, "Done")}</div>
</div>`;
}

function signOutForm(action: string, cancel: string, organization: string): Html {
  return panelForm(
    { action, submit: "Sign out member", cancel, danger: "panel" },
    html`<ul>
<li>The apps that this member authorized for ${organization} lose access.</li>
<li>If you own every organization of this member, their sessions end, too. Otherwise they stay signed in, because a session also gives access to other organizations.</li>
</ul>
<p>The member can sign in and authorize apps again. To prevent that, remove the member.</p>`,
  );
}
