import test from "ava";
import { OPERATOR } from "../../resources/events.ts";
import { createTestStorage, linkFields } from "../harness/storage.ts";

const storage = await createTestStorage();
const { first, second } = storage;
const { organization, client } = await first.organizations.create("Bytes", "growth", OPERATOR);
const clientId = client?.clientId as string;
const user = await first.accounts.create("Zoë", "a hash", OPERATOR);
const token = "lga_AbCdEf";
await first
  .oidcAdapter("AccessToken")
  .upsert(token, { clientId, exp: Math.floor(Date.now() / 1000) + 60 }, 60);
await first.links.create(organization.id, OPERATOR, linkFields({ slug: "Slug-a", externalId: "Ext-é" }));
const grant = { clientId, accountId: user?.id as string, exp: Math.floor(Date.now() / 1000) + 60 };
await first.oidcAdapter("Grant").upsert("Grant-a", grant, 60);
await first.oidcAdapter("Session").upsert("Session-a", { uid: "Uid-a", accountId: "usr_a" }, 60);
const resetToken = await first.accounts.createResetToken(user?.id as string, 60_000);
test.after.always(() => storage.close());

/** Everything that is looked up by something that somebody sends. */
const LOOKUPS: { what: string; stored: string; find: (id: string) => Promise<unknown> }[] = [
  { what: "slug", stored: "Slug-a", find: (slug) => second.links.resolve(slug) },
  { what: "client id", stored: clientId, find: (id) => second.clients.find(id) },
  {
    what: "client of the engine",
    stored: clientId,
    find: async (id) => second.oidcAdapter("Client").find(id),
  },
  { what: "token", stored: token, find: async (id) => second.oidcAdapter("AccessToken").find(id) },
  { what: "grant id", stored: "Grant-a", find: async (id) => second.oidcAdapter("Grant").find(id) },
  { what: "session id", stored: "Session-a", find: async (id) => second.oidcAdapter("Session").find(id) },
  { what: "session uid", stored: "Uid-a", find: async (uid) => second.oidcAdapter("Session").findByUid(uid) },
  { what: "organization id", stored: organization.id, find: (id) => second.organizations.find(id) },
  { what: "user id", stored: user?.id as string, find: (id) => second.accounts.find(id) },
  { what: "reset token", stored: resetToken, find: (id) => second.accounts.findByResetToken(id) },
];

const NEIGHBOURS: [string, (id: string) => string][] = [
  ["in upper case", (id) => id.toUpperCase()],
  ["in lower case", (id) => id.toLowerCase()],
  ["with a space behind", (id) => `${id} `],
  ["with a space in front", (id) => ` ${id}`],
  ["with a tab behind", (id) => `${id}\t`],
  ["with a line break behind", (id) => `${id}\n`],
  ["with an accent", (id) => id.replace("a", "á")],
  ["with a combining accent", (id) => `${id}\u0301`],
  [
    "with full-width letters",
    (id) => id.replace(/[a-z]/g, (c) => String.fromCharCode(c.charCodeAt(0) + 0xfee0)),
  ],
  ["with an invisible character", (id) => `${id}\u200b`],
  ["cut", (id) => id.slice(0, -1)],
  ["made longer", (id) => `${id}a`],
  ["as a pattern", (id) => `${id.slice(0, -1)}_`],
  ["with a NUL behind", (id) => `${id}\0`],
  ["with a NUL in front", (id) => `\0${id}`],
  ["with half a surrogate pair behind", (id) => `${id}\ud800`],
  ["with the other half in front", (id) => `\udc00${id}`],
  ["as an emoji", () => "\u{1f512}"],
  ["as nothing", () => ""],
  ["as something very long", (id) => id.repeat(1000)],
];

for (const { what, stored, find } of LOOKUPS) {
  test(`a ${what} is found as it is, and not by anything like it`, async (t) => {
    t.truthy(await find(stored));
    for (const [how, change] of NEIGHBOURS) {
      const other = change(stored);
      if (other !== stored)
        t.is(await t.notThrowsAsync(find(other), how).then(() => find(other)), undefined, how);
    }
  });
}

test("slugs that differ only in case, accent or full width are different links", async (t) => {
  for (const slug of ["twin-a", "TWIN-A", "Twin-A", "Twin-á", "Twin-ａ"]) {
    const link = await first.links.create(organization.id, OPERATOR, linkFields({ slug }));
    t.true("id" in link, slug);
    t.is((await second.links.resolve(slug))?.id, "id" in link ? link.id : "");
  }
});

test("external ids are told apart byte by byte, in any script", async (t) => {
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

test("a user name is one name in upper and lower case and in every width, but not without its accents", async (t) => {
  for (const name of ["Zoë", "zoë", "ZOË", "Zoe\u0308", "Ｚｏë"]) {
    t.is((await second.accounts.findByUsername(name))?.id, user?.id as string, name);
    t.is(await first.accounts.create(name, "a hash", OPERATOR), undefined, name);
  }
  for (const name of ["zoe", "Zoë ", " Zoë", "Zoë\0", "Zoë\ud800", "\0", ""])
    t.is(await second.accounts.findByUsername(name), undefined, JSON.stringify(name));
  t.truthy(await first.accounts.create("zoe", "a hash", OPERATOR));
});
