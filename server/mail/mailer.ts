import { createTransport } from "nodemailer";
import type { Settings } from "../settings/config.ts";
import { parseSmtpUrl } from "../settings/setting-types.ts";
import type { Message } from "./messages.ts";

// The server may be slow to greet, but a hanging one must not hold a lease until it expires.
const TIMEOUT_MS = 15_000;

/** Sends the emails of the queue. An error is one of Nodemailer. */
export type Mailer = { send(mail: Message & { to: string }): Promise<void>; close(): void };

export function createMailer({ SMTP_URL, SMTP_FROM }: Pick<Settings, "SMTP_URL" | "SMTP_FROM">) {
  if (!SMTP_URL) return undefined;
  const transport = createTransport({
    ...parseSmtpUrl(SMTP_URL),
    tls: { minVersion: "TLSv1.2" },
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    async send({ to, subject, text, html }: Message & { to: string }): Promise<void> {
      await transport.sendMail({
        from: SMTP_FROM,
        // An object, because a text is parsed as a list of recipients.
        to: { name: "", address: to },
        subject,
        text,
        html,
        // RFC 3834 §5: no automatic replies
        headers: { "Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All" },
      });
    },
    /** Rejects if the connection or authentication fails. */
    verify: () => transport.verify(),
    close: () => transport.close(),
  };
}
