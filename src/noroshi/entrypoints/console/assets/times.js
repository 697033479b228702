// Relative times that stay true while a page is open; the server says them the same way (words.py).

const EVERY = 5000;
const FAR = 30 * 86400;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

// The server's clock counts, not the browser's: the page tells how far they differ.
const served = document.querySelector("meta[name=now]");
const ahead = served ? Date.parse(served.content) - Date.now() : 0;

const span = (seconds) => {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 86400 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} d`;
};

const date = (then, now) => {
  const day = `${then.getUTCDate()} ${MONTHS[then.getUTCMonth()]}`;
  return then.getUTCFullYear() === now.getUTCFullYear() ? day : `${day} ${then.getUTCFullYear()}`;
};

export const ago = (then, now) => {
  const seconds = (now - then) / 1000;
  if (Math.abs(seconds) >= FAR) return date(then, now);
  if (seconds < 0) return seconds > -1 ? "in a moment" : `in ${span(Math.floor(-seconds))}`;
  return seconds < 2 ? "just now" : `${span(Math.floor(seconds))} ago`;
};

export const refreshTimes = (within = document) => {
  const now = new Date(Date.now() + ahead);
  within.querySelectorAll("time[data-ago]").forEach((time) => {
    const text = ago(new Date(time.dateTime), now);
    if (time.textContent !== text) time.textContent = text;
  });
};

export const keepTimes = () => {
  setInterval(refreshTimes, EVERY);
  document.addEventListener("visibilitychange", () => document.hidden || refreshTimes());
};
