/** A link as another service has it. A time is a `Date`, so each writer spells it as its program does. */
export type ExportedLink = {
  slug: string;
  url: string;
  title: string | null;
  tags: string[];
  clicks: number;
  createdAt: Date;
  archived: boolean;
};

type Value = string | number | boolean | null | Date | string[] | object;
export type Row = Record<string, Value>;

const HOST = "https://go.acme.example";

export const LINKS: ExportedLink[] = [
  {
    slug: "spring",
    url: "https://www.acme.example/spring?from=mail&id=1",
    title: 'The "spring" sale, 50 % off; today',
    tags: ["mail", "sale"],
    clicks: 1284,
    createdAt: new Date("2024-03-21T09:30:00Z"),
    archived: false,
  },
  {
    slug: "jobs",
    url: "https://www.acme.example/jobs",
    title: null,
    tags: [],
    clicks: 0,
    createdAt: new Date("2023-11-20T16:05:00Z"),
    archived: true,
  },
  {
    slug: "path",
    url: "https://www.acme.example/path",
    title: String.raw`Café C:\new\table, "quoted"`,
    tags: ["größe"],
    clicks: 37,
    createdAt: new Date("2024-12-31T23:59:00Z"),
    archived: false,
  },
];

type Service = {
  /** As the import calls the format. */
  format: string;
  /** The rows of its table or API. */
  row(link: ExportedLink): Row;
  /** What its export says of a link. */
  keeps: (keyof ExportedLink)[];
};

const iso = (time: Date) => time.toISOString();

export const SERVICES: Record<string, Service> = {
  Bitly: {
    format: "Bitly",
    keeps: ["title", "tags", "clicks", "createdAt", "archived"],
    row: ({ slug, url, title, tags, clicks, createdAt, archived }) => ({
      created_at: iso(createdAt).replace(".000Z", "+0000"),
      link: `${HOST}/${slug}`,
      long_url: url,
      title,
      tags,
      clicks,
      archived,
    }),
  },
  Dub: {
    format: "Dub",
    keeps: ["title", "tags", "clicks", "createdAt", "archived"],
    row: ({ slug, url, title, tags, clicks, createdAt, archived }) => ({
      domain: "go.acme.example",
      key: slug,
      url,
      title,
      tags,
      clicks,
      createdAt: iso(createdAt),
      archived,
      password: null,
      expiresAt: null,
    }),
  },
  Shlink: {
    format: "Shlink",
    keeps: ["title", "tags", "clicks", "createdAt"],
    row: ({ slug, url, title, tags, clicks, createdAt }) => ({
      createdAt: iso(createdAt).replace(".000Z", "+00:00"),
      shortCode: slug,
      longUrl: url,
      title,
      tags,
      visits: clicks,
    }),
  },
  YOURLS: {
    format: "YOURLS",
    keeps: ["title", "clicks", "createdAt"],
    row: ({ slug, url, title, clicks, createdAt }) => ({
      keyword: slug,
      url,
      title,
      timestamp: createdAt,
      ip: "192.0.2.1",
      clicks,
    }),
  },
  Kutt: {
    format: "Kutt",
    keeps: ["title", "clicks", "createdAt"],
    row: ({ slug, url, title, clicks, createdAt }) => ({
      id: 1,
      address: slug,
      description: title,
      banned: false,
      password: null,
      expire_in: null,
      target: url,
      visit_count: clicks,
      created_at: createdAt,
    }),
  },
  "Short.io": {
    format: "Short.io",
    keeps: ["title", "tags", "clicks", "createdAt", "archived"],
    row: ({ slug, url, title, tags, clicks, createdAt, archived }) => ({
      originalURL: url,
      path: slug,
      title,
      tags,
      clicks,
      createdAt,
      archived,
      hasPassword: false,
      password: null,
    }),
  },
  "a file of one's own": {
    format: "linkgate",
    keeps: ["title", "tags", "clicks", "createdAt", "archived"],
    row: ({ slug, url, title, tags, clicks, createdAt, archived }) => ({
      url,
      slug,
      title,
      tags,
      clicks,
      created_at: createdAt,
      archived,
      max_clicks: null,
    }),
  },
};
