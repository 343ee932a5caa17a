// Imported before the server of the newer of two versions, which has one more migration.

import { MIGRATIONS } from "../../adapters/database/migrations/index.ts";
import { ADDITIVE } from "./database/additive-migration.ts";

MIGRATIONS.push(ADDITIVE);
