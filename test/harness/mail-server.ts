import { EventEmitter, once } from "node:events";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import { closeAfterTests } from "./closing.ts";

export type ReceivedMail = {
  from: string;
  to: string[];
  raw: string;
  secure: boolean;
  user: string | undefined;
};

/** Starts an SMTP server on loopback that accepts every email unless `options` say otherwise. */
export async function startMailServer(options: SMTPServerOptions = {}, port = 0) {
  const received: ReceivedMail[] = [];
  const arrivals = new EventEmitter();
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: options.key ? [] : ["STARTTLS"],
    onAuth: (auth, _session, done) => done(null, { user: auth.username }),
    async onData(stream, session, done) {
      const { mailFrom, rcptTo } = session.envelope;
      received.push({
        from: mailFrom ? mailFrom.address : "",
        to: rcptTo.map(({ address }) => address),
        raw: await text(stream),
        secure: session.secure,
        user: session.user as string | undefined,
      });
      done();
      arrivals.emit("mail");
    },
    ...options,
  });
  // A client that rejects the certificate resets the connection.
  server.on("error", () => {});
  server.listen(port, "127.0.0.1");
  await once(server.server, "listening");

  return {
    port: (server.server.address() as AddressInfo).port,
    received,
    async next(matches: (mail: ReceivedMail) => boolean): Promise<ReceivedMail> {
      for (;;) {
        const found = received.find(matches);
        if (found) return found;
        await once(arrivals, "mail");
      }
    },
    close: closeAfterTests(() => new Promise<void>((done) => server.close(() => done()))),
  };
}

export const textOf = (mail: ReceivedMail) => partOf(mail, /content-type: text\/plain/i);
export const htmlOf = (mail: ReceivedMail) => partOf(mail, /content-type: text\/html/i);

function partOf({ raw }: ReceivedMail, type: RegExp): string {
  const [, boundary] = /boundary="([^"]+)"/.exec(raw) ?? [];
  const part = raw.split(`--${boundary}`).find((one) => type.test(one)) ?? "";
  const [headers = "", body = ""] = part.trimStart().split(/\r\n\r\n(.*)/s);
  return /quoted-printable/i.test(headers) ? decodeQuotedPrintable(body) : body;
}

function decodeQuotedPrintable(body: string): string {
  const joined = body.replaceAll("=\r\n", "").replaceAll("%", "%25");
  return decodeURIComponent(joined.replaceAll(/=([0-9A-F]{2})/g, "%$1"));
}

export function headersOf({ raw }: ReceivedMail): string[] {
  const [head = ""] = raw.split("\r\n\r\n");
  return head.replace(/\r\n[ \t]+/g, " ").split("\r\n");
}

export function linkIn(mail: ReceivedMail): string {
  const [link] = /https?:\/\/\S+/.exec(textOf(mail)) ?? [];
  if (!link) throw new Error(`no link in ${mail.raw}`);
  return link;
}
