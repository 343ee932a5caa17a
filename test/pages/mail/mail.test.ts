import test from "ava";
import { isProblem } from "../../harness/clients/api.ts";
import { browserOf, type Colleague, createColleague, createTeam } from "../../harness/clients/dashboard.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { follow } from "../../harness/clients/visits.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { headersOf, linkIn, type ReceivedMail, startMailServer, textOf } from "../../harness/mail-server.ts";
import { OPERATOR, postForm, startTestService } from "../../harness/service.ts";

const mailServer = await startMailServer();
const service = await startTestService({
  SMTP_URL: `smtp://127.0.0.1:${mailServer.port}`,
  SMTP_FROM: "linkgate <noreply@links.example>",
});

const ACCOUNT = "/dashboard/account";
const FRESH = "an entirely new password";

const isFor = (address: string, text: RegExp) => (mail: ReceivedMail) =>
  mail.to.includes(address) && text.test(textOf(mail));

const mailTo = (address: string, text: RegExp) => mailServer.next(isFor(address, text));
const confirmationFor = async (address: string) => linkIn(await mailTo(address, /Confirm the email/));
const resetLinkFor = async (address: string) => linkIn(await mailTo(address, /Choose a new password/));

const createUser = () => createColleague(service, undefined);
const setEmail = ({ api }: Colleague, email: string) =>
  api.send("POST", `${ACCOUNT}/email`, { json: { email } });

async function createReader(address = `${crypto.randomUUID()}@mail.example`) {
  const user = await createUser();
  const asked = await setEmail(user, address);
  const confirmed = await user.api.send("POST", new URL(await confirmationFor(address)).pathname);
  if (asked.status !== 202 || confirmed.status !== 204)
    throw new Error(`${asked.status} ${confirmed.status}`);
  return { ...user, address };
}

const emailOf = async ({ id }: { id: string }) => (await service.storage.accounts.find(id))?.email;
const requestReset = (username: string) => postForm(`${service.url}/auth/forgot-password`, { username });

test("an address is used only after its owner has confirmed it, and an invalid one is rejected", async (t) => {
  const user = await createUser();
  const email = "ada@mail.example";
  const invalid = { status: 422, code: "invalid_email", fields: ["email"] };
  isProblem(t, await setEmail(user, `${email}\r\nBcc: eve@mail.example`), invalid);
  const { status, body } = await setEmail(user, email);
  t.is(status, 202);
  t.deepEqual(body as object, { email, confirmed: false });
  const link = await confirmationFor(email);
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
  const [user, other] = [await createUser(), await createUser()];
  const paths: string[] = [];
  for (const email of ["first@mail.example", "second@mail.example"]) {
    await setEmail(user, email);
    paths.push(new URL(await confirmationFor(email)).pathname);
  }
  const [first = "", second = ""] = paths;
  const resetToken = await service.storage.accounts.createResetToken(user.id, 60_000);
  for (const refused of [
    await user.api.send("POST", first),
    await user.api.send("POST", `${ACCOUNT}/email/${resetToken}`),
    await other.api.send("POST", second),
    await other.api.send("GET", second),
  ])
    isProblem(t, refused, { status: 404, code: "link_invalid" });
  const results = await atOnce(10, () => user.api.send("POST", second));
  t.is(results.filter(({ status }) => status === 204).length, 1);
  t.is(await emailOf(user), "second@mail.example");
  t.is(await emailOf(other), null);
});

test("five confirmations a day can be sent, and no more", async (t) => {
  const user = await createUser();
  const results = await atOnce(8, (index) => setEmail(user, `stranger-${index}@mail.example`));
  t.deepEqual(results.map(({ status }) => status).sort(), [...Array(5).fill(202), ...Array(3).fill(429)]);
});

test("security notices are emailed, and a change of the address to the earlier one", async (t) => {
  const user = await createReader();
  const json = { current_password: user.password, new_password: FRESH };
  await user.api.send("POST", `${ACCOUNT}/password`, { json });
  const mail = await mailTo(user.address, /Your password was changed/);
  t.regex(textOf(mail), /IP address: (127\.0\.0\.1|::1)\./);
  t.true(textOf(mail).includes(user.username));
  const { browser } = await browserOf(service, { ...user, password: FRESH });
  await browser.press(await browser.open(service.url + ACCOUNT), "Remove email address");
  await mailTo(user.address, /Your email address was removed/);
  t.is(await emailOf(user), null);
});

