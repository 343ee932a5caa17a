// Imported before the server of the newer of two versions, which has more migrations.

import { MIGRATIONS } from "../../adapters/database/migrations/index.ts";
import { ADDITIVE, REWRITING } from "./database/additive-migration.ts";

MIGRATIONS.push(REWRITING, ADDITIVE);
