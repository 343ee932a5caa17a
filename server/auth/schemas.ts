import { z } from "zod";
import { Problem } from "../../resources/http/problem.ts";
import { type Origin, PasswordQueueFull } from "../credentials/hash-queue.ts";
import { normalizeName, validateName } from "../credentials/names.ts";
import { type PasswordOwner, validatePassword } from "../credentials/password-rules.ts";
import type { Passwords } from "../credentials/passwords.ts";
import { validateNewUsername } from "../credentials/usernames.ts";
import { type Input, textFieldOf } from "../http/request-body.ts";

/** A string that a function validates; it returns what is wrong as a sentence. */
const validatedBy = (rule: (text: string) => string | undefined) =>
  z.string({ error: "This is required." }).check((context) => {
    const message = rule(context.value);
    if (message) context.issues.push({ code: "custom", input: context.value, message });
  });

/** The name of an organization, empty for the default. Names needn't be unique. */
const organizationName = z
  .string({ error: "The name must be a string." })
  .transform(normalizeName)
  .check((context) => {
    const message = context.value === "" ? undefined : validateName(context.value);
    if (message)
      context.issues.push({ code: "custom", input: context.value, message: `The name ${message}.` });
  });

/** Returns the schema of a registration. @param invitedTo the name of the organization that the user is invited to */
export function registrationSchema(input: Input, invitedTo?: string) {
  const organizations = [invitedTo ?? textFieldOf(input.organization_name)];
  const owner = { username: textFieldOf(input.username), organizations };
  return z.object({
    username: validatedBy(validateNewUsername),
    password: validatedBy((password) => validatePassword(password, owner)),
    organization_name: organizationName.optional(),
  });
}

/** Returns the schema of a password change. */
export function passwordChangeSchema(owner: PasswordOwner) {
  return z.object({ new_password: validatedBy((password) => validatePassword(password, owner)) });
}

/** Returns the hash of a password. @throws Problem 503 if too many passwords are being hashed */
export async function hashPassword(passwords: Passwords, password: string, from?: Origin): Promise<string> {
  try {
    return await passwords.hash(password, from);
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
