import { LINK_DEFAULTS, type LinkFields } from "../../resources/links/types.ts";
import { domainFields, OPERATOR } from "../harness/database/storage.ts";
import { interleaved, type Subject } from "./measure.ts";
import { withStorage } from "./seed.ts";
import { compare, type Row } from "./table.ts";
import { followsLink } from "./workloads.ts";
import type { Section } from "./workspace.ts";

const DOMAINS = 1000;
// As many as a plan allows.
const PER_ORGANIZATION = 5;
const RULES: LinkFields["rules"] = [
  { if: { device: "mobile" }, url: "https://example.com/mobile" },
  { if: { language: "de" }, url: "https://example.com/de" },
];

const slugOf = (host: string) => host.split(".", 1)[0] as string;

/** Redirects of 1 and of 1,000 links at as many domains, and of a link with rules, beside those of as many without. */
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
          const domain = await storage.domains.create(
            { organizationId, actor: OPERATOR },
            { token, ...fields },
          );
          if (!("id" in domain)) throw new Error(JSON.stringify(domain));
          await storage.domains.recordCheck(domain.id, [token], OPERATOR);
          await add(organizationId, { slug: ours.slug, domain: host });
          added.push(host);
        }
      for (const host of added) await add(ours.organizationId, { slug: slugOf(host) });
      await add(ours.organizationId, { slug: "rules", rules: RULES });
      return added;
    });
    const [first = ""] = hosts;
    const inTurn = (places: { host?: string; slug?: string }[]): Omit<Subject, "name"> => {
      const loads = places.map((place) => followsLink({ ...ours, ...place }).next);
      return {
        ...followsLink(ours),
        next: (index) => (loads[index % loads.length] as Subject["next"])(index),
      };
    };
    const one = "a link";
    const many = `${DOMAINS} links`;
    const compared: [name: string, load: Omit<Subject, "name">, reference: string, atLeast: number][] = [
      ["a link at a domain", inTurn([{ host: first }]), one, 0.95],
      [`${DOMAINS} links at as many domains`, inTurn(hosts.map((host) => ({ host }))), many, 0.95],
      ["a link with rules", inTurn([{ slug: "rules" }]), one, 0.8],
    ];
    const measured = await interleaved([
      { name: one, ...inTurn([{}]) },
      { name: many, ...inTurn(hosts.map((host) => ({ slug: slugOf(host) }))) },
      ...compared.map(([name, load]) => ({ name, ...load })),
    ]);
    await ours.server.stop();
    return compared.map(
      ([name, , reference, atLeast]): Row =>
        compare(`redirect, ${name} / ${reference}`, measured, [name, reference], { atLeast }),
    );
  },
};
