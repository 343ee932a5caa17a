import { z } from "zod";
import { Problem } from "../../resources/http/problem.ts";
import { hasAtMost } from "../../resources/http/text.ts";
import { PasswordQueueFull, type Passwords, validatePassword } from "../credentials/passwords.ts";
import { validateUsername } from "../credentials/usernames.ts";
import { type Input, textFieldOf } from "../http/request-body.ts";

const NAME_MAX = 100;

/** A string that a function validates; it returns what is wrong as a sentence. */
const validatedBy = (rule: (text: string) => string | undefined) =>
  z.string({ error: "This is required." }).check((context) => {
    const message = rule(context.value);
    if (message) context.issues.push({ code: "custom", input: context.value, message });
  });

/** The name of an organization. Names needn't be unique. */
const organizationName = z
  .string({ error: "The name must be a string." })
  .trim()
  .refine((name) => hasAtMost(NAME_MAX, name), {
    error: `The name must have at most ${NAME_MAX} characters.`,
  })
  .regex(/^\P{Cc}*$/u, { error: "The name must not contain control characters." })
  .refine((name) => name.isWellFormed(), { error: "The name must be valid Unicode." });

/** Returns the schema of a registration. A password must differ from the username. */
export function registrationSchema(input: Input) {
  return z.object({
    username: validatedBy(validateUsername),
    password: validatedBy((password) => validatePassword(password, textFieldOf(input.username))),
    organization_name: organizationName.optional(),
  });
}

/** Returns the schema of a password change. */
export function passwordChangeSchema(username: string) {
  return z.object({ new_password: validatedBy((password) => validatePassword(password, username)) });
}

/** Returns the hash of a password. @throws Problem 503 if too many passwords are being hashed */
export async function hashPassword(passwords: Passwords, password: string): Promise<string> {
  try {
    return await passwords.hash(password);
  } catch (error) {
    if (!(error instanceof PasswordQueueFull)) throw error;
    const headers = { "Retry-After": "2" };
    throw new Problem(503, "busy", "The service is busy. Try again in a moment.", { headers });
  }
}

/** Returns the text that a page shows for the invalid fields of a form. */
export function errorTextOf({ errors, message }: Problem): string {
  return errors ? errors.map((error) => error.message).join(" ") : message;
}
