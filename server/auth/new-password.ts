import { RETRY_AFTER_S, retryLater } from "../../resources/http/problem.ts";
import { type Origin, PasswordQueueFull, type Passwords } from "../credentials/passwords.ts";

/** Throws Problem 503 if too many passwords are being hashed. */
export async function hashPassword(passwords: Passwords, password: string, from?: Origin): Promise<string> {
  try {
    return await passwords.hash(password, from);
  } catch (error) {
    if (!(error instanceof PasswordQueueFull)) throw error;
    throw retryLater(503, "busy", "The service is busy. Try again in a moment.", RETRY_AFTER_S);
  }
}
