// Prints the URL of a migrated database, which test files copy, until its input ends.

import { once } from "node:events";
import { openDatabase } from "../../../adapters/database/index.ts";
import { createTestDatabase } from "./test-database.ts";

const { url, drop } = await createTestDatabase({ empty: true });
const { migrate, close } = openDatabase(url);
await migrate();
await close();
console.log(url);
process.stdin.resume();
await once(process.stdin, "end");
await drop();
