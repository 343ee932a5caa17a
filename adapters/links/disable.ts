import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { EventType } from "../../resources/events/types.ts";
import type { Link } from "../../resources/links/types.ts";
import type { Database } from "../database/index.ts";
import type { Outbox } from "../events/outbox.ts";
import { toLink } from "./row.ts";

export type OwnedLink = { link: Link; organization: { id: string; name: string } };

export function createLinkDisablingStore({ knex }: Database, outbox: Outbox) {
  const liveLinks = (q: Knex) => q("links").whereNull("deleted_at");

  function apply(
    id: string,
    actor: Actor,
    type: Extract<EventType, "link.disabled" | "link.enabled">,
    change: (before: Link) => Pick<Link, "disabledAt" | "disabledReason"> | undefined,
  ): Promise<Link | undefined> {
    return outbox.change(actor, async ({ trx, record }) => {
      const before = toLink(await liveLinks(trx).where({ id }).forUpdate().first());
      const changed = before && change(before);
      if (!changed) return before;
      const after: Link = { ...before, ...changed, version: before.version + 1, updatedAt: Date.now() };
      await liveLinks(trx).where({ id }).update({
        disabled_at: after.disabledAt,
        disabled_reason: after.disabledReason,
        version: after.version,
        updated_at: after.updatedAt,
      });
      const { organizationId, slug, disabledReason: reason } = after;
      const data = { link_id: id, slug, ...(type === "link.disabled" && { reason }) };
      await record({ organizationId, type, subject: id, data });
      return after;
    });
  }

  return {
    async find(idOrSlug: string): Promise<OwnedLink | undefined> {
      const findBy = async (key: { id: string } | { slug: string }) =>
        toLink(await liveLinks(knex).where(key).first());
      const link = (await findBy({ id: idOrSlug })) ?? (await findBy({ slug: idOrSlug }));
      if (!link) return undefined;
      const organization = await knex("organizations").where({ id: link.organizationId }).first("id", "name");
      return organization && { link, organization };
    },

    /** Disables a link, so its organization can only read or delete it. Without a reason, an existing one is kept. */
    disable: (id: string, reason: string | null, actor: Actor) =>
      apply(id, actor, "link.disabled", ({ disabledAt, disabledReason }) => {
        if (disabledAt !== null && (reason === null || reason === disabledReason)) return undefined;
        return { disabledAt: disabledAt ?? Date.now(), disabledReason: reason };
      }),

    enable: (id: string, actor: Actor) =>
      apply(id, actor, "link.enabled", ({ disabledAt }) =>
        disabledAt === null ? undefined : { disabledAt: null, disabledReason: null },
      ),
  };
}
