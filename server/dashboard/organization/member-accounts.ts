import type { Router } from "@koa/router";
import type { Context } from "koa";
import { createResetLink, findMember, signOutMember } from "../../operations/members.ts";
import { copyable, linkButton, panelForm } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { membershipOf, pathTo } from "../access.ts";
import type { Show } from "../forms.ts";
import { shownOnce } from "../one-time-view.ts";
import { addOperation, addOperationPage } from "../operation-routes.ts";
import { ORGANIZATION, type RouteOptions } from "../route.ts";

const MEMBER = `${ORGANIZATION}/members/:user_id`;

type NewLink = { username: string; url: string };

/** `show` is the page of the members. */
export function addMemberAccountRoutes(router: Router, options: RouteOptions, show: Show): void {
  const newLinks = options.oneTimeView<NewLink>();
  const to = (ctx: Context) => pathTo(ctx, "members");
  const find = (ctx: Context) => findMember(options.storage, membershipOf(ctx).id, ctx.params.user_id);

  addOperation(router, options, createResetLink, {
    show,
    to,
    async respond(ctx, { url }) {
      const { id, username } = await find(ctx);
      newLinks.redirect(ctx, `${to(ctx)}/${id}/reset-link`, { username, url });
    },
  });

  router.get(`${MEMBER}/reset-link/:view`, options.allow("owner"), (ctx) => {
    const members = to(ctx);
    newLinks.show(ctx, {
      section: "members",
      page: (link) => ({ title: "Password reset link", body: resetLinkPage(members, link) }),
      kind: "link",
      explanation: shownOnce("A password reset link", "If you didn’t copy it, create a new one."),
      back: { href: members, text: "Back to members" },
    });
  });

  addOperationPage(router, options, signOutMember, {
    path: `${MEMBER}/sign-out`,
    section: "members",
    to,
    async render(ctx) {
      const { id, username } = await find(ctx);
      const path = `${to(ctx)}/${id}/sign-out`;
      return { title: `Sign out ${username}?`, body: signOutForm(path, to(ctx), membershipOf(ctx).name) };
    },
  });
}

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
