import type Koa from "koa";
import { parseIpAddress } from "./ip-address.ts";

/**
 * Makes `ctx.ip` the address of the client behind a known number of proxies. Each proxy appends the address that it sees
 * to `X-Forwarded-For`, so the client's is that many from the right; everything before it can be forged. A port is
 * removed, and each address has one notation. Text that is no address counts as the last proxy's own.
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
      const address = forwarded.at(-proxies) ?? direct;
      return (parseIpAddress(address) ?? parseIpAddress(direct))?.toString() ?? direct;
    },
  });
}
