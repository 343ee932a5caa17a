import { z } from "zod";
import { RETRY_AFTER_S, retryLater } from "../../resources/http/problem.ts";
import { checkText } from "../../resources/http/validate.ts";
import { type Origin, PasswordQueueFull, type Passwords } from "../credentials/passwords.ts";

/** The function returns what is wrong as a sentence. */
export const validatedBy = (rule: (text: string) => string | undefined) =>
  z.string({ error: "This is required." }).check(checkText(rule));

/** Throws Problem 503 if too many passwords are being hashed. */
export async function hashPassword(passwords: Passwords, password: string, from?: Origin): Promise<string> {
  try {
    return await passwords.hash(password, from);
  } catch (error) {
    if (!(error instanceof PasswordQueueFull)) throw error;
    throw retryLater(503, "busy", "The service is busy. Try again in a moment.", RETRY_AFTER_S);
  }
}
