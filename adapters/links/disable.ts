import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { addressOf } from "../../resources/links/rules.ts";
import type { Link } from "../../resources/links/types.ts";
import type { Database } from "../database/index.ts";
import type { Outbox } from "../events/outbox.ts";
import { toLink } from "./row.ts";

export type OwnedLink = { link: Link; organization: { id: string; name: string } };

export function createLinkDisablingStore({ knex }: Database, outbox: Outbox) {
  const liveLinks = (q: Knex) => q("links").whereNull("deleted_at");

  function set(
    id: string,
    actor: Actor,
    change: (before: Link) => Pick<Link, "disabledAt" | "disabledReason">,
  ): Promise<Link | undefined> {
    return outbox.change(actor, async ({ trx, record }) => {
      const before = toLink(await liveLinks(trx).where({ id }).forUpdate().first());
      if (!before) return undefined;
      const { disabledAt, disabledReason: reason } = change(before);
      if (disabledAt === before.disabledAt && reason === before.disabledReason) return before;
      const [version, updatedAt] = [before.version + 1, Date.now()];
      const state = { disabled_at: disabledAt, disabled_reason: reason, version, updated_at: updatedAt };
      await liveLinks(trx).where({ id }).update(state);
      const { organizationId, slug } = before;
      const isDisabled = disabledAt !== null;
      const type = isDisabled ? "link.disabled" : "link.enabled";
      const data = { link_id: id, slug, ...(isDisabled && { reason }) };
      await record({ organizationId, type, subject: id, data });
      return { ...before, disabledAt, disabledReason: reason, version, updatedAt };
    });
  }

  async function addressIn(path: string): Promise<string> {
    const [host = "", ...slug] = path.split("/");
    const domain = slug.length > 0 && (await knex("domains").where({ live_host: host }).first());
    if (!domain) return path;
    return addressOf(slug.join("/"), { ...domain, caseSensitive: Boolean(domain.case_sensitive) });
  }

  return {
    /** Finds a link by its id or slug; on a domain, by `host/slug`. */
    async find(idOrSlug: string): Promise<OwnedLink | undefined> {
      const findBy = async (key: { id: string } | { address: string }) =>
        toLink(await liveLinks(knex).where(key).first());
      const link = (await findBy({ id: idOrSlug })) ?? (await findBy({ address: await addressIn(idOrSlug) }));
      if (!link) return undefined;
      const organization = await knex("organizations").where({ id: link.organizationId }).first("id", "name");
      return organization && { link, organization };
    },

    /** Disables a link, so its organization can only read or delete it. Without a reason, an existing one is kept. */
    disable: (id: string, reason: string | null, actor: Actor) =>
      set(id, actor, ({ disabledAt, disabledReason }) => ({
        disabledAt: disabledAt ?? Date.now(),
        disabledReason: reason ?? disabledReason,
      })),

    enable: (id: string, actor: Actor) => set(id, actor, () => ({ disabledAt: null, disabledReason: null })),
  };
}
