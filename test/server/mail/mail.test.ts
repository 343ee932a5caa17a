import test from "ava";
import { isProblem } from "../../harness/clients/api.ts";
import { browserOf, createColleague, createTeam } from "../../harness/clients/dashboard.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { headersOf, linkIn, type ReceivedMail, startMailServer, textOf } from "../../harness/mail-server.ts";
import { postForm, startTestService, type TestUser } from "../../harness/service.ts";

const mailServer = await startMailServer();
const service = await startTestService({
  SMTP_URL: `smtp://127.0.0.1:${mailServer.port}`,
  SMTP_FROM: "linkgate <noreply@links.example>",
});
test.after.always(async () => {
  await service.close();
  await mailServer.close();
});

const ACCOUNT = "/dashboard/account";
const FRESH = "an entirely new password";

const isFor = (address: string, text: RegExp) => (mail: ReceivedMail) =>
  mail.to.includes(address) && text.test(textOf(mail));

/** Creates a user who has confirmed an email address. */
async function createReader(address = `${crypto.randomUUID()}@mail.example`) {
  const user = await createColleague(service, undefined);
  const asked = await user.api.send("POST", `${ACCOUNT}/email`, { json: { email: address } });
  const link = new URL(linkIn(await mailServer.next(isFor(address, /Confirm the email/))));
  const confirmed = await user.api.send("POST", link.pathname);
  if (asked.status !== 202 || confirmed.status !== 204)
    throw new Error(`${asked.status} ${confirmed.status}`);
  return { ...user, address };
}

async function emailOf(user: { id: string }): Promise<string | null | undefined> {
  return (await service.storage.accounts.find(user.id))?.email;
}

function requestReset(username: string): Promise<Response> {
  return postForm(`${service.url}/auth/forgot-password`, { username });
}

async function mayLogIn({ username }: TestUser, password: string): Promise<boolean> {
  return (await postForm(`${service.url}/auth/login`, { username, password })).ok;
}

test("an address is used only after its owner has confirmed it", async (t) => {
  const user = await createColleague(service, undefined);
  const email = "ada@mail.example";
  const { status, body } = await user.api.send("POST", `${ACCOUNT}/email`, { json: { email } });
  t.is(status, 202);
  t.deepEqual(body, { email, confirmed: false });
  const link = linkIn(await mailServer.next(isFor(email, /Confirm/)));
  t.is(await emailOf(user), null);
  const { browser } = await browserOf(service, user);
  const page = await browser.open(link);
  t.true(page.text.includes(email));
  t.is(await emailOf(user), null, "opening the link changes nothing");
  const confirmed = await browser.press(page, "Confirm email address");
  t.true(confirmed.text.includes("Email address confirmed."));
  t.is(await emailOf(user), email);
});

test("a confirmation link works once, for its own account, and until the next one is sent", async (t) => {
  const [user, other] = [
    await createColleague(service, undefined),
    await createColleague(service, undefined),
  ];
  const paths: string[] = [];
  for (const email of ["first@mail.example", "second@mail.example"]) {
    await user.api.send("POST", `${ACCOUNT}/email`, { json: { email } });
    paths.push(new URL(linkIn(await mailServer.next(isFor(email, /Confirm/)))).pathname);
  }
  const [first = "", second = ""] = paths;
  isProblem(t, await user.api.send("POST", first), { status: 404, code: "link_invalid" });
  isProblem(t, await other.api.send("POST", second), { status: 404, code: "link_invalid" });
  isProblem(t, await other.api.send("GET", second), { status: 404, code: "link_invalid" });
  const results = await atOnce(10, () => user.api.send("POST", second));
  t.is(results.filter(({ status }) => status === 204).length, 1);
  t.is(await emailOf(user), "second@mail.example");
  t.is(await emailOf(other), null);
});

test("an invalid address is rejected", async (t) => {
  const user = await createColleague(service, undefined);
  for (const email of [
    "",
    "ada",
    "ada@example",
    "ada@mail.example\r\nBcc: eve@mail.example",
    "a@b.example, c@d.example",
    "“ada”@mail.example",
  ]) {
    const { status, body } = await user.api.send<{ errors: { field: string }[] }>(
      "POST",
      `${ACCOUNT}/email`,
      {
        json: { email },
      },
    );
    t.is(status, 422, email);
    t.is(body.errors[0]?.field, "email");
  }
});

