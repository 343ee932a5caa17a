import ipaddr from "ipaddr.js";

type Value = string | number | Value[] | { [key: string]: Value };
type Node = [left: Branch, right: Branch];
type Branch = Node | { country: string } | undefined;

const RECORD_BYTES = 3;
const SEPARATOR_BYTES = 16;
const MARKER = Buffer.from("\xab\xcd\xefMaxMind.com", "latin1");
// The types of the data section.
const [STRING, UINT32, MAP, ARRAY] = [2, 6, 7, 11];

/**
 * Returns a database of countries by network, such as `203.0.113.0/24`, as MaxMind DB File Format Specification 2.0
 * describes it.
 */
export function countryDatabase(countries: Record<string, string>, type = "Test-Country"): Buffer {
  const root: Node = [undefined, undefined];
  for (const [network, country] of Object.entries(countries)) insert(root, bitsOf(network), country);
  const nodes: Node[] = [];
  collect(root, nodes);
  const codes = [...new Set(Object.values(countries))];
  const records = codes.map((code) => encode({ country: { iso_code: code } }));
  const offsets = records.map((_, index) => Buffer.concat(records.slice(0, index)).length);
  const pointerOf = (branch: Branch) => {
    if (branch === undefined) return nodes.length;
    if (Array.isArray(branch)) return nodes.indexOf(branch);
    return nodes.length + SEPARATOR_BYTES + (offsets[codes.indexOf(branch.country)] as number);
  };
  const tree = Buffer.alloc(nodes.length * 2 * RECORD_BYTES);
  for (const [index, pointer] of nodes.flat().map(pointerOf).entries())
    tree.writeUIntBE(pointer, index * RECORD_BYTES, RECORD_BYTES);
  const metadata = encode({
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: 0,
    database_type: type,
    description: {},
    ip_version: 6,
    languages: [],
    node_count: nodes.length,
    record_size: RECORD_BYTES * 8,
  });
  return Buffer.concat([tree, Buffer.alloc(SEPARATOR_BYTES), ...records, MARKER, metadata]);
}

/** An IPv4 network is stored below 96 bits of zero. */
function bitsOf(network: string): number[] {
  const [address, length] = ipaddr.parseCIDR(network);
  const bytes = address.toByteArray();
  const padded = [...Array(16 - bytes.length).fill(0), ...bytes];
  const bits = padded.flatMap((byte) => [7, 6, 5, 4, 3, 2, 1, 0].map((shift) => (byte >> shift) & 1));
  return bits.slice(0, (16 - bytes.length) * 8 + length);
}

function insert(root: Node, bits: number[], country: string): void {
  let node = root;
  for (const bit of bits.slice(0, -1)) {
    node[bit] ??= [undefined, undefined];
    node = node[bit] as Node;
  }
  node[bits.at(-1) as number] = { country };
}

function collect(branch: Branch, nodes: Node[]): void {
  if (!Array.isArray(branch)) return;
  nodes.push(branch);
  for (const child of branch) collect(child, nodes);
}

function encode(value: Value): Buffer {
  if (typeof value === "string") return Buffer.concat([control(STRING, value.length), Buffer.from(value)]);
  if (typeof value === "number") {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    return Buffer.concat([control(UINT32, 4), bytes]);
  }
  if (Array.isArray(value)) return Buffer.concat([control(ARRAY, value.length), ...value.map(encode)]);
  const entries = Object.entries(value);
  return Buffer.concat([control(MAP, entries.length), ...entries.flat().map(encode)]);
}

/** Sizes of 29 and more would need further bytes, and types above 7 have a byte of their own. */
function control(type: number, size: number): Buffer {
  if (size > 28) throw new RangeError(`${size} is too long`);
  return type > 7 ? Buffer.from([size, type - 7]) : Buffer.from([(type << 5) | size]);
}
