import type { Role } from "../../resources/access/scopes.ts";
import type { Plan } from "../../resources/plans.ts";

/** A link and its history. Ages are in days. */
export type SampleLink = {
  slug: string;
  title: string;
  tags: string[];
  age: number;
  /** The clicks of an average day at present. */
  daily: number;
  /** For each campaign, its age and the clicks of its first day. */
  peaks: [age: number, clicks: number][];
};

export type Weighted<Value> = [value: Value, weight: number][];

export type SampleOrganization = {
  name: string;
  plan: Plan;
  /** Where the links lead. */
  site: string;
  /** By username, the owner first. */
  members: [username: string, role: Role][];
  /** The clicks of each weekday, from Sunday, relative to an average day. */
  week: number[];
  countries: Weighted<string>;
  /** By tag; `""` is for links with none of the tags. Null is a visit without a referrer. */
  referrers: Record<string, Weighted<string | null>>;
  links: SampleLink[];
};

export const ORGANIZATIONS: SampleOrganization[] = [
  {
    name: "Harbor Coffee",
    plan: "growth",
    site: "https://harborcoffee.example.com",
    members: [
      ["nora", "owner"],
      ["idris", "admin"],
      ["mei", "member"],
      ["tomas", "member"],
    ],
    week: [0.86, 0.95, 1, 1.04, 1.08, 1.16, 0.98],
    countries: countriesOf("US 34 GB 17 DE 13 CA 9 NL 6 FR 6 SE 4 AU 4 ES 3 JP 2 BR 2"),
    referrers: {
      social: [
        ["instagram.com", 52],
        ["t.co", 9],
        ["facebook.com", 11],
        ["tiktok.com", 12],
        [null, 16],
      ],
      newsletter: [
        [null, 66],
        ["google.com", 22],
        ["outlook.com", 8],
        ["yahoo.com", 4],
      ],
      "": [
        ["google.com", 33],
        [null, 30],
        ["instagram.com", 13],
        ["reddit.com", 8],
        ["youtube.com", 7],
        ["duckduckgo.com", 5],
        ["bing.com", 4],
      ],
    },
    links: [
      link("house-blend", "House blend", "shop", 365, 46),
      link("subscribe", "Coffee subscription", "shop", 365, 58, [
        [212, 420],
        [24, 610],
      ]),
      link("brew-guide", "Brew guide: pour-over at home", "guide", 365, 39),
      link("ethiopia", "Ethiopia Guji, natural", "shop", 340, 24, [[338, 150]]),
      link("colombia", "Colombia Huila, washed", "shop", 318, 21, [[316, 130]]),
      link("kenya", "Kenya Nyeri AA", "shop", 262, 18, [[260, 170]]),
      link("decaf", "Decaf that tastes like coffee", "shop", 301, 15),
      link("espresso", "Espresso dial-in chart", "guide", 352, 31),
      link("grinder", "Which grinder should I buy?", "guide", 288, 27, [[140, 260]]),
      link("water", "Water for coffee, explained", "guide", 244, 11),
      link("cold-brew", "Cold brew kit", "shop,campaign", 190, 13, [
        [188, 380],
        [151, 240],
      ]),
      link("cold-brew-ig", "Cold brew kit (Instagram)", "social,campaign", 188, 4, [
        [187, 310],
        [160, 180],
      ]),
      link("gift-card", "Gift cards", "shop", 365, 17, [
        [320, 210],
        [8, 260],
      ]),
      link("starter-set", "Starter set", "shop,campaign", 120, 22, [[118, 340]]),
      link("starter-ig", "Starter set (Instagram)", "social,campaign", 119, 5, [
        [118, 280],
        [96, 150],
      ]),
      link("fresh", "Newsletter: what is fresh", "newsletter", 331, 1, [[331, 260]]),
      link("farmers", "Newsletter: meet the farmers", "newsletter", 275, 1, [[275, 290]]),
      link("a-year", "Newsletter: a year of roasting", "newsletter", 218, 1, [[218, 330]]),
      link("arrivals", "Newsletter: new arrivals", "newsletter", 163, 1, [[163, 360]]),
      link("for-two", "Newsletter: brewing for two", "newsletter", 101, 2, [[101, 410]]),
      link("holidays", "Newsletter: holiday shipping", "newsletter", 45, 2, [[45, 470]]),
      link("rare-roast", "Newsletter: limited roast", "newsletter", 11, 5, [[11, 540]]),
      link("limited", "Limited roast: Panama Geisha", "shop,campaign", 12, 38, [[11, 420]]),
      link("limited-ig", "Limited roast (Instagram)", "social,campaign", 12, 19, [[10, 360]]),
      link("harbor-cafe", "The café at the harbor", "cafe", 365, 29),
      link("menu", "Café menu (QR code on the tables)", "cafe,print", 365, 44),
      link("wifi", "Café Wi-Fi", "cafe,print", 333, 12),
      link("loyalty", "Loyalty card", "cafe,print", 205, 26),
      link("tasting", "Saturday tastings", "cafe,event", 270, 9, [
        [240, 120],
        [170, 140],
        [72, 160],
        [16, 190],
      ]),
      link("workshop", "Latte art workshop", "cafe,event", 156, 7, [
        [150, 170],
        [62, 210],
      ]),
      link("wholesale", "Wholesale for cafés and offices", "business", 365, 8),
      link("office", "Coffee for offices", "business,campaign", 84, 14, [[82, 190]]),
      link("press", "Press kit", "business", 310, 3),
      link("jobs", "Work with us", "business", 348, 6, [
        [128, 90],
        [37, 110],
      ]),
      link("origin-story", "Where our beans come from", "guide", 226, 9),
      link("shipping", "Shipping and returns", "help", 365, 16),
      link("track", "Track my order", "help", 232, 34),
      link("returns", "Return an order", "help", 232, 4),
      link("app", "Get the app", "app", 76, 31, [[75, 330]]),
      link("survey", "Five questions about your coffee", "newsletter,campaign", 31, 3, [[31, 230]]),
    ],
  },
  {
    name: "Northwind Books",
    plan: "premium",
    site: "https://northwindbooks.example.com",
    members: [
      ["felix", "owner"],
      ["nora", "admin"],
      ["amara", "member"],
    ],
    week: [1.22, 0.92, 0.94, 0.96, 0.98, 1, 1.2],
    countries: countriesOf("GB 31 US 26 IE 9 DE 8 AU 7 CA 6 IN 5 NL 4 NZ 2 ZA 2"),
    referrers: {
      social: [
        ["instagram.com", 34],
        ["tiktok.com", 31],
        ["threads.net", 8],
        ["facebook.com", 9],
        [null, 18],
      ],
      newsletter: [
        [null, 70],
        ["google.com", 20],
        ["outlook.com", 10],
      ],
      "": [
        ["google.com", 38],
        [null, 27],
        ["reddit.com", 11],
        ["goodreads.com", 12],
        ["bing.com", 6],
        ["duckduckgo.com", 6],
      ],
    },
    links: [
      link("bestsellers", "Bestsellers", "catalog", 365, 132, [[300, 520]]),
      link("new-books", "New this week", "catalog", 365, 117),
      link("preorder", "Preorders", "catalog", 322, 64, [
        [180, 680],
        [52, 910],
      ]),
      link("used", "Used and rare", "catalog", 290, 41),
      link("audiobooks", "Audiobooks", "catalog", 254, 58, [[250, 430]]),
      link("childrens", "Books for children", "catalog", 365, 47, [[110, 380]]),
      link("crime", "Crime and thrillers", "catalog", 338, 52),
      link("scifi", "Science fiction", "catalog", 338, 61, [[95, 460]]),
      link("poetry", "Poetry, one poem a day", "catalog", 200, 19),
      link("book-club", "The Northwind book club", "club", 365, 73, [
        [330, 300],
        [210, 410],
        [90, 520],
      ]),
      link("club-social", "Book club (TikTok)", "social,club", 150, 44, [
        [148, 760],
        [61, 830],
        [19, 640],
      ]),
      link("club-discuss", "This month’s discussion", "club", 260, 28),
      link("reading-list", "Summer reading list", "campaign,newsletter", 171, 8, [[170, 940]]),
      link("gift-guide", "The gift guide", "campaign", 34, 96, [[33, 1100]]),
      link("gift-social", "The gift guide (Instagram)", "social,campaign", 33, 38, [
        [32, 720],
        [9, 540],
      ]),
      link("catalog", "Newsletter: spring catalog", "newsletter", 246, 2, [[246, 720]]),
      link("debuts", "Newsletter: debut novels", "newsletter", 137, 2, [[137, 810]]),
      link("signed-letter", "Newsletter: signed editions", "newsletter", 58, 4, [[58, 930]]),
      link("signed", "Signed editions", "catalog,campaign", 59, 49, [[58, 560]]),
      link("readings", "Readings in our shops", "event", 365, 22, [
        [266, 240],
        [145, 280],
        [27, 330],
      ]),
      link("shop-london", "The shop in London", "shop,print", 365, 36),
      link("shop-dublin", "The shop in Dublin", "shop,print", 214, 27, [[213, 350]]),
      link("schools", "For schools and libraries", "business", 312, 17),
      link("help-orders", "Where is my order?", "help", 365, 55),
      link("book-tokens", "Book tokens", "catalog", 280, 31, [[28, 420]]),
    ],
  },
];

function link(
  slug: string,
  title: string,
  tags: string,
  age: number,
  daily: number,
  peaks: SampleLink["peaks"] = [],
): SampleLink {
  return { slug, title, tags: tags.split(","), age, daily, peaks };
}

function countriesOf(text: string): Weighted<string> {
  return [...text.matchAll(/(\w\w) (\d+)/g)].map(([, name = "", weight]) => [name, Number(weight)]);
}
