import { hkdfSync, randomBytes } from "node:crypto";
import type { Context } from "koa";
import { createEncryption } from "../../adapters/crypto/encryption.ts";
import { notFound } from "../../resources/http/problem.ts";
import { tryTo } from "../../resources/try-to.ts";
import { cookieOptions } from "../http/cookies.ts";
import { seeOther } from "../http/redirects.ts";
import { prefersHtml } from "../http/request-body.ts";
import { linkButton } from "../ui/controls.ts";
import type { PageContent, Section } from "../ui/dashboard-layout.ts";
import { type Html, html } from "../ui/html.ts";
import { signedInUserOf } from "./access.ts";
import { showPage } from "./responses.ts";

const LIFETIME_MS = 5 * 60 * 1000;
const ID_BYTES = 16;
const KEY_BYTES = 32;

type Link = { href: string; text: string };
type View<Data> = {
  section?: Section;
  page(data: Data): Pick<PageContent, "title" | "body">;
  kind: "secret" | "link" | "list" | "form";
  /** Why it isn't shown again, and what to do. */
  explanation: string;
  back: Link;
  renew?: Link;
};

/** Shows new data once: the form's POST redirects to a page that can be viewed one time. */
export type OneTimeView<Data> = {
  /** Returns the path of a new page below `parent`. Only this session can open it, within five minutes. */
  keep(ctx: Context, parent: string, data: Data): string;
  /** Redirects to such a page. */
  redirect(ctx: Context, parent: string, data: Data): void;
  /** Responds with the page and deletes its cookie, or with 410 if it was shown or has expired. */
  show(ctx: Context, view: View<Data>): void;
};

export type CreateOneTimeView = <Data extends object>() => OneTimeView<Data>;

/**
 * Encrypts data for the session and the path in a cookie, so the server stores nothing. All processes share `secret`.
 */
export function createOneTimeViews(secret: string, base: string): CreateOneTimeView {
  const encryption = createEncryption(
    new Uint8Array(hkdfSync("sha256", secret, "", "one-time view", KEY_BYTES)),
  );
  // Unsigned: AES-GCM authenticates the value.
  const options = { ...cookieOptions({ base }), signed: false };
  const name = options.secure ? "__Secure-one-time-view" : "one-time-view";
  const contextOf = (ctx: Context, path: string) => `${signedInUserOf(ctx).sessionId}\n${path}`;

  function read(ctx: Context): { data: unknown; expiresAt: number } | undefined {
    const encrypted = ctx.cookies.get(name, options);
    if (!encrypted) return undefined;
    // Undefined if it is from another session or page, or was modified.
    return tryTo(() => JSON.parse(encryption.decrypt(encrypted, contextOf(ctx, ctx.path))));
  }

  function keep(ctx: Context, parent: string, data: object): string {
    // Each page has its own path, and so its own cookie; the path is not a secret.
    const path = `${parent}/${randomBytes(ID_BYTES).toString("base64url")}`;
    const text = JSON.stringify({ data, expiresAt: Date.now() + LIFETIME_MS });
    const value = encryption.encrypt(text, contextOf(ctx, path));
    ctx.cookies.set(name, value, { ...options, path, maxAge: LIFETIME_MS });
    return path;
  }

  return <Data extends object>(): OneTimeView<Data> => ({
    keep,
    redirect: (ctx, parent, data) => seeOther(ctx, keep(ctx, parent, data)),

    show(ctx, { section, page, ...shown }) {
      // API clients get the secret in the response to the POST.
      if (!prefersHtml(ctx)) throw notFound("page");
      const found = read(ctx);
      if (!found || found.expiresAt <= Date.now()) {
        ctx.status = 410;
        const title = `This ${shown.kind} was already shown`;
        return showPage(ctx, { title, section, body: alreadyShown(shown) });
      }
      if (ctx.method === "GET") ctx.cookies.set(name, null, { ...options, path: ctx.path });
      showPage(ctx, { section, isSecret: true, ...page(found.data as Data) });
    },
  });
}

function alreadyShown({ explanation, back, renew }: Omit<View<never>, "page" | "kind">): Html {
  return html`<div class="panel">
<p>${explanation}</p>
<div class="actions">${linkButton(back.href, back.text)}${renew && linkButton(renew.href, renew.text, "quiet")}</div>
</div>`;
}

/** `advice` says what to do if it wasn't copied. */
export function shownOnce(name: string, advice: string): string {
  return `${name} is shown only once, right after it’s created, and can’t be shown again. ${advice}`;
}
