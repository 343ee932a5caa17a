import { engineOf, knexConfig } from "./adapters/database/engine.ts";
import { migrations } from "./adapters/database/migrations/index.ts";

const url = process.env.DATABASE_URL ?? "sqlite:data/linkgate.sqlite";

/** Configures Knex's command line. The service migrates at startup or with `npm run linkgate -- migrate`. */
export default { ...knexConfig(url), migrations: { migrationSource: migrations(engineOf(url)) } };
