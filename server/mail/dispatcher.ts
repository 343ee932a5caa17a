import type { Mail, MailQueue } from "../../adapters/mail/queue.ts";
import type { Log } from "../log.ts";
import type { Mailer } from "./mailer.ts";
import { composeMessage } from "./messages.ts";

type Options = { queue: MailQueue; mailer: Mailer; base: string; log: Log };

const POLL_MS = 1000;
const BATCH = 5;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
// The pause after each failed attempt. Emails expire after a day.
const PAUSES_MS = [
  5 * SECOND,
  30 * SECOND,
  2 * MINUTE,
  10 * MINUTE,
  30 * MINUTE,
  60 * MINUTE,
  2 * 60 * MINUTE,
  4 * 60 * MINUTE,
];

/** Sends queued emails until stopped. `stop` waits for the current ones. */
export function startMails(options: Options): { stop(): Promise<void> } {
  let isStopped = false;
  let running: Promise<void> | undefined;

  const poll = () => {
    running ??= sendDue(options, () => isStopped)
      .catch((error) => options.log.warn({ err: error }, "sending emails failed, will retry"))
      .finally(() => {
        running = undefined;
      });
  };
  const timer = setInterval(poll, POLL_MS).unref();

  return {
    async stop() {
      isStopped = true;
      clearInterval(timer);
      await running;
      options.mailer.close();
    },
  };
}

async function sendDue(options: Options, isStopped: () => boolean): Promise<void> {
  while (!isStopped()) {
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
    const { code, responseCode, command } = error as {
      code?: string;
      responseCode?: number;
      command?: string;
    };
    const failure = { mail: mail.id, kind: mail.kind, attempt: mail.attempts, code, responseCode, command };
    const pause = PAUSES_MS[mail.attempts - 1];
    // RFC 5321 §4.2.1: 5yz is permanent
    const isPermanent = code === "EENVELOPE" && (responseCode ?? 0) >= 500;
    if (!isPermanent && pause !== undefined) {
      log.warn(failure, "email failed, will retry");
      return queue.retry(mail, pause);
    }
    log.warn(failure, "email failed and is not retried");
  }
  await queue.settle(mail);
}
