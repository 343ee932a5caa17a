import { randomBytes } from "node:crypto";
import type { Storage } from "../../adapters/index.ts";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import type { Actor } from "../../resources/access/actor.ts";
import type { Role } from "../../resources/access/scopes.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { type ImportedLink, LINK_DEFAULTS } from "../../resources/links/types.ts";
import { createPasswords } from "../credentials/passwords.ts";
import { clicksOf, ORGANIZATIONS, type SampleClicks, type SampleOrganization } from "./clicks.ts";

/** What was created. All users have the same password. */
export type Seeded = Awaited<ReturnType<typeof seed>>;

const DAY_MS = 24 * 60 * 60 * 1000;
// More links than an organization has.
const PAGE = 100;
const MAILS = 10;

/** Fills an empty database with organizations, their users, links and a year of clicks. */
export async function seed(storage: Storage) {
  const password = randomBytes(9).toString("base64url");
  const users = await createUsers(storage, password);
  const organizations = [];
  for (const organization of ORGANIZATIONS)
    organizations.push(await createOrganization(storage, organization, users));
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
    for (const mail of await mails.lease(MAILS)) {
      await emails.confirm(mail.token ?? "", actor);
      await mails.settle(mail);
    }
    await notices.dismiss(user.id);
  }
  return users;
}

async function createOrganization(storage: Storage, sample: SampleOrganization, users: Map<string, Actor>) {
  const { name, plan, links } = sample;
  const members = Object.entries(sample.members).map(([username, role]) => ({ username, role }));
  const [owner, ...others] = members.map(({ username }) => users.get(username)) as [Actor, ...Actor[]];
  const { organization, client } = await storage.organizations.create(name, plan, owner, owner.id);
  for (const [index, { id }] of others.entries())
    await storage.organizations.addMember(organization.id, id, members[index + 1]?.role as Role, owner);
  const now = Date.now();
  const clicks = clicksOf(sample, now);
  const imported = importedLinks(sample, clicks, now);
  for (const [index, actor] of [owner, ...others].entries()) {
    const { add } = storage.links.beginImport(organization.id, actor, "linkgate", false);
    await add(imported.filter((_, position) => position % members.length === index));
  }
  await countClicks(storage, organization.id, clicks);
  const { clientId: client_id, clientSecret: client_secret } = client as NewClient;
  const description = { id: organization.id, name, plan, client_id, client_secret, members };
  return { owner, description: { ...description, links: links.length, clicks: countOf(clicks, false) } };
}

function importedLinks(
  { site, links }: SampleOrganization,
  clicks: SampleClicks[],
  now: number,
): ImportedLink[] {
  const bySlug = Map.groupBy(clicks, ({ slug }) => slug);
  return links.map(([slug, title, tagList, age]) => {
    const own = bySlug.get(slug) ?? [];
    const tags = tagList.split(",");
    const source = ["newsletter", "social"].find((tag) => tags.includes(tag));
    const utm = source ? `?utm_source=${source}&utm_campaign=${slug}` : "";
    return {
      ...LINK_DEFAULTS,
      slug,
      title,
      tags,
      url: `${site}/${tags[0]}/${slug}${utm}`,
      createdAt: (Math.floor(now / DAY_MS) - age) * DAY_MS,
      clicks: countOf(own, false),
      botClicks: countOf(own, true),
      lastClickedAt: Math.max(0, ...own.map(({ click }) => click.clickedAt)) || null,
    };
  });
}

function countOf(clicks: SampleClicks[], bot: boolean): number {
  return clicks.reduce((sum, { click, count }) => sum + (click.bot === bot ? count : 0), 0);
}

async function countClicks(storage: Storage, organizationId: string, clicks: SampleClicks[]): Promise<void> {
  const links = await storage.links.list(organizationId, {}, PAGE);
  if (links === "timeout") throw new Error("the links could not be read");
  const bySlug = new Map(links.map((link) => [link.slug, link]));
  for (const { slug, click, count } of clicks) {
    const link = bySlug.get(slug);
    if (link) storage.addPastClicks(link, click, count);
  }
  // A read waits until they are stored.
  await storage.links.analytics(organizationId, undefined, 0, 0);
}
