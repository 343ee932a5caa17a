import { hkdfSync, randomBytes } from "node:crypto";
import type { Context } from "koa";
import { createSeal } from "../../adapters/seal.ts";
import { notFound } from "../../resources/problem.ts";
import { prefersHtml } from "../people/input.ts";
import { cookieOptions } from "../provider/cookies.ts";
import { alreadyShown, type OnceShown } from "../views/dashboard/already-shown.ts";
import type { Section } from "../views/dashboard/layout.ts";
import { personOf } from "./access.ts";
import { showPage } from "./answers.ts";

const LIFETIME_MS = 5 * 60 * 1000;
const ID_BYTES = 16;
const KEY_BYTES = 32;

/** Shows data on a page of its own, once, after the form that created it: POST, redirect, one view. */
export type OneTimeView<Data> = {
  /** Redirects to a new page below `parent`, which this session can open within five minutes. */
  redirect(ctx: Context, parent: string, data: Data): void;
  /** Returns the data of the requested page and makes the browser forget it; undefined if it has none. */
  open(ctx: Context): Data | undefined;
};

/** Creates a view for one kind of data. */
export type CreateOneTimeView = <Data extends object>() => OneTimeView<Data>;

/**
 * Keeps the data of each page in an encrypted cookie, so that the server stores nothing and any process can answer.
 * The encryption binds it to the session and to the path of the page.
 * @param secret shared by every process
 */
export function createOneTimeViews(secret: string, base: string): CreateOneTimeView {
  const seal = createSeal(new Uint8Array(hkdfSync("sha256", secret, "", "one-time view", KEY_BYTES)));
  // Unsigned: AES-GCM authenticates the value.
  const options = { ...cookieOptions({ base }), signed: false };
  const name = options.secure ? "__Secure-one-time-view" : "one-time-view";
  const contextOf = (ctx: Context, path: string) => `${personOf(ctx).signInId}\n${path}`;

  function read(ctx: Context): { data: unknown; until: number } | undefined {
    const sealed = ctx.cookies.get(name, options);
    if (!sealed) return undefined;
    try {
      return JSON.parse(seal.open(sealed, contextOf(ctx, ctx.path)));
    } catch {
      return undefined; // another session, another page, or changed
    }
  }

  return <Data>() => ({
    redirect(ctx, parent, data) {
      // The path keeps the pages of several tabs apart; it is no secret.
      const path = `${parent}/${randomBytes(ID_BYTES).toString("base64url")}`;
      const text = JSON.stringify({ data, until: Date.now() + LIFETIME_MS });
      ctx.cookies.set(name, seal.close(text, contextOf(ctx, path)), {
        ...options,
        path,
        maxAge: LIFETIME_MS,
      });
      ctx.status = 303;
      ctx.redirect(path);
    },

    open(ctx) {
      // A program finds its secret in the answer to the POST.
      if (!prefersHtml(ctx)) throw notFound("address");
      const found = read(ctx);
      if (!found || found.until <= Date.now()) return undefined;
      if (ctx.method === "GET") ctx.cookies.set(name, null, { ...options, path: ctx.path });
      return found.data as Data;
    },
  });
}

/** Answers a request for a page that was shown before. */
export function showAlreadyShown(ctx: Context, section: Section, shown: OnceShown): void {
  ctx.status = 410;
  showPage(ctx, { title: `This ${shown.kind} was already shown`, section }, alreadyShown(shown));
}
