import { once } from "node:events";
import { createServer } from "node:net";
import tls from "node:tls";
import test from "ava";
import type { SMTPServerOptions } from "smtp-server";
import { createMailer } from "../../../server/mail/dispatcher.ts";
import { createColleague } from "../../harness/clients/dashboard.ts";
import { startMailServer } from "../../harness/mail-server.ts";
import { selfSigned } from "../../harness/publisher.ts";
import { startTestService } from "../../harness/service.ts";

// One waits until an email is sent again.
export const stage = "long";

const SMTP_FROM = "noreply@links.example";
const trusted = await createCertificate();
const untrusted = await createCertificate();
tls.setDefaultCACertificates([...tls.getCACertificates("default"), trusted.cert]);

async function createCertificate() {
  const { private: key, cert } = await selfSigned("localhost");
  return { key, cert };
}

const MESSAGE = { to: "ada@mail.example", subject: "A test", text: "A test", html: "<p>A test</p>" };

/** Sends an email to a server with these options, at the URL that `urlOf` returns. */
async function sendTo(options: SMTPServerOptions, urlOf: (port: number) => string) {
  const server = await startMailServer(options);
  const mailer = createMailer({ SMTP_URL: urlOf(server.port), SMTP_FROM });
  try {
    await mailer?.verify();
    await mailer?.send(MESSAGE);
    return server.received;
  } finally {
    mailer?.close();
  }
}

test("an email is sent with a username over TLS, from the start or after STARTTLS, and not if the certificate is untrusted", async (t) => {
  for (const secure of [true, false]) {
    const urlOf = (port: number) => `${secure ? "smtps" : "smtp"}://ada:p%40ss@localhost:${port}`;
    const [mail] = await sendTo({ ...trusted, secure }, urlOf);
    t.true(mail?.secure, `${secure}`);
    t.is(mail?.user, "ada");
    t.is(mail?.from, SMTP_FROM);
    const refused = sendTo({ ...untrusted, secure }, urlOf);
    await t.throwsAsync(refused, { message: /self-signed certificate/ }, `${secure}`);
  }
});

test("nothing is sent unencrypted to another machine that doesn't offer STARTTLS", async (t) => {
  // 127.0.0.2 is on this machine, but isn't one of the addresses that may be used without TLS.
  const seen: string[] = [];
  const server = createServer((socket) => {
    socket.write("220 mail.example ESMTP\r\n");
    socket.on("data", (data) => {
      seen.push(String(data));
      socket.write(/^EHLO/.test(String(data)) ? "250 mail.example\r\n" : "502 no\r\n");
    });
    socket.on("error", () => {});
  });
  server.listen(0, "127.0.0.2");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const mailer = createMailer({ SMTP_URL: `smtp://ada:secret@127.0.0.2:${port}`, SMTP_FROM });
  await t.throwsAsync(async () => mailer?.send(MESSAGE), { code: "ETLS" });
  mailer?.close();
  server.close();
  t.notRegex(seen.join(), /AUTH|MAIL|ada@/);
});

test("a recipient that is refused for now is retried, and one refused for good is not", async (t) => {
  const attempts = new Map<string, number>();
  const server = await startMailServer({
    onRcptTo({ address }, _session, done) {
      const count = (attempts.get(address) ?? 0) + 1;
      attempts.set(address, count);
      if (address.startsWith("unknown"))
        return done(Object.assign(new Error("unknown"), { responseCode: 550 }));
      if (address.startsWith("busy") && count === 1)
        return done(Object.assign(new Error("later"), { responseCode: 450 }));
      return done();
    },
  });
  const service = await startTestService({ SMTP_URL: `smtp://127.0.0.1:${server.port}`, SMTP_FROM });
  const { api } = await createColleague(service, undefined);
  for (const email of ["unknown@mail.example", "busy@mail.example"])
    await api.send("POST", "/dashboard/account/email", { json: { email } });
  await server.next(({ to }) => to.includes("busy@mail.example"));
  t.is(attempts.get("busy@mail.example"), 2);
  t.is(attempts.get("unknown@mail.example"), 1);
});
