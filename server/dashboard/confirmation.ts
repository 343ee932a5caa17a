import { createHmac, timingSafeEqual } from "node:crypto";
import type { Context } from "koa";
import { textFieldOf } from "../http/request-body.ts";
import { CONFIRMATIONS } from "../operations/index.ts";
import { pluralize } from "../ui/text.ts";
import { signedInUserOf } from "./access.ts";

/** What pages say after a change of links, domains or webhooks: the value of `done` in the URL → the sentence. */
const SENTENCES = {
  "signed-in-again": "You signed in again, but nothing has been changed. Please fill in the form once more.",
  "link-created": "Link created.",
  "link-saved": "Link saved.",
  "link-archived": "Link archived. Visitors now see that it’s no longer available.",
  "link-restored": "Link restored.",
  "link-deleted": "Link deleted.",
  "domain-added": "Domain added. Create its DNS record, then verify it.",
  "domain-verified": "Domain verified. Your links can use it now.",
  "domain-saved": "Domain saved.",
  "domain-deleted": "Domain deleted.",
  "webhook-saved": "Webhook saved.",
  "webhook-enabled": "Webhook enabled.",
  "webhook-disabled": "Webhook disabled.",
  "webhook-deleted": "Webhook deleted.",
  "webhook-tested": "Test event queued. Reload the page to see its result.",
  "delivery-resent": "Delivery queued. Reload the page to see its result.",
  "deliveries-resent": "Failed deliveries queued.",
} as const;

export type Done = keyof typeof SENTENCES;

/** The same after a change of several links, where `done` ends with their number and is signed. */
const COUNTED_SENTENCES = {
  "links-archived": (links: string) => `${links} archived.`,
  "links-restored": (links: string) => `${links} restored.`,
  "links-deleted": (links: string) => `${links} deleted.`,
  "links-tagged": (links: string) => `Tag added to ${links}.`,
  "links-changed": (links: string) => `${links} changed.`,
  "links-untagged": (links: string) => `Tag removed from ${links}.`,
} as const;

export type CountedDone = keyof typeof COUNTED_SENTENCES;

/** Returns what the page says was done, if anything. */
export function confirmationOf(ctx: Context): string | undefined {
  const { done } = ctx.query;
  if (typeof done !== "string") return undefined;
  if (Object.hasOwn(SENTENCES, done)) return SENTENCES[done as Done];
  const [sentence = "", about = ""] = done.split("~");
  if (Object.hasOwn(CONFIRMATIONS, sentence)) {
    const text = CONFIRMATIONS[sentence];
    return !text?.includes("{}") || isSignedConfirmation(ctx) ? text?.replace("{}", () => about) : undefined;
  }
  const [, name = "", count] = /^(.+)-(\d{1,4})$/.exec(done) ?? [];
  if (!Object.hasOwn(COUNTED_SENTENCES, name) || !isSignedConfirmation(ctx)) return undefined;
  return COUNTED_SENTENCES[name as CountedDone](pluralize(Number(count), "link"));
}

/**
 * Returns the query of a confirmation that says a number, or that has a form: what `undo` names. It is signed for the
 * session, because a link from elsewhere must not show its reader a form of the sender's choice.
 */
export function signedConfirmation(ctx: Context, done: string, undo?: string): Record<string, string> {
  const signature = sign(ctx, done, undo ?? "")?.toString("base64url");
  return { done, ...(undo && { undo }), ...(signature && { signature }) };
}

export function isSignedConfirmation(ctx: Context): boolean {
  const [done, undo, signature] = [ctx.query.done, ctx.query.undo, ctx.query.signature].map(textFieldOf);
  const given = Buffer.from(signature as string, "base64url");
  const expected = sign(ctx, done as string, undo as string);
  return expected !== undefined && given.length === expected.length && timingSafeEqual(given, expected);
}

/** The key is the token of the session's forms, which only the session's pages contain. Programs have none. */
function sign(ctx: Context, done: string, undo: string): Buffer | undefined {
  const { csrf } = signedInUserOf(ctx);
  return csrf === undefined
    ? undefined
    : createHmac("sha256", csrf)
        .update(JSON.stringify(["confirmation", done, undo]))
        .digest();
}
