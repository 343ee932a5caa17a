import test from "ava";
import { withChecksum } from "../../../adapters/crypto/ids.ts";
import { tokenTime } from "../../../adapters/oauth/token-row.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { createTestStorage, linkFields } from "../../harness/database/storage.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, second } = storage;
const { organization, client } = await first.organizations.create("Bytes", "growth", OPERATOR);
const clientId = client?.clientId as string;
const user = await first.accounts.create("Zoë", "a hash", OPERATOR);
const token = "lga_AbCdEf";
const timedToken = withChecksum(`lga_${tokenTime()}${"AbCdEf-_0".repeat(5).slice(2)}`);
for (const id of [token, timedToken])
  await first
    .oidcAdapter("AccessToken")
    .upsert(id, { clientId, exp: Math.floor(Date.now() / 1000) + 60 }, 60);
await first.links.create(organization.id, OPERATOR, linkFields({ slug: "Slug-a", externalId: "Ext-é" }));
const grant = { clientId, accountId: user?.id as string, exp: Math.floor(Date.now() / 1000) + 60 };
await first.oidcAdapter("Grant").upsert("Grant-a", grant, 60);
await first.oidcAdapter("Session").upsert("Session-a", { uid: "Uid-a", accountId: "usr_a" }, 60);
const resetToken = await first.accounts.createResetToken(user?.id as string, 60_000);
test.after.always(() => storage.close());

/** All lookups by a value from a request. */
const LOOKUPS: { name: string; stored: string; find: (id: string) => Promise<unknown> }[] = [
  { name: "slug", stored: "Slug-a", find: (slug) => second.links.resolve(slug) },
  { name: "client id", stored: clientId, find: (id) => second.clients.find(id) },
  {
    name: "client of oidc-provider",
    stored: clientId,
    find: async (id) => second.oidcAdapter("Client").find(id),
  },
  { name: "token", stored: token, find: async (id) => second.oidcAdapter("AccessToken").find(id) },
  {
    name: "token with a time",
    stored: timedToken,
    find: async (id) => second.oidcAdapter("AccessToken").find(id),
  },
  { name: "grant id", stored: "Grant-a", find: async (id) => second.oidcAdapter("Grant").find(id) },
  { name: "session id", stored: "Session-a", find: async (id) => second.oidcAdapter("Session").find(id) },
  { name: "session uid", stored: "Uid-a", find: async (uid) => second.oidcAdapter("Session").findByUid(uid) },
  { name: "organization id", stored: organization.id, find: (id) => second.organizations.find(id) },
  { name: "user id", stored: user?.id as string, find: (id) => second.accounts.find(id) },
  { name: "reset token", stored: resetToken, find: (id) => second.accounts.findByResetToken(id) },
];

const VARIANTS: [string, (id: string) => string][] = [
  ["in upper case", (id) => id.toUpperCase()],
  ["in lower case", (id) => id.toLowerCase()],
  ["with a trailing space", (id) => `${id} `],
  ["with a leading space", (id) => ` ${id}`],
  ["with a trailing tab", (id) => `${id}\t`],
  ["with a trailing line break", (id) => `${id}\n`],
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
  ["with a leading lone surrogate", (id) => `\udc00${id}`],
  ["as an emoji", () => "\u{1f512}"],
  ["as an empty string", () => ""],
  ["repeated a thousand times", (id) => id.repeat(1000)],
];

for (const { name, stored, find } of LOOKUPS) {
  test(`a ${name} is found by its exact value only`, async (t) => {
    t.truthy(await find(stored));
    for (const [variant, change] of VARIANTS) {
      const other = change(stored);
      if (other !== stored)
        t.is(await t.notThrowsAsync(find(other), variant).then(() => find(other)), undefined, variant);
    }
  });
}

test("slugs that differ only in case, accents or width are distinct", async (t) => {
  for (const slug of ["twin-a", "TWIN-A", "Twin-A", "Twin-á", "Twin-ａ"]) {
    const link = await first.links.create(organization.id, OPERATOR, linkFields({ slug }));
    t.true("id" in link, slug);
    t.is((await second.links.resolve(slug))?.id, "id" in link ? link.id : "");
  }
});

test("external ids are compared byte by byte, in any script", async (t) => {
  const ids = [
    "Ext-é ",
    "ext-é",
    "Ext-e",
    "Ext-e\u0301",
    "漢字",
    "漢字 ",
    "\u{1f512}",
    "\u{1f513}",
    "ß",
    "ss",
  ];
  for (const [index, externalId] of ids.entries()) {
    const fields = linkFields({ slug: `external-${index}`, externalId });
    const link = await first.links.create(organization.id, OPERATOR, fields);
    t.is("externalId" in link ? link.externalId : "taken", externalId);
  }
  const again = await second.links.create(
    organization.id,
    OPERATOR,
    linkFields({ slug: "again", externalId: "Ext-é" }),
  );
  t.deepEqual(again, { taken: "external_id" });
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
