import { CLICK_PROPERTIES } from "../../resources/links/types.ts";
import { type Engine, insertedValue, rowsOfJson } from "../database/engine.ts";
import { HOURS } from "../database/tables/links.ts";

type Columns = Record<string, "text" | "bigint">;

/** Always true. Clicks don't wait for a standby: if it is missing, they would be committed again with each attempt. */
export const LOCAL_COMMIT = "set_config('synchronous_commit', 'local', true) is not null";

const LINK = { organization_id: "text", link_id: "text" } as const;
const COUNTS = { ...LINK, dimension: "text", day: "bigint", name: "text" } as const;
const DETAILS = { ...LINK, source: "text", day: "bigint" } as const;
const SOURCES = { organization_id: "text", source: "text" } as const;
const NAMES = Object.fromEntries(CLICK_PROPERTIES.map((name) => [name, "text"] as const));

/** Returns the SQL that adds rows of statistics, as JSON in `:rows`, to those that exist. */
export function addStatisticsSql(engine: Engine): string {
  return upsertSql(engine, "click_counts", COUNTS, { clicks: "bigint" }, [
    sumOf(engine, "click_counts", "clicks"),
  ]);
}

/** As `addStatisticsSql`, for clicks of one hour that are counted by source. */
export function addDetailsSql(engine: Engine, hour: number): string {
  const column = HOURS[hour] as string;
  const sums = ["clicks", column].map((name) => sumOf(engine, "click_details", name));
  return upsertSql(engine, "click_details", DETAILS, { clicks: "bigint" }, sums, column);
}

/** As `addStatisticsSql`, for sources and their latest day. */
export function addSourcesSql(engine: Engine): string {
  const others: Columns = { day: "bigint", bot: "bigint", ...NAMES };
  return upsertSql(engine, "click_sources", SOURCES, others, [`day = ${insertedValue(engine, "day")}`]);
}

function sumOf(engine: Engine, table: string, column: string): string {
  return `${column} = coalesce(${table}.${column}, 0) + ${insertedValue(engine, column)}`;
}

/** @param copy a column that gets the value of `clicks`, too */
function upsertSql(
  engine: Engine,
  table: string,
  key: Columns,
  others: Columns,
  changes: string[],
  copy?: string,
): string {
  const columns = { ...key, ...others };
  const names = Object.keys(columns).join(", ");
  const onConflict =
    engine === "mysql"
      ? "on duplicate key update"
      : `on conflict (${Object.keys(key).join(", ")}) do update set`;
  // Without a condition, SQLite would read the following `on` as that of a join.
  return `insert into ${table} (${names}${copy ? `, ${copy}` : ""})
    select ${names}${copy ? ", clicks" : ""} from ${rowsOfJson(engine, columns)}
    where ${engine === "postgres" ? LOCAL_COMMIT : "true"} ${onConflict} ${changes.join(", ")}`;
}