test("five confirmations a day can be sent, and no more", async (t) => {
  const user = await createColleague(service, undefined);
  const send = (index: number) =>
    user.api.send("POST", `${ACCOUNT}/email`, { json: { email: `stranger-${index}@mail.example` } });
  const results = await Promise.all(Array.from({ length: 8 }, (_, index) => send(index)));
  t.is(results.filter(({ status }) => status === 202).length, 5);
  t.is(results.filter(({ status }) => status === 429).length, 3);
});

test("security notices are emailed, and a change of the address to the earlier one", async (t) => {
  const user = await createReader();
  const json = { current_password: user.password, new_password: FRESH };
  await user.api.send("POST", `${ACCOUNT}/password`, { json });
  const mail = await mailServer.next(isFor(user.address, /Your password was changed/));
  t.regex(textOf(mail), /from (127\.0\.0\.1|::1)/);
  t.true(textOf(mail).includes(user.username));
  const { browser } = await browserOf(service, { ...user, password: FRESH });
  await browser.press(await browser.open(service.url + ACCOUNT), "Remove email address");
  await mailServer.next(isFor(user.address, /Your email address was removed/));
  t.is(await emailOf(user), null);
});

test("an email has the headers of an automatic message, in plain text and HTML, with links to this server", async (t) => {
  const { address } = await createReader();
  const mail = await mailServer.next(isFor(address, /Confirm/));
  const headers = headersOf(mail);
  t.is(mail.from, "noreply@links.example");
  for (const header of [
    /^From: linkgate <noreply@links\.example>$/,
    /^Auto-Submitted: auto-generated$/,
    /^Message-ID: <[^>]+@links\.example>$/,
    /^Date: \w{3}, \d{2} \w{3} \d{4} [\d:]+ \+0000$/,
    /^Content-Type: multipart\/alternative;/,
  ]) {
    t.is(headers.filter((line) => header.test(line)).length, 1, String(header));
  }
  t.is(new URL(linkIn(mail)).origin, service.url);
});

test("a forgotten password is reset by email", async (t) => {
  const user = await createReader();
  const visitor = new TestBrowser(service.url);
  const login = await visitor.open(`${service.url}/auth/login`);
  const href = login.html.querySelector('a[href="/auth/forgot-password"]')?.attributes.href ?? "";
  const form = await visitor.open(service.url + href);
  const sent = await visitor.press(form, "Send reset link", { username: user.username.toUpperCase() });
  t.is(sent.status, 202);
  const page = await visitor.open(
    linkIn(await mailServer.next(isFor(user.address, /Choose a new password/))),
  );
  await visitor.press(page, "Save password", { password: FRESH });
  t.true(await mayLogIn(user, FRESH));
  await mailServer.next(isFor(user.address, /Your password was reset with a link/));
});

test("the answer to a forgotten password, and the work before it, don't reveal accounts or addresses", async (t) => {
  const [reader, silent] = [await createReader(), await createColleague(service, undefined)];
  const sso = await service.storage.accounts.create("sso-only", null, { id: "operator" });
  const statements = async (username: string) => {
    const seen: { sql: string; transaction: string | undefined }[] = [];
    const stop = service.onStatement((sql, transaction) => seen.push({ sql, transaction }));
    const answer = await requestReset(username);
    stop();
    // Other tests, and sending emails, have transactions that begin with another statement.
    const transactions = [...Map.groupBy(seen, ({ transaction }) => transaction).values()];
    const work = transactions.find(([first]) => /^insert into .mails/i.test(first?.sql ?? ""));
    const headers = Object.fromEntries(answer.headers);
    for (const name of ["date", "x-request-id", "etag"]) delete headers[name];
    return { status: answer.status, headers, body: await answer.text(), work: work?.map(({ sql }) => sql) };
  };
  const expected = await statements(reader.username);
  t.is(expected.status, 202);
  t.truthy(expected.work);
  for (const username of [silent.username, "no-such-user", sso?.username ?? ""]) {
    t.deepEqual(await statements(username), expected, username);
  }
});

