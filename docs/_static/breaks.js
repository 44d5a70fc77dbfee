// Long names may break behind dots, underscores and the like, and nowhere else: in code marks, signatures and titles.
document.addEventListener("DOMContentLoaded", () => {
  const long = 24; // letters: a shorter name goes to the next line
  const humps = /(?<=[a-z])(?=[A-Z])|(?<=[._])(?=[A-Za-z])/; // of names in six columns, or in cards
  const dots = /(?<=\.)(?=[A-Za-z])/, anywhere = /(?<=\.)(?=[A-Za-z])|(?<=[_\/=,(\[{:+])(?=[^\s._\/=,)\]}-])/;
  for (const argument of document.querySelectorAll(".sig .sig-param")) argument.before(document.createElement("wbr"));
  for (const word of document.querySelectorAll("article code .pre")) { // an option stays whole
    if (word.textContent.startsWith("-")) word.style.whiteSpace = "nowrap";
  }
  for (const code of document.querySelectorAll("article :is(code.literal, .sig, h1, .genindextable a)")) {
    if (code.closest("table.autosummary td:first-child")) continue;
    const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT), texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode);
    for (const text of texts) {
      const signature = code.matches(".sig, a"), tight = code.closest(".catalogue"); // eight columns
      const places = code.closest("#comparison table") ? humps : tight || (signature ? text.data : code.textContent).length > long ? anywhere : signature ? dots : null;
      const parts = places ? text.data.split(places) : [];
      if (parts.length > 1) text.replaceWith(...parts.flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part])));
    }
  }
});

// A formula that is wider than its line gets a line of its own, which scrolls (`site.css`).
window.addEventListener("load", () => window.MathJax?.startup?.promise.then(() => {
  for (const formula of document.querySelectorAll("article mjx-container:not([display])")) {
    const block = formula.closest("p, li, dd, td, div");
    if (formula.getBoundingClientRect().right > block.getBoundingClientRect().right + 1) formula.classList.add("wide");
  }
}));

// Tables of words, wider than a phone: each row can be a card (`site.css`). Tables of numbers scroll.
document.addEventListener("DOMContentLoaded", () => {
  const phone = 45; // letters that fit beside each other, in the widest cells
  const widest = (cells) => Math.max(...cells.map((cell) => cell.textContent.trim().length));
  for (const table of document.querySelectorAll("article table.docutils:not(.claims, .study, .autosummary)")) {
    if (table.closest(".notebook-output") || !table.tHead) continue;
    const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
    const rows = [...table.tBodies[0].rows].map((row) => [...row.cells]), cells = rows.flat();
    const numbers = cells.filter((cell) => /^[−–-]?[\d.,]+( ± [\d.,]+)?%?$/.test(cell.textContent.trim())).length;
    const columns = heads.map((head, i) => rows.map((row) => row[i]).filter((cell) => cell));
    const letters = columns.reduce((sum, column) => sum + Math.min(30, widest(column)), 0);
    if (heads.length < 3 || letters < phone || numbers > cells.length / 3 || heads.join().includes("\\(")) continue;
    table.classList.add("cards");
    let above = "";
    for (const row of rows) row.forEach((cell, i) => {
      const text = cell.textContent.trim();
      if (heads[i]) cell.dataset.label = heads[i];
      if (i === 0 && text) above = text;
      else if (i === 0 && above) cell.dataset.above = above; // the same as in the row above
      else if (!text && !cell.querySelector("img")) cell.classList.add("void");
    });
  }
});
