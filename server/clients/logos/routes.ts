import type { Middleware } from "koa";
import type { ClientStore } from "../../../adapters/oauth/clients.ts";
import { isBelow, mount, requireRead } from "../../../resources/http/routing.ts";

const BASE = "/assets/logos/";
const ADDRESS = /^\/assets\/logos\/([\w-]{43})\.png$/;
const YEAR_S = 365 * 24 * 60 * 60;

/** Serves the logos of clients to everyone: consent pages and lists of apps show them. */
export function logos({ findLogo }: Pick<ClientStore, "findLogo">): Middleware {
  return mount(isBelow(BASE), [
    requireRead,
    async function serveLogo(ctx, next) {
      const [, hash] = ADDRESS.exec(ctx.path) ?? [];
      const logo = hash && (await findLogo(hash));
      if (!logo) return next();
      ctx.set("Cache-Control", `public, max-age=${YEAR_S}, immutable`);
      ctx.type = "image/png";
      ctx.body = logo;
    },
  ]);
}
