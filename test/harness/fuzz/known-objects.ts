/** The objects that the requests of one sequence have created and deleted. Later requests refer to them. */
export type KnownObjects = ReturnType<typeof createKnownObjects>;

type Kind = "link" | "webhook";

const KINDS: Record<string, Kind> = { lnk: "link", whk: "webhook" };
const REFERENCE = /<(gone )?(\w+)(?: (\d+))?>/g;

/**
 * Creates the list of known objects. Requests contain references, so they are the same each time, while ids differ:
 * `<link 2>`, `<gone webhook 0>`, `<delivery 1>` of the webhook before it, `<cursor>` and `<etag>` of the last response at an
 * address, if there was one, and the names in `constants`.
 */
export function createKnownObjects(constants: Record<string, string>) {
  const existing = { link: new Set<string>(), webhook: new Set<string>() };
  const gone = { link: new Set<string>(), webhook: new Set<string>() };
  const deliveries = new Map<string, Set<string>>();
  const tags = new Map<string, string>();
  const cursors = new Map<string, string>();
  let webhook = "";

  function lookUp(reference: string, wasDeleted: boolean, kind: string, index = "0"): string {
    if (constants[kind] !== undefined) return constants[kind];
    if (kind === "delivery") return at(deliveries.get(webhook), index) ?? "evt_none";
    if (kind !== "link" && kind !== "webhook") return reference;
    const id = at((wasDeleted ? gone : existing)[kind], index) ?? `${kind}_none`;
    if (kind === "webhook") webhook = id;
    return id;
  }

  return {
    /** Replaces the references in a text by what they refer to. */
    resolve: (text: string, address = ""): string =>
      text
        .replaceAll("<etag>", tags.get(address) ?? "")
        .replaceAll("<cursor>", cursors.get(address) ?? "none")
        .replaceAll(REFERENCE, (reference, wasDeleted, kind, index) =>
          lookUp(reference, wasDeleted !== undefined, kind, index),
        ),
    /** Adds the objects in the response to a change. Those that are known to be deleted stay so. */
    add(text: string): void {
      for (const [, id = "", prefix = ""] of text.matchAll(/"id":"((lnk|whk|evt)_\w+)"/g)) {
        const kind = KINDS[prefix];
        if (!kind) deliveries.set(webhook, (deliveries.get(webhook) ?? new Set()).add(id));
        else if (!gone[kind].has(id)) existing[kind].add(id);
      }
    },
    /** Moves an object to those that were deleted. */
    remove(id: string): void {
      for (const kind of ["link", "webhook"] as const) if (existing[kind].delete(id)) gone[kind].add(id);
    },
    setTag: (address: string, tag: string) => void tags.set(address, tag),
    setCursor(address: string, text: string): void {
      const [, next] = /"next_cursor":"([\w-]+)"/.exec(text) ?? [];
      if (next) cursors.set(address, next);
    },
  };
}

function at(ids: Set<string> | undefined, index: string): string | undefined {
  const list = [...(ids ?? [])];
  return list[Number(index) % list.length];
}
