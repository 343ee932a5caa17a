import { knexConfig } from "./adapters/engine.ts";
import { migrations } from "./adapters/migrations/index.ts";

/** For Knex's own tools; the service itself migrates at start or by `npm run linkgate -- migrate`. */
export default {
  ...knexConfig(process.env.DATABASE_URL ?? "sqlite:data/linkgate.sqlite"),
  migrations: { migrationSource: migrations("sqlite") },
};
