import { randomBytes } from "node:crypto";
import test from "ava";
import { sha256, withChecksum } from "../../adapters/crypto/ids.ts";
import { tokenTime } from "../../adapters/oauth/token-row.ts";
import { createTestStorage, linkFields, OPERATOR } from "../harness/database/storage.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, second } = storage;

const seconds = Math.floor(Date.now() / 1000);
const { organization, client } = await first.organizations.create("Bytes", "growth", OPERATOR);
const clientId = client?.clientId as string;
const user = await first.accounts.create("Zoë", "a hash", OPERATOR);
const accountId = user?.id as string;
const token = "lga_AbCdEf";
const [timedToken, laterToken] = [newToken(), newToken(1)];
const refreshToken = newToken().replace("lga_", "lgr_");
const link = await storage.createLink(organization.id, { slug: "Slug-a", externalId: "Ext-é" });
const webhook = await storage.createWebhook(organization.id);
for (const id of [token, laterToken, timedToken])
  await first.oidcAdapter("AccessToken").upsert(id, { clientId, exp: seconds + 60 }, 60);
await first.oidcAdapter("Grant").upsert("Grant-a", { clientId, accountId, exp: seconds + 60 }, 60);
await first.oidcAdapter("RefreshToken").upsert(refreshToken, { clientId, exp: seconds + 60 }, 60);
await first.oidcAdapter("Session").upsert("Session-a", { uid: "Uid-a", accountId: "usr_a" }, 60);
const identity = { issuer: "https://id.example", subject: "Subject-a" };
await first.identities.link(accountId, { ...identity, label: null }, OPERATOR);
const resetToken = await first.accounts.createResetToken(accountId, 60_000);

function newToken(afterMs = 0): string {
  const time = (Number.parseInt(tokenTime(), 36) + afterMs).toString(36).padStart(9, "0");
  return withChecksum(`lga_${time}${randomBytes(32).toString("base64url")}`);
}

const ofModel = (model: string) => async (id: string) => second.oidcAdapter(model).find(id);

const LOOKUPS: Record<string, [stored: string, find: (id: string) => Promise<unknown>]> = {
  slug: ["Slug-a", (slug) => second.links.resolve(slug)],
  "link id": [link.id, (id) => second.links.find(organization.id, id)],
  "webhook id": [webhook.id, (id) => second.webhooks.find(organization.id, id)],
  "client id": [clientId, (id) => second.clients.find(id)],
  "client of oidc-provider": [clientId, ofModel("Client")],
  token: [token, ofModel("AccessToken")],
  "token with a time": [timedToken, ofModel("AccessToken")],
  "refresh token": [refreshToken, ofModel("RefreshToken")],
  "grant id": ["Grant-a", ofModel("Grant")],
  "session id": ["Session-a", ofModel("Session")],
  "session uid": ["Uid-a", async (uid) => second.oidcAdapter("Session").findByUid(uid)],
  "organization id": [organization.id, (id) => second.organizations.find(id)],
  "user id": [accountId, (id) => second.accounts.find(id)],
  subject: [identity.subject, (subject) => second.identities.findUserId({ ...identity, subject })],
  issuer: [identity.issuer, (issuer) => second.identities.findUserId({ ...identity, issuer })],
  "reset token": [resetToken, (id) => second.accounts.findByResetToken(id)],
};

const VARIANTS: [string, (id: string) => string][] = [
  ["in upper case", (id) => id.toUpperCase()],
  ["in lower case", (id) => id.toLowerCase()],
  ["with a trailing space", (id) => `${id} `],
  ["with a leading space", (id) => ` ${id}`],
  ["with a trailing tab", (id) => `${id}\t`],
  ["with an accent", (id) => id.replace("a", "á")],
  ["with a combining accent", (id) => `${id}\u0301`],
  [
    "with full-width letters",
    (id) => id.replace(/[a-z]/g, (c) => String.fromCharCode(c.charCodeAt(0) + 0xfee0)),
  ],
  ["with an invisible character", (id) => `${id}\u200b`],
  ["truncated", (id) => id.slice(0, -1)],
  ["extended", (id) => `${id}a`],
  ["as a pattern", (id) => `${id.slice(0, -1)}_`],
  ["with a trailing NUL", (id) => `${id}\0`],
  ["with a leading NUL", (id) => `\0${id}`],
  ["with a trailing lone surrogate", (id) => `${id}\ud800`],
  ["as an empty string", () => ""],
  ["repeated a thousand times", (id) => id.repeat(1000)],
];

for (const [name, [stored, find]] of Object.entries(LOOKUPS))
  test(`a ${name} is found by its exact value only`, async (t) => {
    t.truthy(await find(stored));
    for (const [variant, change] of VARIANTS)
      if (change(stored) !== stored)
        await t.notThrowsAsync(async () => t.is(await find(change(stored)), undefined, variant), variant);
  });

test("tokens are stored under their time and hash, in the order of issue", async (t) => {
  const keys = [timedToken, laterToken].map((id) => (id.slice(4, 13) + sha256(id)).slice(0, 43));
  const stored = await storage.database.knex("tokens").orderBy("id_hash").pluck("id_hash");
  const found = stored.filter((key) => keys.includes(key));
  t.deepEqual(found, keys);
});

test("tokens with swapped or missing times are not found, nor is a token by its stored hash", async (t) => {
  const find = LOOKUPS.token?.[1] ?? t.fail;
  const swapped = timedToken.slice(0, 13) + laterToken.slice(13);
  const swappedToo = laterToken.slice(0, 13) + timedToken.slice(13);
  for (const forged of [swapped, swappedToo, `lga_${timedToken.slice(13)}`, sha256(timedToken)])
    t.is(await find(forged), undefined, forged);
});

test("external ids are compared byte by byte, in any script", async (t) => {
  const accents = ["Ext-é ", "ext-é", "Ext-e", "Ext-e\u0301"];
  const ids = [...accents, "漢字", "漢字 ", "\u{1f512}", "\u{1f513}", "ß", "ss"];
  for (const [index, externalId] of ids.entries()) {
    const fields = linkFields({ slug: `external-${index}`, externalId });
    const link = await first.links.create(organization.id, OPERATOR, fields);
    t.is("externalId" in link ? link.externalId : "taken", externalId);
  }
  const fields = linkFields({ slug: "again", externalId: "Ext-é" });
  t.deepEqual(await second.links.create(organization.id, OPERATOR, fields), { taken: "external_id" });
});

test("usernames ignore case and width, but not accents", async (t) => {
  for (const name of ["Zoë", "zoë", "ZOË", "Zoe\u0308", "Ｚｏë"]) {
    t.is((await second.accounts.findByUsername(name))?.id, user?.id as string, name);
    t.is(await first.accounts.create(name, "a hash", OPERATOR), undefined, name);
  }
  for (const name of ["zoe", "Zoë ", " Zoë", "Zoë\0", "Zoë\ud800", "\0", ""])
    t.is(await second.accounts.findByUsername(name), undefined, JSON.stringify(name));
  t.truthy(await first.accounts.create("zoe", "a hash", OPERATOR));
});
