import { createOnce, type Migration } from "./migration.ts";

// In characters. MariaDB's indexes hold up to 3,072 bytes, and PostgreSQL's 2,704.
const LENGTH = 255;
// In the order of a list, so that it starts with the links that a page shows.
const INDEX = {
  sqlite: "(organization_id, url, id) where deleted_at is null",
  postgres: `(organization_id, substr(url, 1, ${LENGTH}), id) where deleted_at is null`,
  mysql: `(organization_id, url(${LENGTH}), id)`,
};

export const linkUrls: Migration = {
  name: "0017_link_urls",
  changes: "Adds an index that finds links by their URL.",
  rewrites: () => ["links"],
  oldestCompatible: "0007_webhooks",
  async up(knex, engine) {
    await createOnce(knex, `create index links_url on links ${INDEX[engine]}`);
  },
};
