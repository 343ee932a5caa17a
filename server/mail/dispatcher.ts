import { createTransport } from "nodemailer";
import type { Mail, MailQueue } from "../../adapters/mail/queue.ts";
import type { Log } from "../log.ts";
import { type Schedule, schedule } from "../schedule.ts";
import type { Settings } from "../settings/config.ts";
import { parseSmtpUrl } from "../settings/setting-types.ts";
import { composeMessage, type Message } from "./messages.ts";

type Options = { queue: MailQueue; mailer: Mailer; base: string; log: Log };

type SmtpFailure = { responseCode?: number; command?: string };

const POLL_MS = 1000;
const BATCH = 5;
// The pause after each failed attempt, in seconds. Emails expire after a day.
const PAUSES_S = [5, 30, 120, 600, 1800, 3600, 2 * 3600, 4 * 3600];

/** `stop` waits for the current emails. */
export function startMails(options: Options): Schedule {
  const { stop } = schedule(
    (signal) => sendDue(options, signal),
    (error) => options.log.warn({ err: error }, "sending emails failed, will retry"),
    { everyMs: POLL_MS },
  );
  return {
    async stop() {
      await stop();
      options.mailer.close();
    },
  };
}

async function sendDue(options: Options, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const mails = await options.queue.lease(BATCH);
    if (mails.length === 0) return;
    await Promise.all(mails.map((mail) => attempt(mail, options)));
  }
}

async function attempt(mail: Mail, { queue, mailer, base, log }: Options): Promise<void> {
  try {
    await mailer.send({ to: mail.recipient, ...composeMessage(mail, base) });
  } catch (error) {
    // The library's errors contain addresses and the server's response, which may repeat them.
    const { code, responseCode, command } = error as NodeJS.ErrnoException & SmtpFailure;
    const failure = { mail: mail.id, kind: mail.kind, attempt: mail.attempts, code, responseCode, command };
    const pause = PAUSES_S[mail.attempts - 1];
    // RFC 5321 §4.2.1: 5yz is permanent
    const isPermanent = code === "EENVELOPE" && (responseCode ?? 0) >= 500;
    if (!isPermanent && pause !== undefined) {
      log.warn(failure, "email failed, will retry");
      return queue.retry(mail, pause * 1000);
    }
    log.warn(failure, "email failed and is not retried");
  }
  await queue.settle(mail);
}

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
