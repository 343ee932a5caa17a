import type { Context, Middleware } from "koa";
import type { Notice } from "../../../adapters/accounts/notices.ts";
import type { Storage } from "../../../adapters/index.ts";
import { notFound } from "../../../resources/http/problem.ts";
import { prefersHtml } from "../../http/request-body.ts";
import type { SignedInUser } from "../../http/state.ts";
import { signedInUserOf } from "../access.ts";
import { respondToChange, sendJson, showPage } from "../responses.ts";
import type { RouteModule } from "../route.ts";
import { NOTICES_PATH, noticesPage } from "./page.ts";
import { describeNotice } from "./sentences.ts";

export const noticeRoutes: RouteModule = (router, { storage: { notices, organizations } }) => {
  router.get(NOTICES_PATH, async (ctx) => {
    const { id } = signedInUserOf(ctx);
    const listed = await notices.list(id);
    if (!prefersHtml(ctx)) return sendJson(ctx, { data: listed.map(showNotice) });
    ctx.state.memberships = await organizations.listByUser(id);
    ctx.state.notices = []; // the page itself shows them
    const intro = "Security activity, last 90 days";
    showPage(ctx, { title: "Security notices", intro, body: noticesPage(listed) });
  });

  router.post(`${NOTICES_PATH}/dismiss`, async (ctx) => {
    await notices.dismiss(signedInUserOf(ctx).id);
    respondToChange(ctx, { to: NOTICES_PATH, done: "notices-dismissed" });
  });

  router.post(`${NOTICES_PATH}/:notice_id/dismiss`, async (ctx: Context) => {
    const isDismissed = await notices.dismiss(signedInUserOf(ctx).id, ctx.params.notice_id);
    if (!isDismissed) throw notFound("notice");
    respondToChange(ctx, { to: NOTICES_PATH, done: "notice-dismissed" });
  });
};

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

function showNotice(notice: Notice) {
  const { id, kind, data, createdAt, dismissedAt } = notice;
  const { title: message, advice } = describeNotice(notice);
  const { address = null, browser = null, name = null, by } = data;
  return {
    id,
    kind,
    message,
    advice,
    address,
    browser,
    name,
    ...(by !== undefined && { created_by: by }),
    created_at: new Date(createdAt).toISOString(),
    dismissed_at: dismissedAt === null ? null : new Date(dismissedAt).toISOString(),
  };
}
