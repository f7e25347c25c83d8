// Makes pages quicker. Everything works without it.
"use strict";

// The preview follows the form.
for (const form of document.querySelectorAll("form[data-preview]")) {
  const shown = document.getElementById("preview"), brief = form.querySelector(".brief"); // for where the preview is below
  let waiting, asked = 0;
  const ask = async () => {
    const number = ++asked;
    shown.setAttribute("aria-busy", "true");
    try {
      const fields = new URLSearchParams(new FormData(form));
      const answer = await fetch(`${form.dataset.preview}?${fields}`, { headers: { accept: "text/html" } });
      const text = await answer.text();
      if (number === asked && answer.ok) {
        shown.innerHTML = text;
        const table = shown.querySelector("table");
        const rows = table ? [...table.tBodies[0].rows].map(row => [...row.cells].map(cell => cell.textContent.trim()).join(" ")) : [];
        brief.textContent = rows.length ? `${table.caption.textContent}: ${rows.join(", ")}` : "";
      }
    } finally {
      if (number === asked) shown.removeAttribute("aria-busy");
    }
  };
  form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(ask, 250); });
  ask();

  // A slider for epsilon, from 0.01 to 10 in equal ratios.
  const slide = form.querySelector("#slide"), field = form.querySelector("#epsilon");
  if (slide && field) {
    const place = () => { slide.value = Math.round(100 * Math.log10(Math.max(0.01, Number(field.value)) / 0.01) / 3); };
    slide.hidden = false;
    place();
    slide.addEventListener("input", () => { field.value = Number((0.01 * 10 ** (3 * slide.value / 100)).toPrecision(2)); });
    field.addEventListener("input", place);
  }
}

// A page of something that is at work is looked at again.
const main = document.querySelector("main[data-poll]");
if (main) {
  const look = async () => {
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      const there = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
      if (answer.ok && there) {
        main.innerHTML = there.innerHTML;
        if (!there.dataset.poll) return;
      }
    } catch { /* the server is away: try again */ }
    setTimeout(look, Number(main.dataset.poll));
  };
  setTimeout(look, Number(main.dataset.poll));
}
