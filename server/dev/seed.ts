import { randomBytes } from "node:crypto";
import type { Storage } from "../../adapters/index.ts";
import type { Mail } from "../../adapters/mail/queue.ts";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import type { Actor } from "../../resources/access/actor.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { type ImportedLink, LINK_DEFAULTS, type Link } from "../../resources/links/types.ts";
import { utmParametersOf } from "../../resources/links/visits.ts";
import { createPasswords } from "../credentials/passwords.ts";
import { createClicks, DAY_MS, ORGANIZATIONS, type SampleLink, type SampleOrganization } from "./clicks.ts";

export type SeededOrganization = Awaited<ReturnType<typeof createOrganization>>;

// More links than an organization has.
const PAGE = 100;

/** Fills an empty database with organizations, their users, who have the same password, links and a year of clicks. */
export async function seed(storage: Storage) {
  const password = randomBytes(9).toString("base64url");
  const users = await createUsers(storage, password);
  const now = Date.now();
  const clicksOn = createClicks(now);
  const organizations = [];
  for (const sample of ORGANIZATIONS) {
    const created = await createOrganization(storage, sample, users);
    organizations.push(created);
    const links = await storage.links.list(created.id, {}, PAGE);
    if (links === "timeout") throw new Error("the links could not be read");
    for (const row of sample.links) {
      const link = links.find(({ slug }) => slug === row[0]) as Link;
      for (const [click, count] of clicksOn(sample, row)) {
        if (click.clickedAt > now || count === 0) continue;
        storage.addPastClicks(link, { ...click, ...utmParametersOf(link.url) }, count);
        if (!click.bot) created.clicks += count;
      }
    }
    // A read waits until they are stored.
    await storage.links.analytics(created.id, undefined, 0, 0);
  }
  return { password, organizations };
}

async function createUsers(storage: Storage, password: string): Promise<Map<string, Actor>> {
  const { accounts, emails, mails, notices } = storage;
  const hash = await createPasswords().hash(password);
  const users = new Map<string, Actor>();
  for (const name of new Set(ORGANIZATIONS.flatMap(({ members }) => Object.keys(members)))) {
    const user = await accounts.create(name, hash, OPERATOR);
    if (!user) throw new Error(`${name} is taken`);
    const actor: Actor = { id: user.id };
    users.set(name, actor);
    await emails.requestChange(`${name}@example.com`, actor);
    const [mail] = (await mails.lease(1)) as [Mail];
    await emails.confirm(mail.token ?? "", actor);
    await mails.settle(mail);
    await notices.dismiss(user.id);
  }
  return users;
}

async function createOrganization(storage: Storage, sample: SampleOrganization, users: Map<string, Actor>) {
  const { name, plan, site, links } = sample;
  const members = Object.entries(sample.members).map(([username, role]) => ({ username, role }));
  const actors = members.map(({ username }) => users.get(username)) as [Actor, ...Actor[]];
  const [owner] = actors;
  const { organization, client } = await storage.organizations.create(name, plan, owner, owner.id);
  for (const [index, { role }] of members.entries())
    if (index > 0)
      await storage.organizations.addMember(organization.id, actors[index]?.id ?? "", role, owner);
  for (const [index, actor] of actors.entries()) {
    const { add } = storage.links.beginImport(organization.id, actor, "linkgate", false);
    const own = links.filter((_, position) => position % actors.length === index);
    await add(own.map((link) => importedLink(site, link)));
  }
  const { clientId: client_id, clientSecret: client_secret } = client as NewClient;
  const { id } = organization;
  return { owner, id, name, plan, client_id, client_secret, members, links: links.length, clicks: 0 };
}

function importedLink(site: string, [slug, title, tagList, age]: SampleLink): ImportedLink {
  const tags = tagList.split(",");
  const source = ["newsletter", "social"].find((tag) => tags.includes(tag));
  const utm = source ? `?utm_source=${source}&utm_campaign=${slug}` : "";
  const createdAt = (Math.floor(Date.now() / DAY_MS) - age) * DAY_MS;
  const fields = { ...LINK_DEFAULTS, slug, title, tags, url: `${site}/${tags[0]}/${slug}${utm}` };
  return { ...fields, createdAt, clicks: 0, botClicks: 0, lastClickedAt: null };
}
