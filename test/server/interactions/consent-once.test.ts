import { randomBytes } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import test from "ava";
import { OPERATOR } from "../../resources/events.ts";
import {
  authorizeUrl,
  createApp,
  openConsent,
  opensApi,
  redeemCode,
  refresh,
  sendForm,
} from "../harness/oauth.ts";
import { Person } from "../harness/person.ts";
import { startTestService, type TestUser } from "../harness/service.ts";
import { createTestStorage } from "../harness/storage.ts";

// The service, and a second process that has the same database open.
const { url, encryptionKey, second, close } = await createTestStorage();
const service = await startTestService({
  DATABASE_URL: url,
  ENCRYPTION_KEY: Buffer.from(encryptionKey).toString("base64url"),
});
const { app, own, user } = await createApp(service);
test.after.always(async () => {
  await service.close();
  await close();
});

const ROUNDS = 20;
const liveGrants = ({ id }: { id: string }) => service.storage.grants.ofUser(id);

async function atConsent(who: TestUser, person = new Person(service.url)) {
  return { person, page: await openConsent(person, who, authorizeUrl(service, app)) };
}

/** Goes on where an answer leads, as the browser does that gave it. */
async function resume(person: Person, answer: Response): Promise<URLSearchParams> {
  const { url: end } = await person.open(new URL(String(answer.headers.get("location")), service.url).href);
  return new URL(end).searchParams;
}

test("a consent page that is answered four times at the same time makes one grant and one code", async (t) => {
  for (let round = 0; round < ROUNDS; round++) {
    const someone = await service.createUser([own.id], undefined, "owner");
    const { person, page } = await atConsent(someone);
    const form = { decision: "allow", organization_id: own.id };
    const answers = await Promise.all(Array.from({ length: 4 }, () => sendForm(person, page, form)));
    t.is((await liveGrants(someone)).length, 1, `round ${round}`);
    t.deepEqual(
      answers.map(({ status }) => status),
      [303, 303, 303, 303],
      "a second click leads on as the first one does",
    );
    const ends = [];
    for (const answer of answers) ends.push(await resume(person, answer));
    t.is(ends.filter((end) => end.has("code")).length, 1);
  }
});

test("of a double click, the browser that follows the second answer arrives with a code", async (t) => {
  const someone = await service.createUser([own.id], undefined, "owner");
  const { person, page } = await atConsent(someone);
  const form = { decision: "allow", organization_id: own.id };
  await sendForm(person, page, form); // the browser drops this answer
  const end = await resume(person, await sendForm(person, page, form));
  const { status, body } = await redeemCode(service, app, String(end.get("code")));
  t.is(status, 200);
  t.true(await opensApi(service, body.access_token));
  t.is((await liveGrants(someone)).length, 1);
});

test("the first answer counts: a refusal after an approval changes nothing, and the other way round", async (t) => {
  const allow = { decision: "allow", organization_id: own.id };
  const cancel = { decision: "cancel" };
  for (const [first, then, expected] of [
    [allow, cancel, "code"],
    [cancel, allow, "error"],
  ] as const) {
    const someone = await service.createUser([own.id], undefined, "owner");
    const { person, page } = await atConsent(someone);
    await sendForm(person, page, first);
    const end = await resume(person, await sendForm(person, page, then));
    t.true(end.has(expected));
    t.is((await liveGrants(someone)).length, expected === "code" ? 1 : 0);
  }
});

test("an approval and a refusal at the same time leave a grant only where the app gets a code", async (t) => {
  for (let round = 0; round < ROUNDS; round++) {
    const someone = await service.createUser([own.id], undefined, "owner");
    const { person, page } = await atConsent(someone);
    const [answer] = await Promise.all([
      sendForm(person, page, { decision: "allow", organization_id: own.id }),
      sendForm(person, page, { decision: "cancel" }),
    ]);
    const end = await resume(person, answer as Response);
    t.is((await liveGrants(someone)).length, end.has("code") ? 1 : 0, `round ${round}`);
  }
});

test("a grant that is approved while the member is removed does not come back with the member", async (t) => {
  const { organization } = await second.organizations.create("Company", "growth", OPERATOR);
  await service.createUser([organization.id], undefined, "owner");
  for (let round = 0; round < ROUNDS * 2; round++) {
    const member = await service.createUser([organization.id], undefined, "admin");
    const { person, page } = await atConsent(member);
    const [answer] = await Promise.all([
      sendForm(person, page, { decision: "allow", organization_id: organization.id }),
      // At another moment of the approval in each round.
      setTimeout(round / 2).then(() =>
        second.members.remove({
          organizationId: organization.id,
          userId: member.id,
          touches: ["admin"],
          by: OPERATOR,
        }),
      ),
    ]);
    t.true([303, 422].includes(answer.status), String(answer.status));
    const code = answer.status === 303 ? (await resume(person, answer)).get("code") : null;
    const redeemed = code === null ? undefined : await redeemCode(service, app, code);
    await second.organizations.addMember(organization.id, member.id, "admin", OPERATOR);
    t.deepEqual(await liveGrants(member), [], `round ${round}`);
    if (redeemed?.status !== 200) continue;
    t.false(await opensApi(service, redeemed.body.access_token), `round ${round}`);
    t.is((await refresh(service, app, String(redeemed.body.refresh_token))).status, 400);
  }
});

test("a member who was removed while the page was open is told, and nothing is stored", async (t) => {
  const { organization } = await second.organizations.create(
    `Co ${randomBytes(4).toString("hex")}`,
    "growth",
    OPERATOR,
  );
  await service.createUser([organization.id], undefined, "owner");
  const member = await service.createUser([organization.id, own.id]);
  const { person, page } = await atConsent(member);
  const change = { organizationId: organization.id, userId: member.id, by: OPERATOR };
  await second.members.remove({ ...change, touches: ["member"] });
  const answer = await sendForm(person, page, { decision: "allow", organization_id: organization.id });
  t.is(answer.status, 422);
  t.deepEqual(await liveGrants(member), []);
  const end = await resume(
    person,
    await sendForm(person, page, { decision: "allow", organization_id: own.id }),
  );
  t.true(end.has("code"), "the page is still good for another organization");
});

test("two consent pages, one after the other, make two grants", async (t) => {
  const person = new Person(service.url);
  for (let times = 1; times <= 2; times++) {
    const { page } = await atConsent(user, person);
    t.true(new URL((await person.press(page, "Allow")).url).searchParams.has("code"));
    t.is((await liveGrants(user)).length, times);
  }
});
