import { workerData } from "node:worker_threads";
import { openConnection } from "./connection.ts";
import { prepared } from "./statements.ts";
import { answerRequests } from "./thread.ts";

export type Read = { sql: string; bindings: unknown[] };

const connection = openConnection(workerData);
connection.pragma("query_only = ON");

answerRequests(
  ({ sql, bindings }: Read) => prepared(connection, sql).all(bindings),
  () => connection.close(),
);
