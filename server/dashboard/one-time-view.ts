import { hkdfSync, randomBytes } from "node:crypto";
import type { Context } from "koa";
import { createEncryption } from "../../adapters/crypto/encryption.ts";
import { notFound } from "../../resources/http/problem.ts";
import { cookieOptions } from "../http/cookies.ts";
import { prefersHtml } from "../http/request-body.ts";
import { linkButton } from "../ui/controls.ts";
import type { Section } from "../ui/dashboard-layout.ts";
import { type Html, html } from "../ui/html.ts";
import { signedInUserOf } from "./access.ts";
import { showPage } from "./responses.ts";

/** A secret or link that a page showed once. */
type ShownSecret = {
  kind: "secret" | "link" | "list";
  back: Link;
  /** Where to create a new one. */
  renew?: Link;
} & (ShownForever | ShownAgain);

type ShownForever = {
  /** Its name with an article, such as “A client secret”. */
  name: string;
  /** What to do if it wasn't copied. */
  advice: string;
};
type ShownAgain = {
  /** Where it can be seen. */
  explanation: string;
};

type Link = { href: string; text: string };

const LIFETIME_MS = 5 * 60 * 1000;
const ID_BYTES = 16;
const KEY_BYTES = 32;

/** Shows new data once: the form's POST redirects to a page that can be viewed one time. */
export type OneTimeView<Data> = {
  /** Redirects to a new page below `parent`. Only this session can open it, within five minutes. */
  redirect(ctx: Context, parent: string, data: Data): void;
  /** Returns the data of the requested page and deletes its cookie; undefined if there is no data. */
  open(ctx: Context): Data | undefined;
};

/** Creates a one-time view for one kind of data. */
export type CreateOneTimeView = <Data extends object>() => OneTimeView<Data>;

/**
 * Stores the data of each page in an encrypted cookie, so the server stores nothing and any process can show the page.
 * The encryption binds the data to the session and to the page's path.
 * @param secret shared by all processes
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
    try {
      return JSON.parse(encryption.decrypt(encrypted, contextOf(ctx, ctx.path)));
    } catch {
      return undefined; // from another session or page, or modified
    }
  }

  return <Data>() => ({
    redirect(ctx, parent, data) {
      // Each page has its own path, and so its own cookie; the path is not a secret.
      const path = `${parent}/${randomBytes(ID_BYTES).toString("base64url")}`;
      const text = JSON.stringify({ data, expiresAt: Date.now() + LIFETIME_MS });
      ctx.cookies.set(name, encryption.encrypt(text, contextOf(ctx, path)), {
        ...options,
        path,
        maxAge: LIFETIME_MS,
      });
      ctx.status = 303;
      ctx.redirect(path);
    },

    open(ctx) {
      // API clients get the secret in the response to the POST.
      if (!prefersHtml(ctx)) throw notFound("page");
      const found = read(ctx);
      if (!found || found.expiresAt <= Date.now()) return undefined;
      if (ctx.method === "GET") ctx.cookies.set(name, null, { ...options, path: ctx.path });
      return found.data as Data;
    },
  });
}

/** Responds with 410 to a request for a page that was already shown. */
export function showAlreadyShown(ctx: Context, section: Section | undefined, secret: ShownSecret): void {
  ctx.status = 410;
  const title = `This ${secret.kind} was already shown`;
  showPage(ctx, { title, ...(section && { section }) }, alreadyShownPage(secret));
}

/** Says that a secret isn't shown again here, and what to do next. */
function alreadyShownPage(shown: ShownSecret): Html {
  const { back, renew } = shown;
  const explanation =
    "explanation" in shown
      ? shown.explanation
      : `${shown.name} is shown only once, right after it’s created, and can’t be shown again. ${shown.advice}`;
  return html`<div class="panel">
<p>${explanation}</p>
<div class="actions">${linkButton(back.href, back.text)}${renew ? linkButton(renew.href, renew.text, "quiet") : html``}</div>
</div>`;
}
