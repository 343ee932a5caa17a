import type { Router } from "@koa/router";
import type { Context } from "koa";
import { notFound } from "../../../resources/http/problem.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { csrfField, linkButton } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { membershipOf, signedInUserOf } from "../access.ts";
import { respondToChange, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";

const PATH = `${ORGANIZATION}/members/:user_id/sign-out`;

/** Adds the routes with which an owner revokes a member's apps in the organization, and ends their sessions if possible. */
export function addSignOutRoutes(router: Router, { storage, allow }: Parameters<RouteModule>[1]): void {
  const { members, accountSwitches } = storage;

  router.get(PATH, allow("owner"), async (ctx) => {
    const { id, name } = membershipOf(ctx);
    const userId = ctx.params.user_id as string;
    requireRecentSignIn(ctx);
    const member = (await members.list(id)).find((one) => one.id === userId);
    if (!member) throw notFound("member");
    const body = signOutForm({ path: pathOf(ctx), organization: name, csrf: signedInUserOf(ctx).csrf });
    showPage(ctx, { title: `Sign out ${member.username}?`, section: "members" }, body);
  });

  router.post(PATH, allow("owner"), async (ctx) => {
    const { id } = membershipOf(ctx);
    requireRecentSignIn(ctx, pathOf(ctx));
    const userId = ctx.params.user_id as string;
    const member = { organizationId: id, userId };
    const ended = await accountSwitches.signOutMember(member, signedInUserOf(ctx).actor);
    if (!ended) throw notFound("member");
    const { hasEndedSessions } = ended;
    respondToChange(ctx, {
      to: sectionPath(id, "members"),
      done: hasEndedSessions ? "member-signed-out" : "member-apps-revoked",
      body: { sessions_ended: hasEndedSessions },
    });
  });
}

function pathOf(ctx: Context): string {
  return `${sectionPath(membershipOf(ctx).id, "members")}/${ctx.params.user_id}/sign-out`;
}

type Form = { path: string; organization: string; csrf: string | undefined };

function signOutForm({ path, organization, csrf }: Form): Html {
  const members = path.split("/").slice(0, -2).join("/");
  return html`<form method="post" action="${path}" class="panel danger stack">${csrfField(csrf)}
<ul>
<li>The apps that this member authorized for ${organization} lose access.</li>
<li>If you own every organization of this member, their sessions end, too. Otherwise they stay signed in, because a session also gives access to other organizations.</li>
</ul>
<p>The member can sign in and authorize apps again. To prevent that, remove the member.</p>
<div class="actions"><button type="submit" class="danger">Sign out member</button>${linkButton(members, "Cancel", "quiet")}</div>
</form>`;
}
