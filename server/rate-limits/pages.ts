import type { Middleware } from "koa";
import { retryLater } from "../../resources/http/problem.ts";
import { hostKeyOf } from "../http/client-ip.ts";
import { count, describeWait, type RateLimitStore } from "./store.ts";

// Half of the calls of the API: a page takes longer, and an office behind one address opens about a hundred a minute.
const REQUESTS_PER_ADDRESS = 3000;

/** Limits the requests for pages, before anything of them is read or looked up. Other limits follow it. */
export function limitPages(store: RateLimitStore): Middleware[] {
  if (!store.isOn) return [];
  const requests = store.create("pages", REQUESTS_PER_ADDRESS, { isHot: true });
  return [
    async function limitPage(ctx, next) {
      const seconds = await count(requests, hostKeyOf(ctx.ip));
      if (seconds === 0) return next();
      const detail = `Too many requests. Try again in ${describeWait(seconds)}.`;
      throw retryLater(429, "too_many_requests", detail, seconds);
    },
  ];
}

/** The home page, the documentation, the dashboard, and the sign-in. */
export const PAGE_SEGMENTS = ["", "auth", "dashboard", "docs", "llms.txt"];
