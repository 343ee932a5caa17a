/** The kinds of device that clicks are counted by. */
export const DEVICES = ["desktop", "mobile", "tablet"] as const;
export type Device = (typeof DEVICES)[number];

/** The operating systems that a rule can ask for, by their names in analytics. */
export const SYSTEMS = [
  "Android",
  "Chrome OS",
  "HarmonyOS",
  "iOS",
  "Linux",
  "macOS",
  "Tizen",
  "WebOS",
  "Windows",
] as const;

/** What a rule can ask of a visitor. */
export type Visitor = {
  device: string | null;
  operatingSystem: string | null;
  /** ISO 3166-1 alpha-2. */
  country: string | null;
  /** As it was sent, without `?`. */
  query: string;
  /** Returns the language that the visitor prefers. Few links have a rule about it. */
  readLanguage(): string | undefined;
};
