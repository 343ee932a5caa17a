import type { Context, Middleware } from "koa";
import type { Notice } from "../../adapters/accounts/notices.ts";
import type { Storage } from "../../adapters/index.ts";
import { maskCsrf } from "../http/csrf.ts";
import { seeOther } from "../http/redirects.ts";
import { prefersHtml } from "../http/request-body.ts";
import type { SignedInUser } from "../http/state.ts";
import { describeNotice } from "../mail/notices.ts";
import { time, withCsrf } from "../ui/controls.ts";
import { dashboardPage, type PageContent } from "../ui/dashboard-layout.ts";
import { type Html, html } from "../ui/html.ts";
import { pathWith } from "../ui/table.ts";
import { signedInUserOf } from "./access.ts";
import { confirmationOf, signedConfirmation } from "./confirmation.ts";

/** Loads the notices that every page announces until the user dismisses them, also one that answers a form. */
export function loadNotices({ notices }: Pick<Storage, "notices">): Middleware {
  return async function loadOpenNotices(ctx, next) {
    if (prefersHtml(ctx)) {
      const user = signedInUserOf(ctx);
      const open = await notices.list(user.id, { open: true });
      ctx.state.notices = open.filter((notice) => !isOwnSignIn(notice, user));
    }
    return next();
  };
}

// Between a sign-in and the notice of its device, with the sign-in's time in whole seconds.
const OWN_SIGN_IN_MS = 5000;

/** Returns whether a notice is about the sign-in of this session, which the user need not be warned of here. */
function isOwnSignIn({ kind, createdAt }: Notice, { signedInAt }: SignedInUser): boolean {
  const delay = createdAt - signedInAt;
  return kind === "new_device" && delay >= 0 && delay < OWN_SIGN_IN_MS;
}

export function showPage(ctx: Context, content: PageContent): void {
  const { username, csrf } = signedInUserOf(ctx);
  const { memberships, membership, supportContact, notices, failingWebhooks = 0 } = ctx.state;
  const frame = {
    username,
    organizations: memberships ?? [],
    organization: membership,
    supportContact,
    notice: ctx.query.done === undefined ? undefined : confirmationOf(ctx),
    notices: notices?.length ?? 0,
    failingWebhooks,
    banner: content.section === "overview" || !membership ? noticesBanner(notices ?? []) : undefined,
  };
  ctx.type = "html";
  ctx.body = withCsrf(dashboardPage(frame, content), csrf && maskCsrf(csrf));
  ctx.state.isMasked = !content.isSecret;
}

/** Renders the line above every dashboard page while there are notices that the user hasn't dismissed. */
function noticesBanner([latest, ...others]: Notice[]): Html {
  if (!latest) return html``;
  const more = others.length > 0 ? html` and ${others.length} more` : html``;
  const { title, isFact } = describeNotice(latest);
  return html`<p class="alert"><strong>${isFact ? "Notice" : "Security notice"}:</strong> ${title} (${time(latest.createdAt)})${more}. <a href="/dashboard/notices">Review</a></p>`;
}

type Changed = {
  to: string;
  done?: string | undefined;
  about?: string | undefined;
  status?: number | undefined;
  body?: object | undefined;
};

/** Responds to a completed change: redirects a browser to `to`, sends other clients `body` or 204. */
export function respondToChange(ctx: Context, { to, done, about, status = 200, body }: Changed): void {
  if (about && prefersHtml(ctx)) seeOther(ctx, pathWith(to, signedConfirmation(ctx, `${done}~${about}`)));
  else if (prefersHtml(ctx)) seeOther(ctx, done ? withDone(to, done) : to);
  else if (body) sendJson(ctx, body, status);
  else ctx.status = 204;
}

export function withDone(to: string, done: string): string {
  const [path = "", anchor] = to.split("#");
  return `${path}${path.includes("?") ? "&" : "?"}done=${done}${anchor ? `#${anchor}` : ""}`;
}

/** Responds to a client other than a browser. */
export function sendJson(ctx: Context, body: object, status = 200): void {
  ctx.status = status;
  ctx.body = body;
}
