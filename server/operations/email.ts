import { z } from "zod";
import { notFound, type Problem, retryLater } from "../../resources/http/problem.ts";
import { emailAddress } from "../credentials/names.ts";
import { ACCOUNT } from "./account.ts";
import { onAccount } from "./operation.ts";
import { refusal } from "./problem-codes.ts";

const DAY_S = 24 * 60 * 60;
const PATH = `${ACCOUNT}/email` as const;

export const requestEmailChange = onAccount({
  at: `POST ${PATH}`,
  summary: "Set the email address",
  description:
    "Sends a link that confirms the address, which is for security notices and password resets. It is never used to sign in.",
  needsRecentSignIn: true,
  input: z.strictObject({ email: emailAddress }),
  output: z.object({ email: z.string(), confirmed: z.boolean() }),
  status: 202,
  refuses: ["mail_disabled", "too_many_emails"],
  done: { "email-sent": "Check your email for a confirmation link." },
  async run({ storage, settings, user, input: { email } }) {
    if (!settings.SMTP_URL) throw refusal("mail_disabled");
    if (!(await storage.emails.requestChange(email, user.actor))) throw tooManyEmails();
    return { email, confirmed: false };
  },
});

export function tooManyEmails(): Problem {
  const detail = "Too many emails were sent today. Try again tomorrow.";
  return retryLater(429, "too_many_emails", detail, DAY_S);
}

export const removeEmail = onAccount({
  at: `DELETE ${PATH}`,
  summary: "Remove the email address",
  needsRecentSignIn: true,
  refuses: ["not_found"],
  done: { "email-removed": "Email address removed." },
  async run({ storage, user }) {
    if (!(await storage.emails.remove(user.actor))) throw notFound("email address");
  },
});

export const getPendingEmail = onAccount({
  at: `GET ${PATH}/{token}`,
  summary: "Retrieve the email address that a link confirms",
  refuses: ["link_invalid"],
  output: z.object({ email: z.string() }),
  async run({ storage, user, params }) {
    const email = await storage.emails.find(params.token, user.id);
    if (!email) throw refusal("link_invalid");
    return { email };
  },
});

export const confirmEmail = onAccount({
  at: `POST ${PATH}/{token}`,
  summary: "Confirm the email address",
  refuses: ["link_invalid"],
  done: { "email-confirmed": "Email address confirmed." },
  async run({ storage, user, params }) {
    if (!(await storage.emails.confirm(params.token, user.actor))) throw refusal("link_invalid");
  },
});
