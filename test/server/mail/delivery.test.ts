import { once } from "node:events";
import { createServer } from "node:net";
import tls from "node:tls";
import test from "ava";
import selfsigned from "selfsigned";
import type { SMTPServerOptions } from "smtp-server";
import { createMailer } from "../../../server/mail/mailer.ts";
import { createColleague } from "../../harness/clients/dashboard.ts";
import { type MailServer, startMailServer } from "../../harness/mail-server.ts";
import { freePort } from "../../harness/port.ts";
import { startTestService, type TestService } from "../../harness/service.ts";

const SMTP_FROM = "noreply@links.example";
const trusted = await createCertificate();
const untrusted = await createCertificate();
tls.setDefaultCACertificates([...tls.getCACertificates("default"), trusted.cert]);

async function createCertificate() {
  const attributes = [{ name: "commonName", value: "localhost" }];
  const extensions = [
    { name: "subjectAltName" as const, altNames: [{ type: 2 as const, value: "localhost" }] },
  ];
  const { private: key, cert } = await selfsigned.generate(attributes, { keySize: 2048, extensions });
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
    await server.close();
  }
}

test("an email is sent over TLS with smtps, and after STARTTLS with smtp, with a username and password", async (t) => {
  for (const [secure, scheme] of [
    [true, "smtps"],
    [false, "smtp"],
  ] as const) {
    const [mail] = await sendTo({ ...trusted, secure }, (port) => `${scheme}://ada:p%40ss@localhost:${port}`);
    t.true(mail?.secure, scheme);
    t.is(mail?.user, "ada");
    t.is(mail?.from, SMTP_FROM);
  }
});

test("an untrusted certificate is rejected", async (t) => {
  for (const [secure, scheme] of [
    [true, "smtps"],
    [false, "smtp"],
  ] as const) {
    await t.throwsAsync(
      sendTo({ ...untrusted, secure }, (port) => `${scheme}://localhost:${port}`),
      { message: /self-signed certificate/ },
      scheme,
    );
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
  t.false(
    seen.some((line) => /AUTH|MAIL|ada@/.test(line)),
    seen.join(),
  );
});

/** Returns a user, and a function that asks for the confirmation of an address. */
async function confirming(service: TestService) {
  const user = await createColleague(service, undefined);
  return (email: string) => user.api.send("POST", "/dashboard/account/email", { json: { email } });
}

test("emails wait while the server is away, and are sent when it is back", async (t) => {
  const port = await freePort();
  const service = await startTestService({ SMTP_URL: `smtp://127.0.0.1:${port}`, SMTP_FROM });
  let server: MailServer | undefined;
  t.teardown(async () => {
    await service.close();
    await server?.close();
  });
  const confirm = await confirming(service);
  t.is((await confirm("patient@mail.example")).status, 202);
  server = await startMailServer({}, port);
  const mail = await server.next(({ to }) => to.includes("patient@mail.example"));
  t.true(mail.raw.includes("Confirm"));
  t.is(server.received.length, 1);
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
  t.teardown(async () => {
    await service.close();
    await server.close();
  });
  const confirm = await confirming(service);
  await confirm("unknown@mail.example");
  await confirm("busy@mail.example");
  await server.next(({ to }) => to.includes("busy@mail.example"));
  t.is(attempts.get("busy@mail.example"), 2);
  t.is(attempts.get("unknown@mail.example"), 1);
});
