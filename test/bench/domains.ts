import { OPERATOR } from "../../resources/events/types.ts";
import { LINK_DEFAULTS, type LinkFields } from "../../resources/links/types.ts";
import { domainFields } from "../harness/database/storage.ts";
import { interleaved, type Subject } from "./measure.ts";
import { withStorage } from "./seed.ts";
import { compare, type Row } from "./table.ts";
import { followsLink } from "./workloads.ts";
import type { Section } from "./workspace.ts";

const DOMAINS = 1000;
// As many as a plan allows.
const PER_ORGANIZATION = 5;
const OWN = "the own host";
const RULES: LinkFields["rules"] = [
  { if: { device: "mobile" }, url: "https://example.com/mobile" },
  { if: { language: "de" }, url: "https://example.com/de" },
];

/** Redirects at the hosts of 1 and of 1,000 domains, and of a link with rules, beside that at the service's own host. */
export const domains: Section = {
  async run(workspace) {
    const ours = await workspace.ours(await workspace.database("sqlite"), {
      clients: DOMAINS / PER_ORGANIZATION,
    });
    const hosts = await withStorage(ours.url, async (storage) => {
      const add = (organizationId: string, fields: Partial<LinkFields> & Pick<LinkFields, "slug">) =>
        storage.links.create(organizationId, OPERATOR, {
          ...LINK_DEFAULTS,
          url: "https://example.com/bench",
          ...fields,
        });
      const added: string[] = [];
      for (const organizationId of ours.organizationIds)
        for (let number = 0; number < PER_ORGANIZATION; number++) {
          const host = `go-${added.length}.bench.example`;
          const { token, ...fields } = domainFields(host);
          const domain = await storage.domains.create(organizationId, OPERATOR, { token, ...fields });
          if (!("id" in domain)) throw new Error(JSON.stringify(domain));
          await storage.domains.recordCheck(domain.id, [token], OPERATOR);
          await add(organizationId, { slug: ours.slug, domain: host });
          added.push(host);
        }
      await add(ours.organizationId, { slug: "rules", rules: RULES });
      return added;
    });
    const [first = ""] = hosts;
    const loads = hosts.map((host) => followsLink({ ...ours, host }).next);
    const subjects: Subject[] = [
      { name: OWN, ...followsLink(ours) },
      { name: "one domain", ...followsLink({ ...ours, host: first }) },
      {
        name: `${DOMAINS} domains`,
        ...followsLink(ours),
        next: (index) => (loads[index % loads.length] as Subject["next"])(index),
      },
      { name: "a link with rules", ...followsLink({ ...ours, slug: "rules" }) },
    ];
    const measured = await interleaved(subjects);
    await ours.server.stop();
    return subjects
      .slice(1)
      .map(
        ({ name }): Row => compare(`redirect, ${name} / ${OWN}`, measured, [name, OWN], { atLeast: 0.95 }),
      );
  },
};
