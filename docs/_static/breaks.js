// Long names may break behind dots, underscores and the like, and nowhere else: in code marks, signatures and titles.
document.addEventListener("DOMContentLoaded", () => {
  const long = 24; // letters: a shorter name goes to the next line
  const dots = /(?<=\.)(?=[A-Za-z])/, anywhere = /(?<=\.)(?=[A-Za-z])|(?<=[_\/=,(\[{:+-])(?=[^\s._\/=,)\]}-])/;
  for (const argument of document.querySelectorAll(".sig .sig-param")) argument.before(document.createElement("wbr"));
  for (const code of document.querySelectorAll("article :is(code.literal, .sig, h1, .genindextable a)")) {
    if (code.closest("table.autosummary td:first-child")) continue;
    const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT), texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode);
    for (const text of texts) {
      const signature = code.matches(".sig, a"), tight = code.closest(".catalogue"); // eight columns
      const places = tight || (signature ? text.data : code.textContent).length > long ? anywhere : signature ? dots : null;
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
