import type Koa from "koa";

/**
 * Takes the caller's address from `X-Forwarded-For`, behind a known number of proxies: each of them appended the
 * address that it saw, so the one that the outermost saw is counted from the right. Nothing else is believed.
 */
export function trustProxies(app: Koa, proxies: number): void {
  Object.defineProperty(app.request, "ip", {
    configurable: true,
    get(this: Koa.Request) {
      const direct = this.socket.remoteAddress ?? "";
      if (proxies === 0) return direct;
      const forwarded = this.get("x-forwarded-for")
        .split(",")
        .map((address) => address.trim())
        .filter(Boolean);
      return forwarded.at(-proxies) ?? direct;
    },
  });
}
