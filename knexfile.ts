import { engineOf, knexConfig } from "./adapters/engine.ts";
import { migrations } from "./adapters/migrations/index.ts";

const url = process.env.DATABASE_URL ?? "sqlite:data/linkgate.sqlite";

/** For Knex's own tools; the service itself migrates at start or by `npm run linkgate -- migrate`. */
export default {
  ...knexConfig(url),
  migrations: { migrationSource: migrations(engineOf(url)) },
};