test("an email has the headers of an automatic message, in plain text and HTML, with links to this server", async (t) => {
  const { address } = await createReader();
  const mail = await mailTo(address, /Confirm/);
  const headers = headersOf(mail);
  t.is(mail.from, "noreply@links.example");
  for (const header of [
    /^From: linkgate <noreply@links\.example>$/,
    /^Auto-Submitted: auto-generated$/,
    /^Message-ID: <[^>]+@links\.example>$/,
    /^Date: \w{3}, \d{2} \w{3} \d{4} [\d:]+ \+0000$/,
    /^Content-Type: multipart\/alternative;/,
  ])
    t.is(headers.filter((line) => header.test(line)).length, 1, String(header));
  t.is(new URL(linkIn(mail)).origin, service.url);
});

test("a forgotten password is reset by email", async (t) => {
  const user = await createReader();
  const visitor = new TestBrowser(service.url);
  const login = await visitor.open(`${service.url}/auth/login`);
  const form = await follow(visitor, login, "Reset it by email");
  const sent = await visitor.press(form, "Send reset link", { username: user.username.toUpperCase() });
  t.is(sent.status, 202);
  const page = await visitor.open(await resetLinkFor(user.address));
  await visitor.press(page, "Save password", { password: FRESH });
  const signIn = { username: user.username, password: FRESH };
  t.is((await postForm(`${service.url}/auth/login`, signIn)).status, 200);
  await mailTo(user.address, /Your password was reset with a link/);
});

test("the answer to a forgotten password, and the work before it, don't reveal accounts or addresses", async (t) => {
  const [reader, silent] = [await createReader(), await createUser()];
  const sso = await service.storage.accounts.create("sso-only", null, OPERATOR);
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
  for (const username of [silent.username, "no-such-user", sso?.username ?? ""])
    t.deepEqual(await statements(username), expected, username);
});

test("three reset links an hour are sent to an account, and no more", async (t) => {
  const [user, last] = [await createReader(), await createReader()];
  for (let count = 0; count < 5; count++) await requestReset(user.username);
  await requestReset(last.username);
  await resetLinkFor(last.address);
  await requestReset(last.username);
  const sentTo = ({ address }: { address: string }) =>
    mailServer.received.filter(isFor(address, /Choose a new password/)).length;
  await mailServer.next(() => sentTo(user) === 3 && sentTo(last) === 2);
  t.is(sentTo(user), 3);
});

test("a mailed reset link ends when the address or the password changes", async (t) => {
  for (const change of ["email/delete", "password"]) {
    const user = await createReader();
    await requestReset(user.username);
    const link = await resetLinkFor(user.address);
    const json = { current_password: user.password, new_password: FRESH };
    const options = change === "password" ? { json } : {};
    t.is((await user.api.send("POST", `${ACCOUNT}/${change}`, options)).status, 204, change);
    t.is((await postForm(link, { password: "set by the old link" })).status, 404, change);
  }
});

test("an invitation is emailed with its organization, inviter and role", async (t) => {
  const { base, owner, organization } = await createTeam(service);
  const email = "guest@mail.example";
  const json = { role: "admin", email };
  const reply = await owner.api.send<object>("POST", `${base}/invitations`, { json });
  t.is(reply.status, 201);
  t.like(reply.body, { invitation: { email } });
  const [created] = await service.storage.audit.list(organization.id, { types: ["invitation.created"] }, 1);
  t.is(created?.data.label, email, "without a label, the address says for whom it is");
  const mail = await mailTo(email, /Accept the invitation/);
  const sentence = `${owner.username} invited you to join the organization “${organization.name}” on linkgate as an admin.`;
  t.true(textOf(mail).includes(sentence), textOf(mail));
});

test("a name can't add headers to an email or markup to its text", async (t) => {
  const owner = await createUser();
  const name = "Acme\r\nBcc: eve@mail.example\r\n\r\n<img src=x>";
  const { organization } = await service.storage.organizations.create(name, "free", OPERATOR, owner.id);
  const email = "careful@mail.example";
  const path = `/dashboard/organizations/${organization.id}/invitations`;
  await owner.api.send("POST", path, { json: { email } });
  const mail = await mailTo(email, /Accept the invitation/);
  t.deepEqual(mail.to, [email]);
  t.is(headersOf(mail).filter((line) => /^bcc:/i.test(line)).length, 0);
  t.false(mail.raw.slice(mail.raw.search(/content-type: text\/html/i)).includes("<img"));
});

test("a user sends at most five invitations a day to one address, in any case", async (t) => {
  const { base, owner } = await createTeam(service);
  const spellings = ["target@mail.example", "Target@mail.example", "target@MAIL.example"];
  const results = await atOnce(8, (index) =>
    owner.api.send("POST", `${base}/invitations`, { json: { email: spellings[index % 3] } }),
  );
  t.deepEqual(results.map(({ status }) => status).sort(), [...Array(5).fill(201), ...Array(3).fill(429)]);
});
