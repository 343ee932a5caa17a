import type { Middleware } from "koa";
import type { Notice } from "../../../adapters/accounts/notices.ts";
import type { Storage } from "../../../adapters/index.ts";
import { prefersHtml } from "../../http/request-body.ts";
import type { SignedInUser } from "../../http/state.ts";
import { dismissNotice, dismissNotices, listNotices } from "../../operations/notices.ts";
import { signedInUserOf } from "../access.ts";
import { addOperation, addReading } from "../operation-routes.ts";
import { showPage } from "../responses.ts";
import type { RouteModule } from "../route.ts";
import { NOTICES_PATH, noticesPage } from "./page.ts";

export const noticeRoutes: RouteModule = (router, options) => {
  const { notices, organizations } = options.storage;
  const to = () => NOTICES_PATH;

  addReading(router, options, listNotices, async (ctx) => {
    const { id } = signedInUserOf(ctx);
    const listed = await notices.list(id);
    ctx.state.memberships = await organizations.listByUser(id);
    ctx.state.notices = []; // the page itself shows them
    const intro = "Security activity, last 90 days";
    showPage(ctx, { title: "Security notices", intro, body: noticesPage(listed) });
  });
  addOperation(router, options, dismissNotices, { to });
  addOperation(router, options, dismissNotice, { to });
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
