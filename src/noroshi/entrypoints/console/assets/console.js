// What every page has. Nothing here is needed to read a page or to send a form.

import { watch } from "./live.js";
import { preview } from "./preview.js";
import { listen } from "./speech.js";
import { keepTimes } from "./times.js";

const asked = (selector) => document.querySelectorAll(selector);

keepTimes();
asked("[data-live]").forEach(watch);
asked("[data-preview]").forEach(preview);
listen();

// Light or dark, kept for a year.
asked("[data-theme-switch]").forEach((button) => {
  button.addEventListener("click", () => {
    const root = document.documentElement;
    const isDark = root.dataset.theme === "dark"
      || (root.dataset.theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
    root.dataset.theme = isDark ? "light" : "dark";
    document.cookie = `noroshi_theme=${root.dataset.theme}; path=/console; max-age=31536000; samesite=lax`;
  });
});

// A form that cannot be undone asks first.
const sure = document.querySelector("dialog.sure");
document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.sure ?? event.target.dataset.sure;
  if (!question || !sure || event.target.dataset.isSure) return;
  event.preventDefault();
  sure.querySelector("p").textContent = question;
  sure.returnValue = "no";
  sure.showModal();
  sure.addEventListener("close", () => {
    if (sure.returnValue !== "yes") return;
    event.target.dataset.isSure = "yes";
    event.target.requestSubmit(event.submitter);
    delete event.target.dataset.isSure;
  }, { once: true });
});

document.addEventListener("click", async (event) => {
  const copied = event.target.closest("[data-copy]");
  if (!copied || !navigator.clipboard) return;
  await navigator.clipboard.writeText(copied.textContent);
  copied.classList.add("done");
  setTimeout(() => copied.classList.remove("done"), 1500);
});

// Keys: / finds, j and k move through a list, Enter opens, o goes to older ones.
const isTyping = (target) => target.closest?.("input, textarea, select, [contenteditable]");

const move = (by) => {
  const links = [...asked("[data-list] [data-row] a:first-of-type")];
  if (!links.length) return;
  const chosen = links.indexOf(document.activeElement);
  const current = chosen >= 0 ? chosen : links.findIndex((link) => link.getAttribute("aria-current"));
  const next = links[Math.min(Math.max(current + by, 0), links.length - 1)];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
};

const KEYS = {
  "/": () => document.querySelector("[data-find]")?.focus(),
  j: () => move(1),
  k: () => move(-1),
  o: () => document.querySelector("[data-more]")?.click(),
};

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && isTyping(event.target)) event.target.blur();
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
