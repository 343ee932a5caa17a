import type { Mail, MailQueue } from "../../adapters/mail/queue.ts";
import type { Log } from "../log.ts";
import { type Schedule, schedule } from "../schedule.ts";
import type { Mailer } from "./mailer.ts";
import { composeMessage } from "./messages.ts";

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