test("three reset links an hour are sent to an account, and no more", async (t) => {
  const user = await createReader();
  const last = await createReader();
  for (let count = 0; count < 5; count++) await requestReset(user.username);
  await requestReset(last.username);
  await mailServer.next(isFor(last.address, /Choose a new password/));
  await requestReset(last.username);
  const sent = () => mailServer.received.filter(isFor(user.address, /Choose a new password/)).length;
  await mailServer.next(
    () => sent() === 3 && mailServer.received.filter(isFor(last.address, /Choose a new/)).length === 2,
  );
  t.is(sent(), 3);
});

test("a mailed reset link works once, however many requests use it concurrently, and for its own account", async (t) => {
  const user = await createReader();
  await requestReset(user.username);
  const link = linkIn(await mailServer.next(isFor(user.address, /Choose a new password/)));
  const attempts = Array.from({ length: 10 }, (_, index) => `a different password ${index}`);
  const answers = await Promise.all(attempts.map((password) => postForm(link, { password })));
  t.is(answers.filter(({ status }) => status === 200).length, 1);
  const winner = attempts[answers.findIndex(({ status }) => status === 200)] as string;
  t.true(await mayLogIn(user, winner));
  t.is((await postForm(link, { password: FRESH })).status, 404);
  const confirmation = new URL(link).pathname.replace("/auth/reset-password", `${ACCOUNT}/email`);
  isProblem(t, await (await createColleague(service, undefined)).api.send("POST", confirmation), {
    status: 404,
    code: "link_invalid",
  });
});

test("a mailed reset link ends when the address or the password changes", async (t) => {
  for (const change of ["email/delete", "password"]) {
    const user = await createReader();
    await requestReset(user.username);
    const link = linkIn(await mailServer.next(isFor(user.address, /Choose a new password/)));
    const json = { current_password: user.password, new_password: FRESH };
    const options = change === "password" ? { json } : {};
    t.is((await user.api.send("POST", `${ACCOUNT}/${change}`, options)).status, 204, change);
    t.is((await postForm(link, { password: "set by the old link" })).status, 404, change);
  }
});

test("an invitation is emailed with its organization, inviter and role, and accepted once", async (t) => {
  const { base, owner, organization } = await createTeam(service);
  const email = "guest@mail.example";
  const { status, body } = await owner.api.send<{ invitation: { email: string } }>(
    "POST",
    `${base}/invitations`,
    {
      json: { role: "admin", email },
    },
  );
  t.is(status, 201);
  t.is(body.invitation.email, email);
  const [created] = await service.storage.audit.list(organization.id, { types: ["invitation.created"] }, 1);
  t.is(created?.data.label, email, "without a label, the address says for whom it is");
  const mail = await mailServer.next(isFor(email, /Accept the invitation/));
  const sentence = `${owner.username} invited you to join the organization “${organization.name}” on linkgate as an admin.`;
  t.true(textOf(mail).includes(sentence), textOf(mail));
  const guests = await Promise.all([
    createColleague(service, undefined),
    createColleague(service, undefined),
  ]);
  const path = new URL(linkIn(mail)).pathname;
  const joined = await Promise.all(guests.map(({ api }) => api.send("POST", path)));
  t.deepEqual(joined.map((reply) => reply.status).sort(), [200, 403]);
});

test("a name can't add headers to an email or markup to its text", async (t) => {
  const owner = await createColleague(service, undefined);
  const name = "Acme\r\nBcc: eve@mail.example\r\n\r\n<img src=x>";
  const { organization } = await service.storage.organizations.create(
    name,
    "free",
    { id: "operator" },
    owner.id,
  );
  const email = "careful@mail.example";
  await owner.api.send("POST", `/dashboard/organizations/${organization.id}/invitations`, {
    json: { email },
  });
  const mail = await mailServer.next(isFor(email, /Accept the invitation/));
  t.deepEqual(mail.to, [email]);
  t.is(headersOf(mail).filter((line) => /^bcc:/i.test(line)).length, 0);
  t.false(mail.raw.slice(mail.raw.search(/content-type: text\/html/i)).includes("<img"));
});

test("a user sends at most five invitations a day to one address, in any case", async (t) => {
  const { base, owner } = await createTeam(service);
  const spellings = ["target@mail.example", "Target@mail.example", "target@MAIL.example"];
  const invite = (index: number) =>
    owner.api.send("POST", `${base}/invitations`, { json: { email: spellings[index % 3] } });
  const results = await atOnce(8, invite);
  t.is(results.filter(({ status }) => status === 201).length, 5);
  t.is(results.filter(({ status }) => status === 429).length, 3);
});
