"""Tables of pages, between the marks of their names."""

from pathlib import Path


def put_between(page: Path, name: str, table: str) -> None:
    """Replace the table that stands in a page between the marks of its name."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text(f"{before}{begin}\n{table}\n{end}{rest.split(end)[1]}", encoding="utf-8")


def put_rows(page: Path, name: str, table: str) -> None:
    """Replace rows, by their first cells, of a table in a page between the marks of its name; add new ones."""
    old = page.read_text(encoding="utf-8").split(f"<!-- {name}: begin -->\n")[1].split(f"<!-- {name}: end -->\n")[0]
    head, bar, *rows = table.strip().splitlines()
    found = {line.split("|")[1]: line for line in old.strip().splitlines()[2:]}
    found |= {line.split("|")[1]: line for line in rows}
    put_between(page, name, "\n".join([head, bar, *found.values()]) + "\n")
