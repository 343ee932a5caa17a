import { EventEmitter, once } from "node:events";
import type { AddressInfo } from "node:net";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";

/** An email that a mail server received. */
export type ReceivedMail = {
  from: string;
  to: string[];
  raw: string;
  secure: boolean;
  user: string | undefined;
};

/** A real SMTP server on loopback. */
export type MailServer = {
  port: number;
  received: ReceivedMail[];
  /** Resolves to the next email that matches, or to one that has arrived already. */
  next(matches: (mail: ReceivedMail) => boolean): Promise<ReceivedMail>;
  close(): Promise<void>;
};

/** Starts an SMTP server that accepts every email unless `options` say otherwise. */
export async function startMailServer(options: SMTPServerOptions = {}, port = 0): Promise<MailServer> {
  const received: ReceivedMail[] = [];
  const arrivals = new EventEmitter();
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: options.key ? [] : ["STARTTLS"],
    onAuth: (auth, _session, done) => done(null, { user: auth.username }),
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk) => chunks.push(chunk));
      stream.on("end", () => {
        const { mailFrom, rcptTo } = session.envelope;
        received.push({
          from: mailFrom ? mailFrom.address : "",
          to: rcptTo.map(({ address }) => address),
          raw: Buffer.concat(chunks).toString("utf8"),
          secure: session.secure,
          user: session.user as string | undefined,
        });
        done();
        arrivals.emit("mail");
      });
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
    async next(matches) {
      for (;;) {
        const found = received.find(matches);
        if (found) return found;
        await once(arrivals, "mail");
      }
    },
    close: () => new Promise((done) => server.close(() => done())),
  };
}

/** Returns the plain text of an email, decoded. */
export function textOf(mail: ReceivedMail): string {
  return partOf(mail, /content-type: text\/plain/i);
}

/** Returns the HTML of an email, decoded. */
export function htmlOf(mail: ReceivedMail): string {
  return partOf(mail, /content-type: text\/html/i);
}

function partOf({ raw }: ReceivedMail, type: RegExp): string {
  const [, boundary] = /boundary="([^"]+)"/.exec(raw) ?? [];
  const part = raw.split(`--${boundary}`).find((one) => type.test(one)) ?? "";
  const [headers = "", body = ""] = part.trimStart().split(/\r\n\r\n(.*)/s);
  return /quoted-printable/i.test(headers) ? decodeQuotedPrintable(body) : body;
}

function decodeQuotedPrintable(text: string): string {
  const joined = text.replace(/=\r\n/g, "");
  const bytes = joined.replace(/=([0-9A-F]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(bytes, "latin1").toString("utf8");
}

/** Returns the headers of an email, without line folding. */
export function headersOf({ raw }: ReceivedMail): string[] {
  const [head = ""] = raw.split("\r\n\r\n");
  return head.replace(/\r\n[ \t]+/g, " ").split("\r\n");
}

/** Returns the link in an email. */
export function linkIn(mail: ReceivedMail): string {
  const [link] = /https?:\/\/\S+/.exec(textOf(mail)) ?? [];
  if (!link) throw new Error(`no link in ${mail.raw}`);
  return link;
}
