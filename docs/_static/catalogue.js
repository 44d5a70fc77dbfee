// Tables inside a block of class "catalogue": click a heading to sort, choose or type to filter.
// Without JavaScript the table stands as it is.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll(".catalogue")) {
    const table = block.querySelector("table");
    const rows = [...table.tBodies[0].rows];
    const headings = [...table.tHead.rows[0].cells];
    const text = (row, i) => row.cells[i].textContent.trim();

    headings.forEach((heading, i) => {
      const button = document.createElement("button");
      button.textContent = heading.textContent;
      heading.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = heading.getAttribute("aria-sort") === "ascending";
        headings.forEach((other) => other.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", down ? "descending" : "ascending");
        const filled = (row) => text(row, i) !== "";
        rows.sort((a, b) => {
          if (filled(a) !== filled(b)) return filled(a) ? -1 : 1; // empty cells last
          const order = text(a, i).localeCompare(text(b, i), "en", { numeric: false });
          const numbers = [a, b].map((row) => Number(text(row, i).replaceAll(",", "")));
          const by = numbers.some(Number.isNaN) ? order : numbers[0] - numbers[1];
          return down ? -by : by;
        });
        table.tBodies[0].append(...rows);
      });
    });

    const bar = document.createElement("form");
    bar.className = "filters";
    const search = document.createElement("input");
    search.type = "search";
    search.placeholder = "search";
    search.setAttribute("aria-label", "search the table");
    const choices = headings.slice(1, 5).map((heading, k) => {
      const choice = document.createElement("select");
      const values = [...new Set(rows.map((row) => text(row, k + 1)))].filter((value) => value).sort();
      choice.append(new Option(`${heading.textContent}: all`, ""), ...values.map((value) => new Option(value, value)));
      choice.setAttribute("aria-label", heading.textContent);
      return choice;
    });
    const count = document.createElement("output");
    const filter = () => {
      const words = search.value.toLowerCase();
      for (const row of rows) {
        const chosen = choices.every((choice, k) => !choice.value || text(row, k + 1) === choice.value);
        row.hidden = !(chosen && row.textContent.toLowerCase().includes(words));
      }
      count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
    };
    bar.append(search, ...choices, count);
    bar.addEventListener("input", filter);
    bar.addEventListener("submit", (event) => event.preventDefault());
    block.prepend(bar);
    filter();
  }
});
