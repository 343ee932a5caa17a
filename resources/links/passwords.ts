import type { Context } from "koa";
import { readBody } from "../http/json-body.ts";
import { Problem } from "../http/problem.ts";

/** The port of passwords of links. Each call takes the time of a hash, so none belongs in a transaction. */
export type LinkPasswords = {
  /** Resolves to a PHC string. @throws Problem 503 if too many passwords are being hashed */
  hash(password: string, organizationId: string): Promise<string>;
  /** Counts the attempt by link and address before it is made. @throws Problem 429 after too many wrong ones, or 503 */
  verify(hash: string, password: string, attempt: { linkId: string; address: string }): Promise<boolean>;
};

/** Shows the page with the form that asks for the password of a link, and what was wrong with the last one. */
export type ShowPasswordPage = (ctx: Context, error: string | undefined) => void;

export const PASSWORD_REQUIRED = "password_required";
// A password of 128 characters has up to 1,536 bytes, because each byte of UTF-8 is encoded as three.
const FORM_MAX = 4 * 1024;

export function passwordRequired(detail: string): Problem {
  return new Problem(403, PASSWORD_REQUIRED, detail);
}

/**
 * Reads the form of the page. It has no CSRF token: at worst, another site counts a wrong password for the address of its
 * visitor, and the password is asked for each time, so there is no session to misuse. @throws Problem 400, 413 or 415
 */
export async function readPassword(ctx: Context): Promise<string> {
  if (!ctx.is("urlencoded"))
    throw new Problem(415, "unsupported_media_type", "Send a form (application/x-www-form-urlencoded).");
  const form = new URLSearchParams((await readBody(ctx.req, FORM_MAX)).toString());
  return form.get("password") ?? "";
}
