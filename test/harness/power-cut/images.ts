import { hash } from "node:crypto";
import { mkdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import path from "node:path";
import { HEADER_BYTES, KIND, type Recorder } from "./recorder.ts";

/** A disk as a power cut could have left it, and what had been acknowledged before. */
export type Image = { folder: string; acknowledged: string[] };

type Entry = ReturnType<typeof readEntries>[number];
/** A write, or a truncation to a size. */
type Change = { position: number; offset: number; data?: Buffer };
/** A change of the names in a folder. */
type Naming = { position: number; folder: string; apply(names: Map<string, Node>): void };
type Node = { isFolder: boolean; durable: Buffer; pending: Change[] };

// What a disk writes as a whole, and what the system does.
const UNITS = [512, 4096];

function readEntries(log: string) {
  const bytes = readFileSync(log);
  const entries = [];
  for (let at = 0; at + HEADER_BYTES <= bytes.length; ) {
    const start = at;
    at += HEADER_BYTES;
    const [name, other, data] = [4, 8, 12].map((field) => {
      const length = bytes.readUInt32LE(start + field);
      at += length;
      return bytes.subarray(at - length, at);
    }) as [Buffer, Buffer, Buffer];
    entries.push({
      kind: bytes.readUInt32LE(start),
      path: String(name),
      other: String(other),
      data,
      inode: bytes.readBigUInt64LE(start + 16),
      offset: bytes.readBigUInt64LE(start + 24),
    });
  }
  return entries;
}

/** Returns a source of random numbers from 0 to below 1, the same for the same seed. */
export function randomFrom(seed: number): () => number {
  let count = 0;
  return () => hash("sha256", `${seed} ${count++}`, "buffer").readUInt32LE() / 2 ** 32;
}

/**
 * Builds images of a recorded disk at random moments. Everything synced is there. Of the rest, each sector or page has
 * one of the states that it has had since, and each change of a folder is there or not.
 */
export function* powerCuts({ folder, log }: Recorder, count: number, random: () => number): Generator<Image> {
  const entries = readEntries(log);
  const cuts = Array.from({ length: count }, () => Math.floor(random() * entries.length));
  const root: Node = { isFolder: true, durable: Buffer.alloc(0), pending: [] };
  const nodes = new Map([[BigInt(statSync(folder).ino), root]]);
  const paths = new Map<Node, string>([[root, folder]]);
  const names = new Map<string, Node>();
  const durableNames = new Map<string, Node>();
  let namings: Naming[] = [];
  const begun = new Map<bigint, number>();
  const acknowledged: string[] = [];

  function rename(position: number, name: string, apply: Naming["apply"]) {
    apply(names);
    namings.push({ position, folder: path.dirname(name), apply });
  }

  function create(position: number, entry: Entry) {
    const isFolder = entry.kind === KIND.folderCreated;
    const node: Node = { isFolder, durable: Buffer.alloc(0), pending: [] };
    nodes.set(entry.inode, node);
    if (isFolder) paths.set(node, entry.path);
    rename(position, entry.path, (map) => map.set(entry.path, node));
  }

  /** Makes everything durable that a sync covers: what happened before it began. */
  function sync(node: Node, position: number) {
    if (node.isFolder) {
      const name = paths.get(node);
      const isCovered = (naming: Naming) => naming.folder === name && naming.position < position;
      for (const naming of namings.filter(isCovered)) naming.apply(durableNames);
      namings = namings.filter((naming) => !isCovered(naming));
      return;
    }
    const covered = node.pending.filter((change) => change.position < position);
    node.durable = covered.reduce(applyChange, node.durable);
    node.pending = node.pending.slice(covered.length);
  }

  function replay(position: number, entry: Entry) {
    const { kind, other } = entry;
    const node = nodes.get(entry.inode);
    if (kind === KIND.created || kind === KIND.folderCreated) create(position, entry);
    else if (kind === KIND.written)
      node?.pending.push({ position, offset: Number(entry.offset), data: entry.data });
    else if (kind === KIND.truncated) node?.pending.push({ position, offset: Number(entry.offset) });
    else if (kind === KIND.syncBegun) begun.set(entry.offset, position);
    else if (kind === KIND.syncEnded && node) sync(node, begun.get(entry.offset) ?? 0);
    else if (kind === KIND.acknowledged) acknowledged.push(entry.path);
    else {
      const moved = names.get(entry.path) as Node;
      if (kind !== KIND.unlinked) rename(position, other, (map) => map.set(other, moved));
      if (kind !== KIND.linked)
        rename(position, entry.path, (map) => void (map.get(entry.path) === moved && map.delete(entry.path)));
    }
  }

  function build(number: number): Image {
    const image = path.join(path.dirname(folder), "images", String(number));
    mkdirSync(image, { recursive: true });
    const kept = new Map(durableNames);
    const share = [0, 0.5, 1][Math.floor(random() * 3)] as number;
    for (const naming of namings) if (random() < share) naming.apply(kept);
    for (const [name, node] of [...kept].sort(([one], [other]) => (one < other ? -1 : 1))) {
      const target = path.join(image, path.relative(folder, name));
      if (!statSync(path.dirname(target), { throwIfNoEntry: false })) continue;
      if (node.isFolder) mkdirSync(target, { mode: 0o700 });
      else writeSparsely(target, cutContent(node, random));
    }
    return { folder: image, acknowledged: [...acknowledged] };
  }

  let position = 0;
  for (const [number, cut] of cuts.sort((a, b) => a - b).entries()) {
    for (; position < cut; position++) replay(position, entries[position] as Entry);
    yield build(number);
  }
}

/** Returns the content of a file of which some unsynced changes are on the disk. */
function cutContent({ durable, pending }: Node, random: () => number): Buffer {
  const unit = UNITS[Math.floor(random() * UNITS.length)] as number;
  const share = [0, 0.5, 0.9, 1][Math.floor(random() * 4)] as number;
  // The first change of each unit that is not on the disk; later ones aren't either.
  const lost = new Map<number, boolean>();
  let content: Buffer = Buffer.alloc(durable.length);
  durable.copy(content);
  for (const { offset, data } of pending) {
    const first = data ? Math.floor(offset / unit) : -1;
    const last = data ? Math.floor((offset + data.length - 1) / unit) : -1;
    for (let number = first; number <= last; number++) {
      if (!lost.get(number)) lost.set(number, random() >= share);
      if (lost.get(number)) continue;
      const start = Math.max(offset, number * unit);
      const end = Math.min(offset + (data?.length ?? 0), (number + 1) * unit);
      const part = data && { data: data.subarray(start - offset, end - offset) };
      content = applyChange(content, { position: 0, offset: data ? start : offset, ...part });
    }
  }
  return content;
}

function applyChange(content: Buffer, { offset, data }: Change): Buffer {
  if (!data) return resized(content, offset);
  const grown = resized(content, Math.max(content.length, offset + data.length));
  data.copy(grown, offset);
  return grown;
}

/** Returns the content with another length. Reserves memory, because the log grows often. */
function resized(content: Buffer, length: number): Buffer {
  if (length <= content.length) return content.subarray(0, length);
  const isRoomy = content.byteOffset + length <= content.buffer.byteLength;
  const grown = isRoomy
    ? Buffer.from(content.buffer, content.byteOffset, length)
    : Buffer.alloc(2 * length).subarray(0, length);
  if (!isRoomy) content.copy(grown);
  return grown.fill(0, content.length);
}

const ZEROS = Buffer.alloc(2 ** 16);

/** Writes a file without the zeros at its end, which the log is extended by. */
function writeSparsely(file: string, content: Buffer): void {
  let end = content.length;
  while (end >= ZEROS.length && content.subarray(end - ZEROS.length, end).equals(ZEROS)) end -= ZEROS.length;
  writeFileSync(file, content.subarray(0, end), { mode: 0o600 });
  truncateSync(file, content.length);
}
