import { z } from "zod";
import { Problem } from "../../resources/problem.ts";
import { Busy, type Passwords, refusePassword, refuseUsername } from "../passwords.ts";
import { type Input, textOf } from "./input.ts";

const NAME_MAX = 100;

/** A text by a rule that says in a sentence why it refuses. */
const ruled = (refuse: (text: string) => string | undefined) =>
  z.string({ error: "This is required." }).check((context) => {
    const message = refuse(context.value);
    if (message) context.issues.push({ code: "custom", input: context.value, message });
  });

/** The name of an organization; it need not be unique. */
const organizationName = z
  .string({ error: "A name is a text." })
  .trim()
  .max(NAME_MAX, { error: `A name has at most ${NAME_MAX} characters.` })
  .regex(/^\P{Cc}*$/u, { error: "A name has no control characters." })
  .refine((name) => name.isWellFormed(), { error: "A name is text." });

/** A registration. The name of the organization may be left out; no password may be the name of its person. */
export function registrationOf(input: Input) {
  return z.object({
    username: ruled(refuseUsername),
    password: ruled((password) => refusePassword(password, textOf(input.username))),
    organization_name: organizationName.optional(),
  });
}

/** A new password. */
export function passwordChangeOf(username: string) {
  return z.object({ new_password: ruled((password) => refusePassword(password, username)) });
}

/** The hash of a password. @throws Problem when too many people want one */
export async function hashOrRefuse(passwords: Passwords, password: string): Promise<string> {
  try {
    return await passwords.hash(password);
  } catch (error) {
    if (!(error instanceof Busy)) throw error;
    const headers = { "Retry-After": "2" };
    throw new Problem(503, "busy", "The service is busy. Try again in a moment.", { headers });
  }
}

/** What a page says of fields that were refused. */
export function sentencesOf({ errors, message }: Problem): string {
  return errors ? errors.map((error) => error.message).join(" ") : message;
}
