import { createTransport } from "nodemailer";
import type { Settings } from "../settings/config.ts";
import { parseSmtpUrl } from "../settings/smtp-url.ts";
import type { Message } from "./messages.ts";

/** Sends emails through the SMTP server of the settings. */
export type Mailer = {
  send(message: Message & { to: string }): Promise<void>;
  /** Connects, and authenticates if the settings say so. Rejects if that fails. */
  verify(): Promise<void>;
  close(): void;
};

// The server may be slow to greet, but a hanging one must not hold a lease until it expires.
const TIMEOUT_MS = 15_000;

/** Creates the mailer; undefined without `SMTP_URL`. */
export function createMailer({
  SMTP_URL,
  SMTP_FROM,
}: Pick<Settings, "SMTP_URL" | "SMTP_FROM">): Mailer | undefined {
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
    async send({ to, subject, text, html }) {
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
    async verify() {
      await transport.verify();
    },
    close: () => transport.close(),
  };
}
