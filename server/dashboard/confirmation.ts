import { createHmac, timingSafeEqual } from "node:crypto";
import type { Context } from "koa";
import { textFieldOf } from "../http/request-body.ts";
import { signedInUserOf } from "./access.ts";

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
