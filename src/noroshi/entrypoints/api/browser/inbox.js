// <noroshi-inbox>: a bell with the number of unread entries, and the inbox of one person behind it, live.
//
//   <script type="module" src="https://noroshi.example/inbox.js"></script>
//   <noroshi-inbox user="hanako" token-url="/my/noroshi-token"></noroshi-inbox>
//
// Everything shown is text: no entry can bring markup, script or style into the page.

import { TEXTS, ago, icon, make, sheet } from "./inbox-look.js";

const SOONEST = 1000;
const LATEST = 30000;
const PAGE = 20;
const NOTHING = { unread: 0, last_entry_id: 0, changes: 0 };

/** Where a click leads, if it leads to the web: an entry must never run anything. */
function linkOf(entry) {
  if (!entry.content.url) return null;
  try {
    const url = new URL(entry.content.url, document.baseURI);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch {
    return null;
  }
}

export class NoroshiInbox extends HTMLElement {
  static observedAttributes = ["user", "src", "token", "token-url", "lang"];

  #parts = {};
  #entries = new Map();
  #state = NOTHING;
  #seen = null;
  #cursor = null;
  #isLoaded = false;
  #person = null;
  #token = null;
  #stream = null;
  #again = null;
  #pause = SOONEST;
  #round = 0;

  constructor() {
    super();
    this.attachShadow({ mode: "open" }).adoptedStyleSheets = [sheet];
    this.#build();
  }

  /** How many entries are neither read nor archived, as the server says. */
  get unread() {
    return this.#state.unread;
  }

  get open() {
    return !this.#parts.panel.hidden;
  }

  set open(value) {
    if (Boolean(value) === this.open) return;
    this.#parts.panel.hidden = !value;
    this.toggleAttribute("open", Boolean(value));
    this.#parts.bell.setAttribute("aria-expanded", String(Boolean(value)));
    if (value) {
      if (!this.#isLoaded) this.refresh();
      this.#draw();
      this.#parts.heading.focus();
    } else if (this.shadowRoot.activeElement) {
      this.#parts.bell.focus();
    }
  }

  connectedCallback() {
    document.addEventListener("pointerdown", this.#outside);
    this.#begin();
  }

  disconnectedCallback() {
    document.removeEventListener("pointerdown", this.#outside);
    this.#end();
  }

  attributeChangedCallback(name) {
    if (name === "lang") this.#draw();
    else if (this.isConnected) this.#begin();
  }

  /** Reads the newest entries anew. */
  async refresh() {
    const round = this.#round;
    const page = await this.#call("GET", `?limit=${PAGE}`);
    if (page === null || round !== this.#round) return;
    const newest = page.items[0]?.entry_id ?? 0;
    const newer = [...this.#entries].filter(([number]) => number > newest); // they came while the page was on its way
    this.#entries = new Map([...page.items.map((entry) => [entry.entry_id, entry]), ...newer]);
    this.#cursor = page.next_cursor;
    this.#isLoaded = true;
    this.#draw();
  }

  // what is shown

  get #texts() {
    const lang = this.closest("[lang]")?.lang || document.documentElement.lang || navigator.language || "en";
    return { lang, ...(lang.toLowerCase().startsWith("ja") ? TEXTS.ja : TEXTS.en) };
  }

  #build() {
    const parts = this.#parts;
    parts.badge = make("span", { class: "badge", part: "badge", "aria-hidden": "true", hidden: true });
    parts.bell = make(
      "button",
      { class: "bell", part: "bell", type: "button", "aria-haspopup": "dialog", "aria-expanded": "false",
        "aria-controls": "panel", onclick: () => { this.open = !this.open; } },
      icon("bell"),
      parts.badge,
    );
    parts.heading = make("h2", { id: "heading", tabindex: "-1" });
    parts.readAll = make("button", { class: "quiet", type: "button", onclick: () => this.#readAll() });
    parts.close = make("button", { class: "icon", type: "button", onclick: () => { this.open = false; } }, icon("close"));
    parts.bar = make("div", { class: "bar", role: "status", hidden: true });
    parts.list = make("ul", { role: "list" });
    parts.empty = make("p", { class: "note" });
    parts.more = make("button", { class: "more", type: "button", hidden: true, onclick: () => this.#showOlder() });
    parts.panel = make(
      "section",
      { class: "panel", part: "panel", id: "panel", role: "dialog", "aria-labelledby": "heading", hidden: true },
      make("header", {}, parts.heading, parts.readAll, parts.close),
      parts.bar,
      make("div", { class: "body" }, parts.list, parts.empty, parts.more),
    );
    parts.said = make("div", { class: "said", role: "status", "aria-live": "polite" });
    this.shadowRoot.append(parts.bell, parts.panel, parts.said);
    this.shadowRoot.addEventListener("keydown", (event) => this.#onKey(event));
    this.#draw();
  }

  #draw() {
    const { badge, bell, heading, readAll, close, list, empty, more, panel } = this.#parts;
    const texts = this.#texts;
    const { unread } = this.#state;
    bell.setAttribute("aria-label", texts.bell(unread));
    badge.hidden = unread === 0;
    badge.textContent = unread > 99 ? "99+" : String(unread);
    panel.lang = texts.lang;
    heading.textContent = texts.title;
    close.setAttribute("aria-label", texts.close);
    readAll.textContent = texts.readAll;
    readAll.hidden = unread === 0;
    more.textContent = texts.older;
    more.hidden = this.#cursor === null;
    if (!this.open) return;
    const shown = [...this.#entries.values()].filter((entry) => !entry.archived_at).sort((a, b) => b.entry_id - a.entry_id);
    const focused = this.shadowRoot.activeElement?.closest("li")?.dataset.entry;
    list.replaceChildren(...shown.map((entry) => this.#item(entry, texts)));
    if (focused) (list.querySelector(`[data-entry="${focused}"] .entry`) ?? list.querySelector(".entry") ?? heading).focus();
    empty.textContent = texts.empty;
    empty.hidden = shown.length > 0 || !this.#isLoaded;
  }

  #item(entry, texts) {
    const { title, body } = entry.content;
    const href = linkOf(entry);
    const at = new Date(entry.created_at);
    const main = make(
      href ? "a" : "button",
      { class: "entry", href, type: href ? null : "button", onclick: (event) => this.#choose(entry, event) },
      entry.read_at ? null : make("span", { class: "said" }, `${texts.unread}: `),
      title ? make("span", { class: "title" }, title) : null,
      make("span", { class: title ? "text" : "title" }, body),
      make("time", { datetime: entry.created_at, title: at.toLocaleString(texts.lang) }, ago(at, texts.lang)),
    );
    const archive = make(
      "button",
      { class: "icon archive", type: "button", "aria-label": texts.archive(title ?? body),
        onclick: () => this.#archive(entry) },
      icon("archive"),
    );
    return make("li", { class: entry.read_at ? null : "unread", "data-entry": entry.entry_id }, main, archive);
  }

  #say(text) {
    this.#parts.said.textContent = text;
  }

  #complain(text) {
    this.#parts.bar.textContent = text ?? "";
    this.#parts.bar.hidden = text === null;
  }

  // what the person does

  #outside = (event) => {
    if (this.open && !event.composedPath().includes(this)) this.open = false;
  };

  #onKey(event) {
    if (event.key === "Escape" && this.open) {
      event.stopPropagation();
      this.open = false;
      this.#parts.bell.focus();
      return;
    }
    const entries = [...this.#parts.list.querySelectorAll(".entry")];
    const place = entries.indexOf(this.shadowRoot.activeElement);
    const next = { ArrowDown: place + 1, ArrowUp: Math.max(place - 1, 0), Home: 0, End: entries.length - 1 }[event.key];
    if (this.open && next !== undefined && entries.length) {
      event.preventDefault();
      entries[Math.min(next, entries.length - 1)].focus();
    } else if (event.key === "Delete" && place >= 0) {
      const number = Number(entries[place].closest("li").dataset.entry);
      this.#archive(this.#entries.get(number));
    }
  }

  #choose(entry, event) {
    const chosen = new CustomEvent("noroshi-choose", { detail: entry, cancelable: true, bubbles: true, composed: true });
    if (!this.dispatchEvent(chosen)) event.preventDefault();
    if (!entry.read_at) this.#mark(entry, "read", "read_at");
  }

  #archive(entry) {
    this.#mark(entry, "archive", "archived_at");
  }

  /** Shown at once; taken back if the server says no. */
  async #mark(entry, verb, field) {
    const wasUnread = !entry.read_at && !entry.archived_at;
    entry[field] = new Date().toISOString();
    if (wasUnread) this.#state = { ...this.#state, unread: Math.max(this.#state.unread - 1, 0) };
    this.#draw();
    const round = this.#round;
    const marked = await this.#call("POST", `/${entry.entry_id}/${verb}`, { keepalive: true });
    if (round !== this.#round) return;
    if (marked === null) {
      entry[field] = null;
      if (wasUnread) this.#state = { ...this.#state, unread: this.#state.unread + 1 };
    } else {
      this.#count(marked.unread);
    }
    this.#draw();
  }

  async #readAll() {
    const round = this.#round;
    const upTo = Math.max(0, ...this.#entries.keys());
    const answer = await this.#call("POST", `/read-all?up_to=${upTo}`);
    if (answer === null || round !== this.#round) return;
    this.#count(answer.unread);
    await this.refresh();
    this.#parts.heading.focus();
  }

  async #showOlder() {
    const round = this.#round;
    const page = await this.#call("GET", `?limit=${PAGE}&cursor=${encodeURIComponent(this.#cursor)}`);
    if (page === null || round !== this.#round) return;
    const first = page.items[0]?.entry_id;
    for (const entry of page.items) this.#entries.set(entry.entry_id, entry);
    this.#cursor = page.next_cursor;
    this.#draw();
    this.#parts.list.querySelector(`[data-entry="${first}"] .entry`)?.focus();
  }

  #count(unread) {
    if (unread === this.#state.unread) return;
    this.#state = { ...this.#state, unread };
    this.dispatchEvent(new CustomEvent("noroshi-unread", { detail: unread, bubbles: true, composed: true }));
  }

  // what the server says

  get #address() {
    const base = this.getAttribute("src") ?? new URL("/", import.meta.url).href;
    return `${base.replace(/\/$/, "")}/api/v1/users/${encodeURIComponent(this.getAttribute("user") ?? "")}/inbox`;
  }

  #begin() {
    this.#end();
    this.#token = this.getAttribute("token");
    this.#entries.clear();
    this.#seen = this.#cursor = null;
    this.#isLoaded = false;
    if (this.#person !== this.#address) this.#forget();
    if (this.getAttribute("user") && (this.#token || this.getAttribute("token-url"))) this.#follow();
    if (this.open) this.refresh();
  }

  /** Nothing of the former person stays on the page. */
  #forget() {
    this.#person = this.#address;
    this.#count(0);
    this.#state = NOTHING;
    this.#say("");
    this.#complain(null);
    this.#parts.list.replaceChildren();
    this.#draw();
  }

  #end() {
    this.#round += 1;
    this.#stream?.close();
    this.#stream = null;
    clearTimeout(this.#again);
  }

  /** A ticket for every connection: a browser cannot send a header with it, and a token has no place in an address. */
  async #follow() {
    const round = this.#round;
    const ticket = await this.#call("POST", "/tickets", { isQuiet: true });
    if (round !== this.#round) return;
    if (ticket === null) {
      this.#followLater();
      return;
    }
    const after = this.#seen === null ? "" : `&after=${this.#seen}`;
    const stream = new EventSource(`${this.#address}/stream?ticket=${ticket.ticket}${after}`);
    this.#stream = stream;
    stream.addEventListener("open", () => {
      this.#pause = SOONEST;
      this.#complain(null);
    });
    stream.addEventListener("state", (event) => this.#onState(JSON.parse(event.data)));
    stream.addEventListener("entry", (event) => this.#onEntry(JSON.parse(event.data)));
    stream.addEventListener("error", () => {
      stream.close();
      if (round === this.#round) this.#followLater();
    });
  }

  #followLater() {
    if (this.#pause > SOONEST) this.#complain(this.#texts.offline);
    this.#again = setTimeout(() => this.#follow(), this.#pause * (0.5 + Math.random()));
    this.#pause = Math.min(this.#pause * 2, LATEST);
  }

  #onState(state) {
    const isElsewhere = state.changes !== this.#state.changes || (this.#seen ?? 0) > state.last_entry_id;
    this.#seen = this.#seen === null ? state.last_entry_id : Math.min(this.#seen, state.last_entry_id);
    this.#count(state.unread);
    this.#state = state;
    this.#draw();
    if (this.#isLoaded && isElsewhere) this.refresh();
  }

  #onEntry(entry) {
    this.#seen = Math.max(this.#seen ?? 0, entry.entry_id);
    if (entry.archived_at) return;
    this.#entries.set(entry.entry_id, entry);
    this.#say(this.#texts.arrived(entry.content.title ?? entry.content.body));
    this.dispatchEvent(new CustomEvent("noroshi-entry", { detail: entry, bubbles: true, composed: true }));
  }

  /** The answer, or null if there was none that can be used. A token that has run out is replaced once. */
  async #call(method, path, { keepalive = false, isQuiet = false } = {}) {
    const round = this.#round;
    for (const isSecond of [false, true]) {
      try {
        const token = this.#token ?? (await this.#askForToken());
        if (round !== this.#round) return null; // it is another person's page by now
        this.#token = token;
        const answer = await fetch(this.#address + path, {
          method, keepalive, headers: { Authorization: `Bearer ${this.#token}` }, credentials: "omit", cache: "no-store",
        });
        if (answer.ok) {
          if (!isQuiet && round === this.#round) this.#complain(null);
          return await answer.json();
        }
        if (answer.status !== 401 || isSecond || round !== this.#round || !this.getAttribute("token-url")) break;
        this.#token = null;
      } catch {
        break;
      }
    }
    if (!isQuiet && round === this.#round) this.#complain(this.#texts.failed);
    return null;
  }

  async #askForToken() {
    const answer = await fetch(this.getAttribute("token-url"), { credentials: "same-origin", cache: "no-store" });
    if (!answer.ok) throw new Error("no token");
    return (await answer.json()).token;
  }
}

if (!customElements.get("noroshi-inbox")) customElements.define("noroshi-inbox", NoroshiInbox);
